"""Workers of a run from Python are processes, and change no result, whatever becomes of them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import World, both, free_address

import tacit
from tacit._ray import _Actors, _Called

NAMES = ("clinic", "works")
ROWS = 700_001
"""Of five units, where there are three workers."""
STUDY = """
format = "tacit-study/1"
name = "days"
kind = "program"
title = "Exposure of the ill"
[party.clinic]
key = "{clinic}"
[party.works]
key = "{works}"
[match]
protocol = "aligned"
identifiers = [ {{ name = "person" }} ]
duplicates = "error"
[columns]
ill = {{ party = "clinic", column = "ill" }}
days = {{ party = "works", column = "days" }}
[program]
text = \"\"\"
tacit-program/2
name "days"
class exact
rows aligned
party clinic
party works
column ill bit clinic
column days u16 works
row
ill = column ill
days = column days
zero = const 0 u16
mine = select ill days zero
combine
all = sum mine u60
release
all = total all
reveal all clinic "days of the ill"
reveal all works "days of the ill"
\"\"\"
"""


def files(folder: Path, rows: int) -> int:
    """Both parties' rows, and the truth."""
    ill, days, truth = ["person,ill"], ["person,days"], 0
    for i in range(rows):
        is_ill, of = i * 17 % 10 < 3, i * 31 % 977
        truth += of if is_ill else 0
        ill.append(f"p{i},{int(is_ill)}")
        days.append(f"p{i},{of}")
    for name, lines in zip(NAMES, (ill, days), strict=True):
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return truth


def parties(folder: Path) -> dict[str, tacit.Party]:
    keys = {name: tacit.keygen(folder / f"{name}.key") for name in NAMES}
    study = tacit.Study(STUDY.format(**{name: key.fingerprint for name, key in keys.items()}))
    address = free_address()
    meet: dict[str, dict[str, Any]] = {"clinic": {"listen": address}, "works": {"peer": address}}
    return {
        name: tacit.Party(
            study,
            as_=name,
            identity=keys[name].path,
            data=folder / f"{name}.csv",
            ledger=folder / f"{name}.ledger",
            lineage=f"{name}-people",
            deadline="60s",
            allow_kinds=["program"],
            allow_exact=True,
            **meet[name],
        )
        for name in NAMES
    }


def workers() -> list[int]:
    """Worker processes of this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = (entry / "stat").read_text().rpartition(") ")[2].split()[1]
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(parent) == os.getpid() and b"_worker.py" in line:
                found.append(int(entry.name))
    return found


def test_a_worker_that_is_killed_changes_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # What lies in the folder, or is named by the environment, is not what a worker imports.
    (tmp_path / "importlib.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    truth, sides, killed = files(tmp_path, ROWS), parties(tmp_path), []

    def heard(event: tacit.Event) -> None:
        if event.kind == "stage" and event.stage == "compute":
            until = time.monotonic() + 60
            while not killed and time.monotonic() < until:
                killed.extend(workers()[:1])
            os.kill(killed[0], signal.SIGKILL)

    done = both(
        {
            "clinic": lambda: sides["clinic"].run(workers=3, progress=heard),
            "works": lambda: sides["works"].run(workers=4, progress=False),
        }
    )
    assert not any(isinstance(of, BaseException) for of in done.values()), done
    assert len(killed) == 1
    for name in NAMES:
        report = done[name]
        assert report.view.outputs.to_dicts()[0]["value"] == str(truth)
        assert report.workers.processes and report.workers.units == 5 and len(report.workers.failed) <= 2
        assert len(tacit.Ledger(tmp_path / f"{name}.ledger").entries()) <= 1
    assert not workers()


def test_the_key_of_state_is_where_it_is_said(world: World, tmp_path: Path):
    """And the match of a run that is kept goes over lanes of worker processes."""
    how = {
        name: {"state": str(tmp_path / f"{name}.state"), "state_key": tmp_path / f"{name}.k"}
        for name in world.files
    }
    sides = world.parties(world.study(), "keyed", spool=True, workers=2)
    done = both(
        {
            name: lambda name=name: sides[name].run(world.files[name], progress=False, **how[name])
            for name in world.files
        }
    )
    assert done["media"].public == done["shop"].public and done["media"].workers.processes
    for name in world.files:
        key = tmp_path / f"{name}.k"
        assert key.read_text().startswith("tacit") and key.stat().st_mode & 0o777 == 0o600
        assert not list(world.folder.glob(f"keyed-{name}*key"))


def test_a_node_that_went_at_once_is_said_so():
    """Between what its actor says and who asks where it is; without Ray, of which there is a stand-in."""
    gone: list[tuple[int, str]] = []
    ray = SimpleNamespace(nodes=list, get=lambda ref: ref, kill=lambda actor, no_restart: None)
    handle = SimpleNamespace(is_gone=lambda number, why: gone.append((number, why)))
    actors = _Actors(ray, handle, tacit.Ray("10.0.0.5:6379", workers=1))
    actors._called[3] = _Called(actor=None, summons="", ref=SimpleNamespace(node="4f" * 28), since=0.0)
    actors._done(3)
    assert gone == [(3, "its node is gone")] and not actors._called
