"""What the package costs: its wheel, its import, and a study by it against the same study by the command.

`make bench-python` runs it with the wheel that it has built, in an environment of its own. Both parties of a
generated lift run on this machine, by turns as `tacit run` and as `Party.run`, from the same files; what is
told is the median, with CPU time, peak memory and the load of the machine.
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


def imports(times: int) -> float:
    """Seconds of `import tacit` beyond those of an empty program: the least of some, for load adds."""

    def least(code: str) -> float:
        spent = []
        for _ in range(times):
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            spent.append(time.perf_counter() - begun)
        return min(spent)

    return least("import tacit") - least("pass")


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
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--command", type=Path, required=True, help="the tacit of the same commit")
    parser.add_argument("--wheel", type=Path, required=True)
    args = parser.parse_args()
    told: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "cores": len(os.sched_getaffinity(0)),
        "wheel_mb": round(args.wheel.stat().st_size / 1e6, 1),
        "import_s": round(imports(10), 3),
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
        told[name] = {**medians, "wall_s_of_each": [round(run["wall_s"], 1) for run in runs]}
    for key in ("wall_s", "cpu_s"):
        ratio = told["package"][key] / told["command"][key]
        told[f"overhead_{key[:-2]}_percent"] = round(100 * (ratio - 1), 1)
    told["load"] = [round(min(loads), 1), round(max(loads), 1)]
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
