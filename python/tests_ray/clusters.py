"""Ray clusters of this machine: of two nodes each, with ports and folders of their own, ended in any case.

Each node is a session of processes, so that all of them are found again: `ray stop` would end those of
others.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

START_S = 180
PR_SET_PDEATHSIG = 1
ENV = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
    # What else runs on the machine is no reason to end a worker.
    "RAY_memory_monitor_refresh_ms": "0",
}


def with_parent() -> None:
    """Ends a node with the process of the tests."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def free_block(count: int) -> int:
    """The first of so many ports on end that nobody has, below those that the system hands out."""
    for first in range(12000, 32000 - count, count):
        bound = []
        try:
            for port in range(first, first + count):
                taken = socket.socket()
                bound.append(taken)
                taken.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for taken in bound:
                taken.close()
    raise RuntimeError("no ports are free")


def members(session: int) -> list[int]:
    """Processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(") ")[2].split()
            except OSError:
                continue
            if stat[0] != "Z" and int(stat[3]) == session:
                found.append(int(entry.name))
    return found


def naming(folder: Path) -> list[int]:
    """Processes that were told a folder of ours: some leave the session of their node."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if str(folder).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def kill_all(find: Callable[[], list[int]]) -> None:
    """Until none is left, by their ids."""
    until = time.monotonic() + 30
    while alive := find():
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if time.monotonic() > until:
            raise RuntimeError(f"processes of a cluster do not end: {alive}")
        time.sleep(0.05)


class Node:
    def __init__(self, words: list[str], log: Path) -> None:
        program = str(Path(sys.executable).with_name("ray"))
        common = ["--node-ip-address=127.0.0.1", "--num-cpus=2", "--object-store-memory=80000000", "--block"]
        self.log = log
        self.process = subprocess.Popen(
            [program, "start", *common, "--disable-usage-stats", *words],
            stdout=log.open("w"),
            stderr=subprocess.STDOUT,
            env=os.environ | ENV,
            start_new_session=True,
            preexec_fn=with_parent,
        )

    def has(self, word: str) -> list[int]:
        """Its processes that have a word in their command line."""
        found = []
        for pid in members(self.process.pid):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line:
                found.append(pid)
        return found

    def kill(self) -> None:
        """As a machine that is gone: all its processes at once."""
        kill_all(lambda: members(self.process.pid))
        self.process.wait()


class Cluster:
    """A head and nodes, whose ports are all said: those that Ray draws collide with the other cluster's."""

    def __init__(self) -> None:
        # Paths of sockets are short.
        self.folder = Path(tempfile.mkdtemp(prefix="tr", dir="/tmp"))
        self.nodes: list[Node] = []
        self.address = ""

    def start(self) -> None:
        base = free_block(200)
        self.address = f"127.0.0.1:{base}"
        names = ["dashboard-agent-grpc-port", "dashboard-agent-listen-port"]
        names += ["metrics-export-port", "runtime-env-agent-port", "node-manager-port", "object-manager-port"]
        head = [f"--{name}={base + 1 + at}" for at, name in enumerate(names)]
        workers = f"--min-worker-port={base + 20}", f"--max-worker-port={base + 99}"
        head += ["--head", f"--port={base}", f"--temp-dir={self.folder}", "--include-dashboard=false"]
        head += workers
        self.nodes.append(Node(head, self.folder / "head.log"))
        self.await_nodes(1)
        second = [f"--{name}={base + 101 + at}" for at, name in enumerate(names)]
        workers = f"--min-worker-port={base + 120}", f"--max-worker-port={base + 199}"
        self.nodes.append(Node([f"--address={self.address}", *second, *workers], self.folder / "node.log"))
        self.await_nodes(2)

    def await_nodes(self, count: int) -> None:
        program = (
            "import ray, sys; ray.init(sys.argv[1], log_to_driver=False, logging_level='ERROR');"
            "print(sum(node['Alive'] for node in ray.nodes()))"
        )
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            for node in self.nodes:
                if node.process.poll() is not None:
                    raise RuntimeError(f"a node of Ray ended: {node.log.read_text()[-2000:]}")
            if self.nodes[0].has("gcs_server"):
                asked = [sys.executable, "-c", program, self.address]
                env = os.environ | ENV
                done = subprocess.run(asked, capture_output=True, text=True, timeout=START_S, env=env)
                if done.stdout.strip() == str(count):
                    return
            time.sleep(0.5)
        raise RuntimeError(f"a cluster of Ray does not start: {self.nodes[-1].log.read_text()[-2000:]}")

    def stored(self) -> int:
        """How many bytes the stores of all its nodes hold."""
        program = (
            "import ray, sys; ray.init(sys.argv[1], log_to_driver=False, logging_level='ERROR');"
            "all, free = ray.cluster_resources(), ray.available_resources();"
            "print(int(all['object_store_memory'] - free['object_store_memory']))"
        )
        asked = [sys.executable, "-c", program, self.address]
        env = os.environ | ENV
        done = subprocess.run(asked, capture_output=True, text=True, timeout=START_S, env=env, check=True)
        return int(done.stdout)

    def end(self) -> None:
        for node in reversed(self.nodes):
            node.kill()
        kill_all(lambda: naming(self.folder))
        shutil.rmtree(self.folder, ignore_errors=True)
