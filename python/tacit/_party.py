"""A party of a study: check, run, match."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union

from . import _tacit
from ._data import Data, given
from ._errors import InputError, TacitError
from ._numbers import Rho
from ._progress import Event, Shown
from ._ray import Ray
from ._report import Fields, Report, Reports, _to_arrow, _to_pandas, _to_polars
from ._study import Check, Rows, Study, _pair

# What takes long to import, and not every program uses, is imported where it is used.
if TYPE_CHECKING:
    import asyncio

    import pandas
    import polars
    import pyarrow

Progress = Union[bool, Callable[[Event], None]]
"""Whether progress is shown; or who is told of every event, on the thread that called."""
_Path = Union[str, "os.PathLike[str]"]
Reported = TypeVar("Reported", Report, Reports)


@dataclass(frozen=True)
class _Said:
    """What an operator says for one run."""

    new_lineage: bool = False
    spend_anyway: bool = False
    new_ledger: bool = False

    def three(self) -> tuple[bool, bool, bool]:
        return self.new_lineage, self.spend_anyway, self.new_ledger


@contextmanager
def _workers(launcher: Ray | None, party: str | None) -> Iterator[_tacit.Launcher | list[str] | None]:
    """Where a run has its workers: with a launcher, or as processes of this machine by this very Python."""
    if launcher is not None:
        with launcher._open(party or "party") as handle:
            yield handle
    elif sys.executable and not getattr(sys, "frozen", False) and _tacit.__file__:
        # Nothing of this process's environment changes what a worker is.
        worker = Path(__file__).with_name("_worker.py")
        yield [sys.executable, "-I", "-S", str(worker), _tacit.__file__]
    else:
        yield None


class MatchResult(Fields):
    """What became of a match: the JSON of ``tacit match --json``, and this party's part as rows.

    With a protocol that gives a spine the columns are row, identifier, position; with one that gives shares
    there is a row for each joined row and slot, with this party's share of every column.
    """

    def __init__(self, fields: Mapping[str, Any], batches: _tacit.Batches) -> None:
        super().__init__(fields)
        self._batches = batches

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._batches.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """The part as a table of pyarrow, which must be installed."""
        table: pyarrow.Table = _to_arrow(self._batches)
        return table

    def to_pandas(self) -> pandas.DataFrame:
        """The part as a frame of pandas, which must be installed."""
        frame: pandas.DataFrame = _to_pandas(self._batches)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The part as a frame of polars, which must be installed."""
        frame: polars.DataFrame = _to_polars(self._batches)
        return frame


