"""Two parties, each with a Ray cluster of two nodes of its own: results are those of the command's run."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from built import command_path
from clusters import Cluster, Node
from world import NAMES, World

import tacit

ROWS = 700_001
"""Of five units, where there are three workers: each takes seconds."""
LIMIT_S = 240


@pytest.fixture(scope="session")
def clusters() -> Iterator[list[Cluster]]:
    made = [Cluster(), Cluster()]
    try:
        for cluster in made:
            cluster.start()
        yield made
    finally:
        for cluster in made:
            cluster.end()


class Driver:
    """A party as a process, and what it says."""

    def __init__(
        self, world: World, name: str, cluster: Cluster | None, token: Cluster | None = None, **asked: Any
    ) -> None:
        """Of a cluster, with its token or that of another one."""
        has_token = token or cluster
        if cluster is not None:
            asked["address"] = cluster.address
        program = Path(__file__).with_name("driver.py")
        self.process = subprocess.Popen(
            [sys.executable, str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | (has_token.env if has_token else {}),
        )
        assert self.process.stdin is not None
        json.dump({"party": str(world.folder / f"{name}.toml"), **asked}, self.process.stdin)
        self.process.stdin.close()
        self.said: queue.Queue[Any] = queue.Queue()
        self.heard: list[Any] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # Ray says there that a node is gone.
            if line.startswith(("[", "{")):
                self.said.put(json.loads(line))
        self.said.put(None)

    def next(self) -> Any:
        said = self.said.get(timeout=LIMIT_S)
        self.heard.append(said)
        return said

    def wait(self, kind: str, done: int = 0) -> None:
        """Until it says that so many units are done, or that a stage begins."""
        while (said := self.next()) is not None:
            if isinstance(said, list) and said[0] == kind and (said[2] or 0) >= done:
                return
        raise AssertionError(f"it ended: {self.heard[-3:]}")

    def end(self) -> dict[str, Any]:
        """What it says at last."""
        while self.next() is not None:
            pass
        self.process.wait(LIMIT_S)
        last = self.heard[-2] if len(self.heard) > 1 else None
        assert isinstance(last, dict), self.heard[-3:]
        return last


@pytest.fixture
def drivers() -> Iterator[Any]:
    made: list[Driver] = []

    def start(world: World, name: str, cluster: Cluster | None = None, **asked: Any) -> Driver:
        made.append(Driver(world, name, cluster, **asked))
        return made[-1]

    yield start
    for driver in made:
        if driver.process.poll() is None:
            driver.process.kill()
            driver.process.wait()


def actors(node: Node) -> list[int]:
    return node.has("ray::Worker")


def ended(report: dict[str, Any]) -> list[int]:
    """Lanes whose worker at this party itself was gone before its work was done."""
    return sorted(of["lane"] for of in report["workers"]["memory"] if of["ended"])


def failed(report: dict[str, Any]) -> set[tuple[int, int]]:
    """Attempts that came to nothing, whichever party saw it first."""
    return {(of["unit"], of["attempt"]) for of in report["workers"]["failed"]}


def reports_of(parties: list[Driver]) -> list[dict[str, Any]]:
    done = [party.end() for party in parties]
    assert all("report" in said for said in done), done
    return [said["report"] for said in done]


def by_the_command(world: World, workers: int) -> list[dict[str, Any]]:
    """The same by two processes of the command."""
    world.forget()
    program = command_path()
    files = [str(world.folder / f"{name}.toml") for name in NAMES]
    words = ["--json", "--workers", str(workers)]
    runs = [
        subprocess.Popen([program, "run", file, *words], stdout=subprocess.PIPE, text=True) for file in files
    ]
    return [json.loads(run.communicate(timeout=LIMIT_S)[0]) for run in runs]


def charges(world: World) -> list[list[str]]:
    """The rho of each entry of each ledger."""
    return [[of.rho for of in tacit.Ledger(world.folder / f"{name}.ledger").entries()] for name in NAMES]


def test_a_study_end_to_end_by_two_clusters(clusters: list[Cluster], tmp_path: Path, drivers: Any) -> None:
    """Matched and computed on lanes of actors of both clusters; the command's run has the same answer."""
    world = World(tmp_path, rows=20_000, pid=True)
    parties = [
        drivers(world, name, cluster, workers=2)
        for name, cluster in zip(NAMES, clusters, strict=True)
    ]
    here = reports_of(parties)
    world.check(here)
    # The rows that the match makes up; the sum is exact.
    assert charges(world) == [["0.01"]] * 2
    there = by_the_command(world, 2)
    world.check(there)
    for ours, theirs in zip(here, there, strict=True):
        assert ours["view"] == theirs["view"] and ours["study"] == theirs["study"]
        assert ours["workers"]["processes"] and not ours["workers"]["failed"]
        assert not [node for cluster in clusters for node in cluster.nodes if actors(node)]
    assert charges(world) == [["0.01"]] * 2


