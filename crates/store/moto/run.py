"""Runs the tests of `store` and `data` against S3 as moto plays it: a server of its own process, on this machine.

    run.py CARGO TEST ARGUMENTS...

The tests take their bucket from TACIT_TEST_STORE, and keys that are none from the environment.
"""

import os
import socket
import subprocess
import sys
import time

import boto3


def main(command):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test-secret", "AWS_REGION": "us-east-1"}
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name=keys["AWS_REGION"],
            aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
        )
        for _ in range(300):
            if server.poll() is not None:
                sys.exit("error: moto's server ended before it began")
            try:
                client.create_bucket(Bucket="tacit-test")
                break
            except Exception:  # It is not there yet.
                time.sleep(0.2)
        else:
            sys.exit("error: moto's server does not answer")
        places = {"TACIT_TEST_STORE": "s3://tacit-test", "TACIT_TEST_ENDPOINT": endpoint}
        return subprocess.run(command, env={**os.environ, **keys, **places}).returncode
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
