"""A worker process of a run, which the run starts by this file's path with that of the module of Rust.

It is started without the environment, the folder and the packages of the process that runs: what lies there
has no part in it.
"""

import importlib.util
import signal
import sys


def main() -> None:
    # Ctrl-C in a terminal is meant for the run, which ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    spec = importlib.util.spec_from_file_location("tacit._tacit", sys.argv[1])
    if spec is None or spec.loader is None:
        raise SystemExit(f"{sys.argv[1]} is no module; workers are started by tacit.Party.run")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.run_worker()


if __name__ == "__main__":
    main()
