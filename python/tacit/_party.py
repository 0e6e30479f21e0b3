"""A party of a study: check, run, match."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from . import _tacit
from ._data import Data, given
from ._numbers import Rho
from ._progress import Event, Shown
from ._report import Fields, Report, Reports, _to_arrow, _to_pandas, _to_polars
from ._study import Check, Rows, Study, _pair

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Progress = Union[bool, Callable[[Event], None]]
"""Whether progress is shown; or who is told of every event, on the thread that called."""
_Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class _Said:
    """What an operator says for one run."""

    new_lineage: bool = False
    spend_anyway: bool = False
    new_ledger: bool = False

    def three(self) -> tuple[bool, bool, bool]:
        return self.new_lineage, self.spend_anyway, self.new_ledger


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
    """One party of a study, on this machine. It stays as it is, and holds no secret."""

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
        words = _words(
            {
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
                **(settings or {}),
            }
        ) + _words({"peer": [f"{name}={at}" for name, at in (peers or {}).items()]})
        self._native = _tacit.Party(words, None, own._study())

    @staticmethod
    def load(path: _Path, **settings: str | int | bool | _Path) -> Party:
        """A party file. ``settings`` win over it, by the names of ``tacit run``'s flags: ``max_rho="0.5"``.

        Raises InputError with file, line and column.
        """
        party = Party.__new__(Party)
        words = _words({name.rstrip("_").replace("_", "-"): value for name, value in settings.items()})
        party._native = _tacit.Party(words, path, None)
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
        check = Check(json.loads(found))
        if refused is not None:
            refused.answer = check
            raise refused
        return check

    def run(
        self,
        data: Data | None = None,
        *,
        progress: Progress = True,
        new_lineage: bool = False,
        spend_anyway: bool = False,
        new_ledger: bool = False,
    ) -> Report:
        """Runs this party's half of a study while the other one does the same, and returns the report.

        Without ``data`` those of the party file are read. The answer is in the ledger before this returns;
        the same study on the same data returns it again, at no further charge. Where this party's report is
        complete and the run fails all the same, it is the ``answer`` of the error. Raises TacitError;
        KeyboardInterrupt ends the run, and the peer hears of it.
        """
        said = _Said(new_lineage, spend_anyway, new_ledger)
        reports = self._run(data, progress, said, _tacit.Stop())
        if len(reports) != 1:
            raise RuntimeError("several advertisers apart: use run_all")
        return reports[0]

    def run_all(
        self,
        data: Data | None = None,
        *,
        progress: Progress = True,
        new_lineage: bool = False,
        spend_anyway: bool = False,
        new_ledger: bool = False,
    ) -> Reports:
        """As ``run``, for the publisher of a study with several advertisers apart: a report for each of them.

        Where one of the runs fails, those that are complete are the ``answer`` of its error.
        """
        said = _Said(new_lineage, spend_anyway, new_ledger)
        return self._run(data, progress, said, _tacit.Stop())

    def match(
        self,
        data: Data | None = None,
        *,
        out: _Path | None = None,
        progress: Progress = True,
        new_lineage: bool = False,
    ) -> MatchResult:
        """Runs this party's half of a study of kind ``match``, and returns its part.

        ``out`` is a Parquet file for the part, which must not be there yet; without it the part is in memory
        alone. Raises TacitError.
        """
        return self._match(data, out, progress, _Said(new_lineage), _tacit.Stop())

    def start(self, data: Data | None = None, **said: bool) -> Run:
        """``run`` for asyncio: an iterator of events, the last of which has the report.

        ``await`` it for the report alone. Cancelling the task, ``aclose``, or dropping it ends the run as
        Ctrl-C does. ``said`` is what ``run`` takes: new_lineage, spend_anyway, new_ledger.
        """
        return Run(self, data, _Said(**said))

    def _run(self, data: Data | None, progress: Progress, said: _Said, stop: _tacit.Stop) -> Reports:
        shown = Shown(progress)
        try:
            parts = self._native.run(given(data, stop), said.three(), shown.listener(), stop)
        finally:
            shown.end()
        reports = Reports([Report(report) for _, report, _, _ in parts if report is not None])
        folder = self._native.report
        if folder is not None:
            for with_, report, _, answer in parts:
                kept = report if report is not None else answer
                if kept is not None:
                    kept.save(Path(folder) / with_ if len(parts) > 1 else folder)
        for _, _, error, answer in parts:
            if error is not None:
                own = Report(answer) if answer is not None else None
                error.answer = reports if len(parts) > 1 else own
                raise error
        return reports

    def _match(
        self, data: Data | None, out: _Path | None, progress: Progress, said: _Said, stop: _tacit.Stop
    ) -> MatchResult:
        shown = Shown(progress)
        with tempfile.TemporaryDirectory(prefix="tacit-match-") as folder:
            file = Path(out) if out is not None else Path(folder) / "part.parquet"
            try:
                done = self._native.match(given(data, stop), file, said.three(), shown.listener(), stop)
            finally:
                shown.end()
            fields = json.loads(done)
            if out is None:
                del fields["file"]
            return MatchResult(fields, _tacit.Batches.of_parquet(file))

    def __repr__(self) -> str:
        return f"Party({self.name!r})"


class Run(AsyncIterator[Event]):
    """A run of a party under asyncio: events as they come, the last one with the report."""

    def __init__(self, party: Party, data: Data | None, said: _Said) -> None:
        self._party, self._data, self._said = party, data, said
        self._stop = _tacit.Stop()
        self._queue: asyncio.Queue[Event | BaseException] | None = None
        self._over = False

    def _begin(self) -> asyncio.Queue[Event | BaseException]:
        queue: asyncio.Queue[Event | BaseException] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        # The thread does not hold this object, which ends the run when nobody has it any more.
        party, data, said, stop = self._party, self._data, self._said, self._stop

        def tell(what: Event | BaseException) -> None:
            try:
                loop.call_soon_threadsafe(queue.put_nowait, what)
            except RuntimeError:
                # The loop is gone, and nobody waits for the run any more.
                stop.stop()

        def work() -> None:
            try:
                reports = party._run(data, tell, said, stop)
                tell(Event("report", report=reports[0] if len(reports) == 1 else reports))
            except BaseException as error:
                tell(error)

        threading.Thread(target=work, name="tacit run", daemon=True).start()
        return queue

    async def __anext__(self) -> Event:
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

    def __await__(self) -> Generator[Any, None, Any]:
        return self._last().__await__()

    async def _last(self) -> Any:
        async for event in self:
            if event.kind == "report":
                return event.report
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
