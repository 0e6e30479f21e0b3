"""Ray clusters of this machine: of two nodes each, with ports and folders of their own, ended in any case.

Each node is a session of processes, so that all of them are found again: `ray stop` would end those of
others.
"""

from __future__ import annotations

import ctypes
import os
import secrets
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
NODES = 8
"""Of a cluster, at most, with those that were ended."""
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
    def __init__(self, words: list[str], log: Path, env: dict[str, str]) -> None:
        program = str(Path(sys.executable).with_name("ray"))
        common = ["--node-ip-address=127.0.0.1", "--num-cpus=2", "--object-store-memory=80000000", "--block"]
        self.log = log
        self.process = subprocess.Popen(
            [program, "start", *common, "--disable-usage-stats", *words],
            stdout=log.open("w"),
            stderr=subprocess.STDOUT,
            env=os.environ | env,
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

    def reclaim(self, notice: float) -> None:
        """As a machine that is taken back: it is told so by SIGTERM, and gone so many seconds later. Ray 2.60
        has its workers go on for 30 s."""
        self.process.terminate()
        try:
            self.process.wait(notice)
        except subprocess.TimeoutExpired:
            pass
        self.kill()

    def kill(self) -> None:
        """As a machine that is gone: all its processes at once."""
        kill_all(lambda: members(self.process.pid))
        self.process.wait()


class Cluster:
    """A head and nodes, whose ports are all said: those that Ray draws collide with the other cluster's. Each
    cluster has a token of its own, which every process that speaks to it must have."""

    def __init__(self) -> None:
        # Paths of sockets are short.
        self.folder = Path(tempfile.mkdtemp(prefix="tr", dir="/tmp"))
        token = self.folder / "token"
        token.touch(0o600)
        token.write_text(secrets.token_hex(32))
        self.env = ENV | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
        self.nodes: list[Node] = []
        self.base = 0
        self.address = ""

    def start(self) -> None:
        self.base = free_block(NODES * 100)
        self.address = f"127.0.0.1:{self.base}"
        head = ["--head", f"--port={self.base}", f"--temp-dir={self.folder}", "--include-dashboard=false"]
        self.nodes.append(Node([*head, *self.ports()], self.folder / "head.log", self.env))
        self.await_nodes(1)
        self.add()

    def add(self) -> Node:
        """One node more. Its number is its place among all that there were: none has another one's ports."""
        words = [f"--address={self.address}", *self.ports()]
        self.nodes.append(Node(words, self.folder / f"node{len(self.nodes)}.log", self.env))
        self.await_nodes(sum(node.process.poll() is None for node in self.nodes))
        return self.nodes[-1]

    def ports(self) -> list[str]:
        """Of the next node."""
        base = self.base + 100 * len(self.nodes)
        names = ["dashboard-agent-grpc-port", "dashboard-agent-listen-port"]
        names += ["metrics-export-port", "runtime-env-agent-port", "node-manager-port", "object-manager-port"]
        ports = [f"--{name}={base + 1 + at}" for at, name in enumerate(names)]
        return [*ports, f"--min-worker-port={base + 20}", f"--max-worker-port={base + 99}"]

    def await_nodes(self, count: int) -> None:
        program = (
            "import ray, sys; ray.init(sys.argv[1], log_to_driver=False, logging_level='ERROR');"
            "print(sum(node['Alive'] for node in ray.nodes()))"
        )
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            # Those before it may have been ended.
            if self.nodes[-1].process.poll() is not None:
                raise RuntimeError(f"a node of Ray ended: {self.nodes[-1].log.read_text()[-2000:]}")
            if self.nodes[0].has("gcs_server"):
                asked = [sys.executable, "-c", program, self.address]
                env = os.environ | self.env
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
        env = os.environ | self.env
        done = subprocess.run(asked, capture_output=True, text=True, timeout=START_S, env=env, check=True)
        return int(done.stdout)

    def end(self) -> None:
        for node in reversed(self.nodes):
            node.kill()
        kill_all(lambda: naming(self.folder))
        shutil.rmtree(self.folder, ignore_errors=True)