@pytest.mark.parametrize("noised", [False, True])
def test_an_actor_and_a_node_are_killed(
    clusters: list[Cluster], tmp_path: Path, drivers: Any, noised: bool
) -> None:
    """What they did is done again by others. An exact result is the command's bit for bit; one with noise is
    charged once, and who asks again has the same answer."""
    world = World(tmp_path, rows=2 * ROWS, pid=False, noised=noised)
    first, second = [
        drivers(world, name, cluster, workers=4) for name, cluster in zip(NAMES, clusters, strict=True)
    ]
    first.wait("units", 1)
    done, of = first.heard[-1][2:4]
    assert done + 4 <= of, "all lanes are at work"
    working = [actor for node in clusters[0].nodes for actor in actors(node)]
    # Of its two nodes the one that is not the head, with two actors: one of them has no part in that lane.
    node = clusters[1].nodes[-1]
    assert len(working) == 4 and len(actors(node)) == 2
    os.kill(working[0], signal.SIGKILL)
    node.kill()
    reports = reports_of([first, second])
    clusters[1].add()
    world.check(reports)
    # Either side tells its own: the actor, and the two of the node. Each was at work.
    gone = [ended(report) for report in reports]
    assert [len(lanes) for lanes in gone] == [1, 2], gone
    assert failed(reports[0]) == failed(reports[1])
    assert len(failed(reports[0])) >= len({lane for lanes in gone for lane in lanes}), reports[0]["workers"]
    views = [report["view"] for report in reports]
    if noised:
        again = reports_of(
            [drivers(world, name, cluster, workers=2) for name, cluster in zip(NAMES, clusters, strict=True)]
        )
        assert all(report["stored"] for report in again)
        assert [report["view"] for report in again] == views
        assert charges(world) == [["0.125"]] * 2
    else:
        assert views == [report["view"] for report in by_the_command(world, 4)]


