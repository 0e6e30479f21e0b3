"""The module of Rust below the package. Held to the binary by mypy.stubtest."""

import os
from collections.abc import Callable, Mapping
from typing import Any, final

from ._errors import TacitError

_Path = str | os.PathLike[str]
_Listener = Callable[
    [str, str | None, str | None, int | None, int | None, int | None, float | None, int | None], object
]

__all__ = [
    "Batches",
    "Draft",
    "Launcher",
    "Ledger",
    "Party",
    "Report",
    "Rows",
    "Stop",
    "Study",
    "Worker",
    "__commit__",
    "__version__",
    "canonical",
    "generate",
    "key_of",
    "keygen",
    "prices_2026",
    "run_worker",
    "simulate",
]

__commit__: str | None
__version__: str

def canonical(name: str, text: str) -> str: ...
def generate(
    what: str,
    out: _Path,
    seed: int,
    rows: tuple[int, int],
    overlap: float,
    events: int,
    clamp: int,
    format: str,
    study: Study | None = None,
) -> str: ...
def key_of(path: _Path) -> str: ...
def keygen(path: _Path, succeeds: _Path | None = None) -> str: ...
def prices_2026() -> str: ...
def run_worker() -> None: ...
def simulate(
    study: Study,
    data: Mapping[str, _Path | Rows],
    draws: int,
    seed: int,
    threads: int | None = None,
    stop: Stop | None = None,
) -> tuple[str, str]: ...

@final
class Batches:
    @staticmethod
    def of_rows(names: list[str], json: str) -> Batches: ...
    @staticmethod
    def of_parquet(path: _Path) -> Batches: ...
    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

@final
class Draft:
    def __new__(cls) -> Draft: ...
    def line(self, text: str, file: str, line: int) -> None: ...
    def type_of(self, value: str) -> str | None: ...
    def scale_of(self, value: str) -> int | None: ...
    def number(self, value: str, text: str) -> str: ...
    def verified(self, rows: int) -> list[tuple[str, str]]: ...

@final
class Launcher:
    def __new__(cls, host: str, port: int, cores: int) -> Launcher: ...
    def next(self, seconds: float) -> tuple[int, str | None, int, int] | None: ...
    def has_key(self, number: int, fingerprint: str, host: str) -> None: ...
    def is_gone(self, number: int, why: str) -> None: ...

@final
class Ledger:
    def __new__(cls, path: _Path) -> Ledger: ...
    def show(self) -> str: ...
    def spent(self, lineage: str) -> str: ...

@final
class Party:
    def __new__(cls, words: list[str], file: _Path | None, study: Study | None) -> Party: ...
    def study(self) -> Study: ...
    @property
    def name(self) -> str | None: ...
    @property
    def report(self) -> os.PathLike[str] | None: ...
    def check(
        self,
        data: _Path | Rows | None,
        said: tuple[bool, bool, bool],
        rows: tuple[int, int] | None = None,
        mean: float | None = None,
        stop: Stop | None = None,
    ) -> tuple[tuple[str, str], TacitError | None]: ...
    def run(
        self,
        data: _Path | Rows | None,
        said: tuple[bool, bool, bool],
        listener: _Listener | None = None,
        stop: Stop | None = None,
        workers: Launcher | list[str] | None = None,
    ) -> list[tuple[str, Report | None, TacitError | None, Report | None]]: ...
    def match(
        self,
        data: _Path | Rows | None,
        out_by: tuple[_Path | None, Launcher | list[str] | None],
        said: tuple[bool, bool, bool],
        listener: _Listener | None = None,
        stop: Stop | None = None,
    ) -> tuple[str, Batches | None]: ...

@final
class Report:
    @staticmethod
    def all_of(text: str) -> list[Report]: ...
    def json(self) -> str: ...
    def text(self) -> str: ...
    def html(self) -> str: ...
    def numbers(self) -> tuple[list[str], str]: ...
    def public(self) -> tuple[str, str]: ...
    def save(self, folder: _Path) -> None: ...

@final
class Rows:
    def __new__(cls, name: str, bytes: int | None, capsule: Any, stop: Stop) -> Rows: ...

@final
class Stop:
    def __new__(cls) -> Stop: ...
    def stop(self) -> None: ...
    @property
    def stopped(self) -> bool: ...

@final
class Study:
    @staticmethod
    def parse(name: str, text: str) -> Study: ...
    @staticmethod
    def load(path: _Path) -> Study: ...
    @property
    def text(self) -> str: ...
    @property
    def program(self) -> str | None: ...
    @property
    def hash(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    def runs_of(self, party: str) -> int: ...
    @property
    def parties(self) -> list[tuple[str, str]]: ...
    def check(
        self,
        rows: tuple[int, int] | None = None,
        mean: float | None = None,
        peer: tuple[str, str] | None = None,
    ) -> tuple[str, str]: ...
    def plan(
        self,
        rows: tuple[int, int],
        link: str,
        mean: float | None,
        cores: int,
        prices: tuple[str, str] | None,
        between: str,
        both: int | None = None,
    ) -> tuple[str, str]: ...

@final
class Worker:
    def __new__(cls) -> Worker: ...
    @property
    def key(self) -> str: ...
    def work(self, summons: str) -> None: ...
    def stop(self) -> None: ...
