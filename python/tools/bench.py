"""What the package costs: its wheel, its import, and a study by it against the same study by the command.

`make bench-python` runs it with the wheel that it has built, in an environment of its own. Both parties of a
generated lift run on this machine, by turns as `tacit run` and as `Party.run`, from the same files; what is
told is the median, with CPU time, peak memory and the load of the machine. On a machine that does other things
as well CPU time is what compares.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("media", "shop")
PARTY = """
import sys, tacit
party = tacit.Party.load(sys.argv[1])
party.run(progress=False)
"""


def imports(times: int) -> dict[str, float]:
    """Seconds of `import tacit` beyond those of an empty program, by turns: of the clock the least, for load
    adds, and of the CPU in user code and in all the median."""
    spent: dict[str, list[list[float]]] = {"import tacit": [], "pass": []}
    for _ in range(times):
        for code, runs in spent.items():
            begun = time.perf_counter()
            child = subprocess.Popen([sys.executable, "-c", code])
            _, status, usage = os.wait4(child.pid, 0)
            assert status == 0, code
            wall = time.perf_counter() - begun
            runs.append([wall, usage.ru_utime, usage.ru_utime + usage.ru_stime])
    ours, empty = ([list(of) for of in zip(*runs, strict=True)] for runs in spent.values())
    return {
        "wall_s": round(min(ours[0]) - min(empty[0]), 3),
        "user_cpu_s": round(statistics.median(ours[1]) - statistics.median(empty[1]), 3),
        "cpu_s": round(statistics.median(ours[2]) - statistics.median(empty[2]), 3),
    }


def world(folder: Path, rows: int) -> None:
    """Files, study and party files of both sides."""
    import tacit

    tacit.generate.lift(folder / "lift", rows=rows, format="parquet")
    keys = {name: tacit.keygen(folder / f"{name}.key") for name in NAMES}
    study = (
        tacit.Study.lift("bench", title="What the package costs")
        .publisher("media", key=keys["media"])
        .advertiser("shop", key=keys["shop"])
        .match("pid", identifiers=[tacit.Identifier("id")])
        .opportunity("seen")
        .arm("arm", test="test", control="control")
        .events("bought", value="amount", unit="cent", max_events=4)
        .clamp(100)
        .release(rho="0.1")
    )
    study.save(folder / "study.toml")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    for name, side, meets in [("media", "publisher", "listen"), ("shop", "advertiser", "peer")]:
        lines = [
            'study = "study.toml"',
            f'as = "{name}"',
            f'identity = "{name}.key"',
            f'data = "lift/{side}.parquet"',
            f'{meets} = "{address}"',
            f'lineage = "{name}"',
        ]
        (folder / f"{name}.toml").write_text("\n".join(lines) + "\n")


def both(folder: Path, start: list[str]) -> dict[str, float]:
    """One run of both parties: seconds of the clock, of the CPUs, and the larger of their peaks in MB."""
    for name in NAMES:
        for old in folder.glob(f"{name}.ledger*"):
            old.unlink()
    shutil.rmtree(folder / "out", ignore_errors=True)
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    running = [
        subprocess.Popen([*start, f"{name}.toml"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for name in NAMES
    ]
    peak = 0
    for one in running:
        _, status, usage = os.wait4(one.pid, 0)
        assert status == 0, one.stderr and one.stderr.read().decode()
        peak = max(peak, usage.ru_maxrss)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": time.perf_counter() - begun, "cpu_s": spent, "peak_mb": peak * 1024 / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--command", type=Path, required=True, help="the tacit of the same commit")
    parser.add_argument("--wheel", type=Path, required=True)
    args = parser.parse_args()
    told: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "cores": len(os.sched_getaffinity(0)),
        "wheel_mb": round(args.wheel.stat().st_size / 1e6, 1),
        "import": imports(20),
        "rows": args.rows,
    }
    ways = {
        "command": [str(args.command.absolute()), "run", "--json"],
        "package": [sys.executable, "-c", PARTY],
    }
    spent: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    loads = []
    with tempfile.TemporaryDirectory() as folder:
        world(Path(folder), args.rows)
        for _ in range(args.runs):
            for name, start in ways.items():
                spent[name].append(both(Path(folder), start))
                loads.append(os.getloadavg()[0])
    for name, runs in spent.items():
        medians = {key: round(statistics.median(run[key] for run in runs), 1) for key in runs[0]}
        each = {f"{key}_of_each": [round(run[key], 1) for run in runs] for key in ("wall_s", "cpu_s")}
        told[name] = {**medians, **each}
    for key in ("wall_s", "cpu_s"):
        ratio = told["package"][key] / told["command"][key]
        told[f"overhead_{key[:-2]}_percent"] = round(100 * (ratio - 1), 1)
    told["load"] = [round(min(loads), 1), round(max(loads), 1)]
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
