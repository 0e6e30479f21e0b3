"""What Ray costs: a study by workers of two Ray clusters, against the same by worker processes.

`make bench-ray` runs it. Both parties and their clusters, of two nodes each, are on this machine; rows are
aligned, and each of them has a product. By turns workers are processes and actors; what is told is CPU time,
which other programs of a machine change less than the clock's: of both parties with what they start, and of
all processes of the clusters, also of as long a time in which they do nothing. Every result is held against
the true one.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests_ray"
sys.path.insert(0, str(TESTS))
from clusters import Cluster, members, naming  # noqa: E402
from world import NAMES, World  # noqa: E402

IDLE_S = 30


class Meter(threading.Thread):
    """CPU time of all processes of the clusters, looked at every second: those that end are not waited for by
    anybody who would tell."""

    def __init__(self, clusters: list[Cluster]) -> None:
        super().__init__(daemon=True)
        self._clusters, self._lock = clusters, threading.Lock()
        self._ticks: dict[tuple[int, str], int] = {}

    def run(self) -> None:
        while True:
            self.spent()
            time.sleep(1)

    def spent(self) -> float:
        """Seconds until now."""
        with self._lock:
            for cluster in self._clusters:
                all_of = set(naming(cluster.folder))
                for node in cluster.nodes:
                    all_of |= set(members(node.process.pid))
                for pid in all_of:
                    try:
                        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
                    except OSError:
                        continue
                    # A number is given again; when it began, too, is one process's.
                    self._ticks[pid, stat[19]] = int(stat[11]) + int(stat[12])
            return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")


def both(world: World, asked: dict[str, dict[str, Any]]) -> tuple[float, float]:
    """One run: CPU seconds of both parties and of what they start, and seconds of the clock."""
    world.forget()
    begun, running, reports, spent = time.monotonic(), [], [], 0.0
    for name in NAMES:
        out = (world.folder / f"{name}.said").open("w+")
        program, how = [sys.executable, str(TESTS / "driver.py")], dict(asked[name])
        env = os.environ | how.pop("env", {})
        party = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=out, text=True, env=env)
        assert party.stdin is not None
        json.dump({"party": str(world.folder / f"{name}.toml"), **how}, party.stdin)
        party.stdin.close()
        running.append((party, out))
    for party, out in running:
        _, status, usage = os.wait4(party.pid, 0)
        spent += usage.ru_utime + usage.ru_stime
        out.seek(0)
        last = out.read().strip().splitlines()[-1]
        assert status == 0 and last.startswith('{"report"'), last
        reports.append(json.loads(last)["report"])
    world.check(reports)
    return spent, time.monotonic() - begun


def measure(world: World, clusters: list[Cluster], args: argparse.Namespace) -> dict[str, Any]:
    meter = Meter(clusters)
    meter.start()
    # Much else may run on the machine: nobody is given up for that.
    settings = {"memory": args.memory, "deadline": "30m"}
    plain = {name: {"workers": args.workers, "settings": settings} for name in NAMES}
    ray = {
        name: {**plain[name], "address": cluster.address, "env": cluster.env}
        for name, cluster in zip(NAMES, clusters, strict=True)
    }
    ways = {way: asked for way, asked in (("workers", plain), ("ray", ray)) if way in args.ways}
    told: dict[str, Any] = {**{way: [] for way in ways}, "load": []}
    for _ in range(args.runs):
        for way, asked in ways.items():
            before = meter.spent()
            parties, wall = both(world, asked)
            # Actors end a little after their run.
            time.sleep(5)
            run = {"parties_cpu_s": parties, "wall_s": wall}
            if way == "ray":
                run["clusters_cpu_s"] = meter.spent() - before
            told[way].append({key: round(value, 1) for key, value in run.items()})
            told["load"].append(round(os.getloadavg()[0], 1))
            print(way, told[way][-1], file=sys.stderr, flush=True)
    before = meter.spent()
    time.sleep(IDLE_S)
    told["idle_clusters_cores"] = round((meter.spent() - before) / IDLE_S, 3)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="4G")
    parser.add_argument("--ways", nargs="+", choices=["workers", "ray"], default=["workers", "ray"])
    parser.add_argument("--pid", action="store_true", help="match by Private-ID on lanes, with state")
    args = parser.parse_args()
    folder, clusters = Path(tempfile.mkdtemp(prefix="tacit-bench-")), [Cluster(), Cluster()]
    try:
        world = World(folder, rows=args.rows, pid=args.pid)
        for cluster in clusters:
            cluster.start()
        told = measure(world, clusters, args)
    finally:
        for cluster in clusters:
            cluster.end()
        shutil.rmtree(folder, ignore_errors=True)
    head = {"date": datetime.date.today().isoformat(), "cores": len(os.sched_getaffinity(0))}
    print(json.dumps({**head, "rows": args.rows, "matched_by_pid": args.pid, **told}, indent=2))


if __name__ == "__main__":
    main()
