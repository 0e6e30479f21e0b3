"""A run from Python whose listening side has one open port, that of a gate: match and computation go over
lanes that come through it. crates/cli/tests/cli/gate.rs holds that results are the same."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from built import command_path
from conftest import World, both

import tacit


@pytest.fixture
def gate(world: World, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    key = tacit.keygen(tmp_path / "gate.key")
    own = [f"--identity={key.path}", f"--coordinator={world.keys['media']}", "--json"]
    command = [command_path(), "gate", "--listen=127.0.0.1:0", "--inside=127.0.0.1:0", *own]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    yield running
    running.kill()
    running.wait()


def test_the_lanes_of_a_run_come_through_a_gate(world: World, tmp_path: Path, gate: subprocess.Popen[str]):
    assert gate.stderr is not None
    ready = json.loads(gate.stderr.readline())
    inside = {"expose": "gate", "gate": ready["inside"], "gate-key": ready["key"]}
    meet: dict[str, dict[str, Any]] = {
        "media": {"listen": "127.0.0.1:0", "settings": inside},
        "shop": {"peer": ready["listen"]},
    }
    sides = {
        name: tacit.Party(
            world.study(),
            as_=name,
            identity=world.keys[name].path,
            ledger=tmp_path / f"{name}.ledger",
            lineage=f"{name}-people",
            deadline="60s",
            state=str(tmp_path / f"{name}.state"),
            spool=True,
            workers=2,
            **how,
        )
        for name, how in meet.items()
    }
    done = both(
        {name: lambda name=name: sides[name].run(world.files[name], progress=False) for name in world.files}
    )
    gate.send_signal(signal.SIGTERM)
    said = [json.loads(line) for line in gate.stderr]
    assert gate.wait(60) == 0
    assert not any(isinstance(of, BaseException) for of in done.values()), (done, said)
    assert done["media"].public == done["shop"].public
    assert all(of.workers.processes and not len(of.workers.failed) for of in done.values())
    carried = [line["name"].split("-")[0] for line in said if line["event"] == "carried"]
    # Two crews, of the match and of the computation, whose lanes have the same numbers.
    assert carried.count("l0") >= 2 and carried.count("l1") >= 1, carried