def cpu_s(process: int) -> float:
    """CPU time that a process has had; 0 where there is none."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def test_a_node_joins_late_and_is_reclaimed(clusters: list[Cluster], tmp_path: Path, drivers: Any) -> None:
    """A lane that had no room gets an actor on a node that comes in the midst, which works there. The node is
    told to go, by SIGTERM, and goes; the unit that its actor had is done again by another."""
    world = World(tmp_path, rows=4 * ROWS, pid=False)
    # An actor takes a node: all lanes but two wait.
    first = drivers(world, NAMES[0], clusters[0], workers=8, ray={"threads": 2})
    second = drivers(world, NAMES[1], workers=8)
    first.wait("units", 1)
    assert [len(actors(node)) for node in clusters[0].nodes[:2]] == [1, 1]
    node = clusters[0].add()
    until = time.monotonic() + LIMIT_S
    while not (late := actors(node)) or cpu_s(late[0]) < 3:
        assert first.process.poll() is None and time.monotonic() < until, "it works before the run ends"
        time.sleep(0.1)
    node.reclaim(notice=5)
    reports = reports_of([first, second])
    world.check(reports)
    # One of ours was gone, with the unit that it had; the nodes that stayed did that again.
    assert [len(ended(report)) for report in reports] == [1, 0], reports[0]["workers"]
    assert failed(reports[0]) == failed(reports[1]) and len(failed(reports[0])) == 1, reports[0]["workers"]


@pytest.fixture(scope="module")
def aligned(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("aligned"), rows=ROWS, pid=False)


def test_a_cluster_meets_the_command(clusters: list[Cluster], aligned: World, drivers: Any) -> None:
    """More workers than the cluster has room for: lanes that nobody takes hold nothing up. Rows, shares, keys
    and results go past Ray: what it packs and unpacks at the coordinator is words of control, and in the midst
    its stores are empty."""
    aligned.forget()
    ray = drivers(aligned, NAMES[1], clusters[0], workers=6, record=True)
    plain = drivers(aligned, NAMES[0], workers=6)
    ray.wait("units", 1)
    assert clusters[0].stored() == 0
    aligned.check(reports_of([plain, ray]))
    carried = next(said["carried"] for said in ray.heard if isinstance(said, dict) and "carried" in said)
    # What Ray itself puts before an argument that has no name.
    summonses = [said for said in carried["sent"] if said != "b'__RAY_DUMMY__'"]
    assert summonses
    for summons in map(json.loads, summonses):
        assert summons.keys() == {"address", "run", "start", "lanes", "key"}
        host, _, port = summons["address"].rpartition(":")
        assert host and port.isdigit() and isinstance(summons["start"], int)
        # The number of this crew, two lanes, and the fingerprint of the coordinator's key, in bytes.
        for name, most, count in (("run", 256, 32), ("lanes", 512, 2), ("key", 256, 16)):
            numbers = summons[name]
            assert len(numbers) == count and all(0 <= of < most for of in numbers), name
    answers = [said for said in carried["received"] if said != "None"]
    assert answers
    for here in answers:
        assert here.keys() == {"key", "version", "commit", "node", "process"}
        assert re.fullmatch("tacit1:[0-9a-f]{32}", here["key"]) and re.fullmatch("[0-9a-f]+", here["node"])
        assert here["version"] == tacit.__version__ and here["commit"] == tacit.__commit__
        assert isinstance(here["process"], int)


def test_errors_say_what_is_wrong(clusters: list[Cluster], aligned: World, drivers: Any) -> None:
    aligned.forget()
    ray = {"threads": 64, "patience": 3.0}
    first = drivers(aligned, NAMES[0], clusters[0], workers=1, ray=ray)
    second = drivers(aligned, NAMES[1], workers=1)
    said = first.end()
    assert said["code"] == 3, said
    assert "no actor came within 3 s: one of 64 cores was asked for" in said["text"], said
    assert second.end()["error"] == "PeerError"
    with pytest.raises(tacit.InputError, match="name its head"):
        tacit.Ray("auto", workers=2)
    with pytest.raises(tacit.InputError, match="1 to 256"):
        tacit.Ray(clusters[0].address, workers=0)
    with pytest.raises(tacit.InputError, match="at most 540 s"):
        tacit.Ray(clusters[0].address, workers=2, patience=900)


def test_a_cluster_wants_its_own_token(clusters: list[Cluster], aligned: World, drivers: Any) -> None:
    aligned.forget()
    said = drivers(aligned, NAMES[0], clusters[0], token=clusters[1], workers=1).end()
    assert said["error"] == "FileError" and said["code"] == 1, said
    assert f"the Ray cluster {clusters[0].address} cannot be joined: " in said["text"], said
    assert "RAY_AUTH_MODE and the token of this process are the cluster's" in said["text"], said


def test_what_a_worker_says_is_what_is_told(clusters: list[Cluster]) -> None:
    """An error of Rust comes out of an actor as itself, without what Ray says around it."""
    program = f"""
import ray
from tacit._ray import _connect, _reason
from tacit._ray_actor import ACTOR
at = {clusters[0].address!r}
for key in ("max_restarts", "max_task_retries"):
    assert ACTOR._default_options[key] == 0, ACTOR._default_options
assert _connect(ray, at, "tacit-x") and not _connect(ray, at, "tacit-x")
actor = ACTOR.options(num_cpus=1).remote()
here = ray.get(actor.begin.remote(), timeout=120)
assert here.key.startswith("tacit1:"), here
try:
    ray.get(actor.work.remote("nonsense"), timeout=60)
except ray.exceptions.RayTaskError as error:
    print(type(error.cause).__name__, _reason(error))
"""
    asked = [sys.executable, "-c", program]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=LIMIT_S, env=os.environ | clusters[0].env)
    assert done.stdout.startswith("FileError "), done.stderr[-2000:]
    assert "a summons of another version of tacit" in done.stdout and "Traceback" not in done.stdout
    until = time.monotonic() + 30
    while actors(clusters[0].nodes[0]) and time.monotonic() < until:
        time.sleep(0.1)
    assert not actors(clusters[0].nodes[0])
