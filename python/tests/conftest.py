"""Two parties with everything they need, and the command beside the package."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from built import command_path

import tacit

ROWS = 4000
TIMES = {"origin": "1970-01-01", "unit": "second", "span": 2**32 - 2}


def pytest_sessionstart(session: pytest.Session) -> None:
    """One error where there is no command, and not one for each test."""
    try:
        command_path()
    except FileNotFoundError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.fixture(scope="session")
def command() -> Callable[..., Any]:
    """The command of the same commit: what it prints as JSON."""
    program = command_path()

    def run(*words: object, code: int = 0) -> Any:
        done = subprocess.run([program, *map(str, words), "--json"], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    return run


class World:
    """A trial's files, its study, and a key for each side."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = tacit.generate.lift(folder / "lift", rows=ROWS)
        self.files = {"media": folder / "lift/publisher.csv", "shop": folder / "lift/advertiser.csv"}
        self.keys = {name: tacit.keygen(folder / f"{name}.key") for name in self.files}

    def study(self, **release: Any) -> tacit.LiftStudy:
        return (
            tacit.Study.lift("spring", title="Spring campaign")
            .publisher("media", key=self.keys["media"])
            .advertiser("shop", key=self.keys["shop"])
            .match("pid", identifiers=[tacit.Identifier("id", normalise=["trim", "lowercase"])])
            .opportunity("seen")
            .arm("arm", test="test", control="control")
            .events("bought", value="amount", unit="cent", max_events=4)
            .clamp(100)
            .release(**(release or {"rho": "0.1"}))
        )

    def parties(self, study: tacit.Study, name: str, **settings: Any) -> dict[str, tacit.Party]:
        """Both, with a ledger each of this name. A dictionary has a setting of each."""
        address = free_address()
        meet: dict[str, dict[str, Any]] = {"media": {"listen": address}, "shop": {"peer": address}}
        return {
            party: tacit.Party(
                study,
                as_=party,
                identity=self.keys[party].path,
                ledger=self.folder / f"{name}-{party}.ledger",
                lineage=f"{party}-people",
                deadline="60s",
                **meet[party],
                **{
                    key: value[party] if isinstance(value, dict) else value for key, value in settings.items()
                },
            )
            for party in meet
        }


def free_address() -> str:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{bound.getsockname()[1]}"


def both(calls: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """What each call returns or raises, all at the same time."""
    done: dict[str, Any] = {}

    def one(name: str, call: Callable[[], Any]) -> None:
        try:
            done[name] = call()
        except BaseException as error:
            done[name] = error

    threads = [threading.Thread(target=one, args=item, daemon=True) for item in calls.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def runs(parties: dict[str, tacit.Party], data: dict[str, Any], **how: Any) -> dict[str, Any]:
    how.setdefault("progress", False)
    return both({name: lambda name=name: parties[name].run(data[name], **how) for name in parties})


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def reports(world: World) -> dict[str, tacit.Report]:
    """One run of both, from files."""
    return runs(world.parties(world.study(), "files"), world.files)