class Party:
    """One party of a study, on this machine. It stays as it is, and holds no secret.

    It pickles, for a process that ``multiprocessing`` starts by "spawn": keys, ledgers and files go by their
    paths, a party file is read again, and a run that goes on stays where it is.
    """

    _settings: dict[str, Any]
    _peers: dict[str, str]
    _file: _Path | None
    _study: Study | None

    def __init__(
        self,
        study: Study | _Path,
        *,
        as_: str,
        identity: _Path,
        listen: str | None = None,
        peer: str | None = None,
        peers: Mapping[str, str] | None = None,
        allow: Sequence[str] = (),
        ledger: _Path | None = None,
        lineage: str | None = None,
        report: _Path | None = None,
        data: _Path | None = None,
        memory: str | None = None,
        deadline: str | None = None,
        work: _Path | None = None,
        state: str | None = None,
        state_key: _Path | None = None,
        spool: bool | None = None,
        workers: int | None = None,
        keep_spine: _Path | None = None,
        spine: _Path | None = None,
        salt: _Path | None = None,
        allow_kinds: Sequence[str] = (),
        allow_studies: Sequence[str] = (),
        max_rho: Rho | None = None,
        budget: Rho | None = None,
        total: Rho | None = None,
        allow_exact: bool | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Settings as those of a party file, by the same names (``docs/cli.md``).

        One of two parties has ``listen``, an address of its own, and the other one ``peer``, that address;
        among several ``peers`` has addresses by name. ``ledger`` is ``AS.ledger`` unless told. ``report`` is
        the folder that ``run`` writes its report to; without it nothing is written. ``settings`` has further
        flags of ``tacit run`` by name: ``{"period": "90d", "period-budget": "0.5"}``. Raises InputError.
        """
        own = study if isinstance(study, Study) else Study.load(study)
        self._settings = {
            "as": as_,
            "identity": identity,
            "listen": listen,
            "peer": peer,
            "allow": allow,
            "ledger": ledger,
            "lineage": lineage,
            "report": report,
            "data": data,
            "memory": memory,
            "deadline": deadline,
            "work": work,
            "state": state,
            "state-key": state_key,
            "spool": spool,
            "workers": workers,
            "keep-spine": keep_spine,
            "spine": spine,
            "salt": salt,
            "allow-kind": allow_kinds,
            "allow-study": allow_studies,
            "max-rho": max_rho,
            "budget": budget,
            "total": total,
            "allow-exact": allow_exact,
            **{name.replace("_", "-"): value for name, value in (settings or {}).items()},
        }
        self._peers, self._file, self._study = dict(peers or {}), None, own
        self._native = self._made({})

    @staticmethod
    def load(path: _Path, **settings: str | int | bool | _Path) -> Party:
        """A party file. ``settings`` win over it, by the names of ``tacit run``'s flags: ``max_rho="0.5"``.

        Raises InputError with file, line and column.
        """
        party = Party.__new__(Party)
        party._settings = {name.rstrip("_").replace("_", "-"): value for name, value in settings.items()}
        party._peers, party._file, party._study = {}, path, None
        party._native = party._made({})
        return party

    def _made(self, over: Mapping[str, Any]) -> _tacit.Party:
        """With settings that win over those that were said."""
        said = {name: value for name, value in over.items() if value is not None}
        words = _words({**self._settings, **said})
        words += _words({"peer": [f"{name}={at}" for name, at in self._peers.items()]})
        return _tacit.Party(words, self._file, self._study._study() if self._study is not None else None)

    def _with(self, launcher: Ray | None, over: Mapping[str, Any]) -> Party:
        """This party in one run."""
        if launcher is None and all(value is None for value in over.values()):
            return self
        if launcher is not None:
            if over.get("workers") is not None:
                raise InputError("a launcher says itself how many workers it has", kind="input", code=2)
            over = {**over, "workers": launcher.workers}
        party = Party.__new__(Party)
        party.__dict__.update(self.__dict__)
        party._native = self._made(over)
        return party

    @property
    def name(self) -> str | None:
        """Which party of the study this is."""
        return self._native.name

    @property
    def study(self) -> Study:
        """The study. Raises InputError where its file cannot be read."""
        study = Study.__new__(Study)
        study._native = self._native.study()
        return study

    def check(
        self,
        data: Data | None = None,
        *,
        rows: Rows | None = None,
        mean: float | None = None,
        new_lineage: bool = False,
        spend_anyway: bool = False,
    ) -> Check:
        """Validates this side: policy, program, every row, the ledger. Sends nothing.

        Without ``data`` those of the party file are read. Raises InputError with ``places`` in the data, and
        RefusedError where a run would be refused, with the check as its ``answer``.
        """
        stop = _tacit.Stop()
        said = _Said(new_lineage, spend_anyway)
        found, refused = self._native.check(given(data, stop), said.three(), _pair(rows), mean, stop)
        check = Check(found)
        if refused is not None:
            refused.answer = check
            raise refused
        return check

    def run(
        self,
        data: Data | None = None,
        *,
        workers: int | None = None,
        memory: str | None = None,
        state: str | None = None,
        state_key: _Path | None = None,
        launcher: Ray | None = None,
        progress: Progress = True,
        new_lineage: bool = False,
        spend_anyway: bool = False,
        new_ledger: bool = False,
    ) -> Report:
        """Runs this party's half of a study while the other one does the same, and returns the report.

        ``workers``, ``memory``, ``state`` and ``state_key`` win over the party's own for this run. Workers
        are processes of this machine, or with a ``launcher`` (``tacit.Ray``) of a cluster.

        Without ``data`` those of the party file are read. The answer is in the ledger before this returns;
        the same study on the same data returns it again, at no further charge. Where this party's report is
        complete and the run fails all the same, it is the ``answer`` of the error. Raises TacitError;
        KeyboardInterrupt ends the run, and the peer hears of it.
        """
        said = _Said(new_lineage, spend_anyway, new_ledger)
        self._expects_one_run()
        over = {"workers": workers, "memory": memory, "state": state, "state-key": state_key}
        party = self._with(launcher, over)
        return party._run(data, progress, said, _tacit.Stop(), launcher)[0]

    def run_all(
        self,
        data: Data | None = None,
        *,
        launcher: Ray | None = None,
        progress: Progress = True,
        new_lineage: bool = False,
        spend_anyway: bool = False,
        new_ledger: bool = False,
    ) -> Reports:
        """As ``run``, for the publisher of a study with several advertisers apart: a report for each of them.

        Where one of the runs fails, those that are complete are the ``answer`` of its error.
        Raises TacitError.
        """
        said = _Said(new_lineage, spend_anyway, new_ledger)
        return self._with(launcher, {})._run(data, progress, said, _tacit.Stop(), launcher)

    def match(
        self,
        data: Data | None = None,
        *,
        out: _Path | None = None,
        launcher: Ray | None = None,
        progress: Progress = True,
        new_lineage: bool = False,
    ) -> MatchResult:
        """Runs this party's half of a study of kind ``match``, and returns its part.

        ``out`` is a Parquet file for the part, which must not be there yet. Without it the part is handed
        over in memory, and no file is made of it. Raises TacitError.
        """
        return self._with(launcher, {})._match(data, out, progress, _Said(new_lineage), launcher)

    def start(
        self,
        data: Data | None = None,
        *,
        workers: int | None = None,
        memory: str | None = None,
        state: str | None = None,
        state_key: _Path | None = None,
        launcher: Ray | None = None,
        new_lineage: bool = False,
        spend_anyway: bool = False,
        new_ledger: bool = False,
    ) -> Run[Report]:
        """``run`` for asyncio: an iterator of events, the last of which has the report.

        ``await`` it for the report alone. Cancelling the task, ``aclose``, or dropping it ends the run as
        Ctrl-C does. Raises TacitError.
        """
        self._expects_one_run()
        said = _Said(new_lineage, spend_anyway, new_ledger)
        over = {"workers": workers, "memory": memory, "state": state, "state-key": state_key}
        party = self._with(launcher, over)

        def call(tell: Callable[[Event], None], stop: _tacit.Stop) -> Report:
            return party._run(data, tell, said, stop, launcher)[0]

        return Run(call)

    def _expects_one_run(self) -> None:
        """Before anybody is met: a run that is over has been charged."""
        if self._native.study().runs_of(self.name or "") > 1:
            text = "this study has several advertisers apart, and a report for each: use run_all"
            raise InputError(text, kind="input", code=2)

    def start_all(
        self,
        data: Data | None = None,
        *,
        launcher: Ray | None = None,
        new_lineage: bool = False,
        spend_anyway: bool = False,
        new_ledger: bool = False,
    ) -> Run[Reports]:
        """``run_all`` for asyncio, as ``start`` is ``run``. Raises TacitError."""
        party, said = self._with(launcher, {}), _Said(new_lineage, spend_anyway, new_ledger)
        return Run(lambda tell, stop: party._run(data, tell, said, stop, launcher))

    def _run(
        self,
        data: Data | None,
        progress: Progress,
        said: _Said,
        stop: _tacit.Stop,
        launcher: Ray | None,
    ) -> Reports:
        shown = Shown(progress, self.name)
        try:
            with _workers(launcher, self.name) as workers:
                parts = self._native.run(given(data, stop), said.three(), shown.listener(), stop, workers)
        finally:
            shown.end()
        reports = Reports([Report(report) for _, report, _, _ in parts if report is not None])
        unsaved = self._save(parts)
        for _, _, error, answer in parts:
            if error is not None:
                own = Report(answer) if answer is not None else None
                error.answer = reports if len(parts) > 1 else own
                raise error
        if unsaved is not None:
            unsaved.answer = reports if len(parts) > 1 else reports[0]
            raise unsaved
        return reports

    def _save(
        self, parts: list[tuple[str, _tacit.Report | None, TacitError | None, _tacit.Report | None]]
    ) -> TacitError | None:
        """Writes what was complete where reports go. Nothing is lost where that fails: the first error."""
        folder, unsaved = self._native.report, None
        for with_, report, _, answer in parts:
            kept = report if report is not None else answer
            if folder is None or kept is None:
                continue
            try:
                kept.save(Path(folder) / with_ if len(parts) > 1 else folder)
            except TacitError as error:
                error.party = self.name
                error.hint = "the answer is in the ledger: run again, and it is given at no further charge"
                unsaved = unsaved or error
        return unsaved

    def _match(
        self,
        data: Data | None,
        out: _Path | None,
        progress: Progress,
        said: _Said,
        launcher: Ray | None,
    ) -> MatchResult:
        shown, stop = Shown(progress, self.name), _tacit.Stop()
        try:
            with _workers(launcher, self.name) as workers:
                rows, heard = given(data, stop), shown.listener()
                done, part = self._native.match(rows, (out, workers), said.three(), heard, stop)
        finally:
            shown.end()
        if part is None:
            assert out is not None
            part = _tacit.Batches.of_parquet(out)
        return MatchResult(json.loads(done), part)

    def __getstate__(self) -> dict[str, Any]:
        return {name: of for name, of in self.__dict__.items() if name != "_native"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._native = self._made({})

    def __repr__(self) -> str:
        return f"Party({self.name!r})"


class Run(AsyncIterator[Event], Generic[Reported]):
    """A run of a party under asyncio: events as they come, the last one with the report, or the reports."""

    def __init__(self, call: Callable[[Callable[[Event], None], _tacit.Stop], Reported]) -> None:
        self._call: Callable[[Callable[[Event], None], _tacit.Stop], Reported] = call
        self._stop = _tacit.Stop()
        self._queue: asyncio.Queue[Event | BaseException] | None = None
        self._over = False

    def _begin(self) -> asyncio.Queue[Event | BaseException]:
        import asyncio

        queue: asyncio.Queue[Event | BaseException] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        # The thread does not hold this object, which ends the run when nobody has it any more.
        call, stop = self._call, self._stop

        def tell(what: Event | BaseException) -> None:
            try:
                loop.call_soon_threadsafe(queue.put_nowait, what)
            except RuntimeError:
                # The loop is gone, and nobody waits for the run any more.
                stop.stop()

        def work() -> None:
            try:
                tell(Event("report", report=call(tell, stop)))
            except BaseException as error:
                tell(error)

        threading.Thread(target=work, name="tacit run", daemon=True).start()
        return queue

    async def __anext__(self) -> Event:
        import asyncio

        if self._over:
            raise StopAsyncIteration
        if self._queue is None:
            self._queue = self._begin()
        try:
            what = await self._queue.get()
        except asyncio.CancelledError:
            self._end()
            raise
        if isinstance(what, BaseException):
            self._over = True
            raise what
        self._over = what.kind == "report"
        return what

    def __await__(self) -> Generator[Any, None, Reported]:
        return self._last().__await__()

    async def _last(self) -> Reported:
        async for event in self:
            if event.kind == "report":
                report: Reported = event.report
                return report
        raise RuntimeError("a run ends with its report")

    async def aclose(self) -> None:
        """Ends the run, and the peer hears of it."""
        self._end()

    def __del__(self) -> None:
        self._stop.stop()

    def _end(self) -> None:
        self._over = True
        self._stop.stop()


def _words(settings: Mapping[str, Any]) -> list[str]:
    """Settings as flags of the command, which reads them."""
    words = []
    for name, value in settings.items():
        if value is None:
            continue
        several = isinstance(value, Sequence) and not isinstance(value, str)
        for one in value if several else [value]:
            text = os.fspath(one) if isinstance(one, os.PathLike) else str(one)
            words.append(f"--{name}={text.lower() if isinstance(one, bool) else text}")
    return words
