"""Studies: read, or built for a lift study; and what a check and a plan say of them."""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

from . import _tacit
from ._errors import InputError
from ._files import read_text, write_text
from ._keys import Key
from ._numbers import Rho, decimal_of
from ._report import Printed, Table
from ._trace import Head, Row, Step, traced

Rows = Union[int, "tuple[int, int]"]
"""Rows of both sides, or of the first party and of each other one."""
_SECONDS = 2**32 - 2
"""The largest time of 32 bits: seconds since 1970 unless a study says another clock."""


_T = TypeVar("_T")


def _several(name: str, values: Iterable[_T]) -> list[_T]:
    """A list of what an argument has: one text is none, though Python goes through its letters."""
    if isinstance(values, str):
        text = f"{name}={values!r} is one text: hand over a list, {name}=[{values!r}]"
        raise InputError(text, kind="input", code=2)
    return list(values)


@dataclass(frozen=True)
class Identifier:
    """A column by which rows are matched, and how its values are made alike first."""

    name: str
    normalise: Sequence[str] = ()


class Match:
    """How rows are matched: a protocol, and the identifiers that it compares."""

    def __init__(
        self,
        protocol: str,
        *,
        identifiers: Sequence[Identifier | str],
        duplicates: str = "error",
        **settings: Any,
    ) -> None:
        """Further settings are those of ``[match]``."""
        several = _several("identifiers", identifiers)
        made = [Identifier(one) if isinstance(one, str) else one for one in several]
        tables: list[dict[str, Any]] = [
            {"name": one.name, **({"normalise": _several("normalise", one.normalise)} if one.normalise else {})}
            for one in made
        ]
        self._said = {"protocol": protocol, "identifiers": tables, "duplicates": duplicates, **settings}


@dataclass(frozen=True)
class Prices:
    """What cores and bytes cost, for a plan in dollars."""

    name: str
    text: str

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Prices:
        """A file like ``docs/prices-2026.toml``. The plan raises a mistake in it, this InputError."""
        return Prices(os.fspath(path), read_text(path))

    @staticmethod
    def aws_2026() -> Prices:
        """The list prices that ``docs/prices-2026.toml`` has."""
        return Prices("prices-2026.toml", _tacit.prices_2026())


class Check(Printed):
    """What a check found: the JSON of ``tacit check --json``, and its ``text``, which a notebook shows."""


class Plan(Printed):
    """What a study will cost: the JSON of ``tacit plan --json``, and its ``text``, which a notebook shows."""

    def to_pandas(self) -> Any:
        """The stages as a frame of pandas, which must be installed."""
        return self._stages().to_pandas()

    def to_polars(self) -> Any:
        """The stages as a frame of polars, which must be installed."""
        return self._stages().to_polars()

    def _stages(self) -> Table:
        stages = [{**stage, "bytes": sum(stage["bytes_sent"].values())} for stage in self.to_dict()["stages"]]
        flat = [
            {name: of for name, of in stage.items() if not isinstance(of, (dict, list))} for stage in stages
        ]
        return Table(flat)


def _pair(rows: Rows | None) -> tuple[int, int] | None:
    pair = (rows, rows) if isinstance(rows, int) else rows
    if pair is not None and any(not 0 <= count < 1 << 64 for count in pair):
        raise InputError(f"rows={rows!r}: numbers of rows are from 0 to 2^64 - 1", kind="input", code=2)
    return pair


class Study:
    """What all parties agree on. It stays as it is; ``hash`` is what they consent to."""

    def __init__(self, text: str, *, name: str = "study") -> None:
        """The text of a study file; messages call it ``name``. Raises InputError with file, line, column."""
        self._native: _tacit.Study | None = _tacit.Study.parse(name, text)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Study:
        """Reads a study file. Raises InputError with file, line and column."""
        study = Study.__new__(Study)
        study._native = _tacit.Study.load(path)
        return study

    @staticmethod
    def lift(name: str, *, title: str) -> LiftStudy:
        """Begins a lift study: did the treatment change the outcome, and by how much."""
        return LiftStudy(name, title)

    @staticmethod
    def program(
        name: str,
        row: Row,
        *steps: Step,
        parties: Mapping[str, str | Key],
        match: Match,
        title: str | None = None,
        rows: Literal["matched", "any", "aligned"] = "matched",
        exact: bool = False,
        rho: Rho | Mapping[str, Rho] | None = None,
        degrees: Mapping[str, int] | None = None,
        alone: Mapping[str, int] | None = None,
        **sections: Mapping[str, Any],
    ) -> Study:
        """A study of a program, which these functions make: ``row, release``, or ``row, combine, release``.

        ``row`` has a parameter for each column, annotated with type and owner (``tacit.u16["shop"]``), and
        returns values by name; or it is columns by name. ``combine`` has the values that it names as
        parameters (``**values``: all others), and returns sums; where there is none, ``row`` does.
        ``release`` has a ``tacit.Release`` and the sums. In their place questions may stand: ``tacit.Ask``. Each function is called once; what it
        reads from outside becomes constants. ``text`` shows the program.

        ``parties`` has the key of each by name, ``rows`` whose rows are met, ``rho`` what each viewer may be
        charged: what the verifier derives, unless told. ``exact`` is the class of programs without noise,
        ``degrees`` and ``alone`` are for matches of several identifiers (``docs/program.md``), further
        sections those of a study file (``compute={"engine": "gmw"}``). Raises TraceError.
        """
        if not isinstance(match, Match):
            text = f'match={match!r}: hand over tacit.Match("pid", identifiers=["NAME"])'
            raise InputError(text, kind="input", code=2)
        names = sorted(parties)
        made = traced(Head(name, names, rows, exact, degrees or {}, alone or {}), row, steps)
        columns = {
            column: {"party": of.owner, "column": of.source or column} for column, of in made.columns.items()
        }
        said: dict[str, Any] = {
            "format": "tacit-study/1",
            "name": name,
            "kind": "program",
            "title": title or name,
            "party": {party: {"key": str(parties[party])} for party in names},
            "match": match._said,
            "columns": columns,
            "program": {"text": made.text},
            **{section: of for section, of in sections.items() if of},
        }
        charged = {viewer: _charge(of) for viewer, of in made.rho.items()} if rho is None else rho
        if charged:
            said["release"] = {**sections.get("release", {}), **_viewers(charged)}
        study = Study.__new__(Study)
        study._native = _built(name, said)
        return study

    def _study(self) -> _tacit.Study:
        assert self._native is not None
        return self._native

    @property
    def text(self) -> str:
        """The text of the program (``docs/program.md``); InputError where the study is of another kind."""
        text = self._study().program
        if text is None:
            raise InputError("this study is of no program; toml() is its text", kind="input", code=2)
        return text

    @property
    def name(self) -> str:
        """The short name."""
        return self._study().name

    @property
    def title(self) -> str:
        """One line for people."""
        return self._study().title

    @property
    def hash(self) -> str:
        """The hash in full, 64 hex digits: that of ``tacit check`` for a file that says the same."""
        return self._study().hash

    @property
    def parties(self) -> dict[str, str]:
        """The keys of the parties by their names, in the order of the study."""
        return dict(self._study().parties)

    def toml(self) -> str:
        """The canonical text: one for all studies that say the same in the same words, without comments."""
        return _tacit.canonical(self.name, self._study().text)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the canonical text, which the command reads; never over a study that says another thing.

        Raises InputError where a file is there that says something else, FileError where none can be
        written.
        """
        path, text = Path(path), self.toml()
        if path.exists() and read_text(path) != text:
            raise InputError(
                f"{path} is there and says something else: remove it, or name another file",
                kind="input",
                code=2,
            )
        write_text(path, text)
        return path

    def check(
        self,
        *,
        rows: Rows | None = None,
        mean: float | None = None,
        peer: Study | str | os.PathLike[str] | None = None,
    ) -> Check:
        """Validates the study alone: what is revealed to whom, what it is charged, what it costs.

        ``rows`` are those that the price is for (1 M on each side unless told), ``mean`` your guess of the
        control arm's mean outcome per person. ``peer`` is the other side's study, or its file: where it says
        something else, the error names the first setting that differs. Raises InputError or RefusedError.
        """
        theirs = None
        if isinstance(peer, Study):
            theirs = ("the peer's", peer._study().text)
        elif peer is not None:
            theirs = (os.fspath(peer), Study.load(peer)._study().text)
        return Check(self._study().check(_pair(rows), mean, theirs))

    def plan(
        self,
        *,
        rows: Rows,
        both: int | None = None,
        link: str = "10gbps,1ms",
        mean: float | None = None,
        cores: int = 1,
        price: Prices | None = None,
        between: Literal["zone", "zones", "internet"] = "zones",
    ) -> Plan:
        """States bytes, time and privacy cost of every stage; with ``price`` also dollars.

        ``both`` are rows that both of two parties have, ``link`` is bandwidth each way and round-trip time,
        ``cores`` are those of each party. Raises InputError.
        """
        pair = _pair(rows)
        assert pair is not None
        told = None if price is None else (price.name, price.text)
        return Plan(self._study().plan(pair, link, mean, cores, told, between, both))

    def __getstate__(self) -> dict[str, Any]:
        study = self._study()
        return {"name": study.name, "text": study.text}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._native = _tacit.Study.parse(state["name"], state["text"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Study) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"Study({self.name!r}, hash={self.hash[:12]!r})"


class LiftStudy(Study):
    """A lift study in the making. Every call returns a new one; it is checked when it is first used, which
    raises InputError where settings do not fit each other."""

    def __init__(self, name: str, title: str, _said: Mapping[str, Any] | None = None) -> None:
        head = {"format": "tacit-study/1", "name": name, "kind": "lift", "title": title}
        self._said: dict[str, Any] = dict(_said) if _said is not None else head
        self._native = None

    def publisher(self, name: str, *, key: str | Key) -> LiftStudy:
        """The party that knows the arms."""
        return self._with("party", {name: {"role": "publisher", "key": str(key)}})

    def advertiser(self, name: str, *, key: str | Key) -> LiftStudy:
        """A party that knows outcomes."""
        return self._with("party", {name: {"role": "advertiser", "key": str(key)}})

    def match(
        self,
        protocol: str,
        *,
        identifiers: Sequence[Identifier | str],
        duplicates: str = "error",
        **settings: Any,
    ) -> LiftStudy:
        """How rows are matched; further settings are those of ``[match]``. The last call counts alone.

        Raises InputError.
        """
        match = Match(protocol, identifiers=identifiers, duplicates=duplicates, **settings)
        return self._with("match", match._said, anew=True)

    def time(self, *, origin: datetime.date | str, unit: str, span: int) -> LiftStudy:
        """From when times are counted, in what unit, and how many of them there are. Raises InputError."""
        try:
            date = datetime.date.fromisoformat(origin) if isinstance(origin, str) else origin
        except ValueError as error:
            text = f"origin={origin!r} is no day: hand over a datetime.date, or '1970-01-01'"
            raise InputError(text, kind="input", code=2) from error
        return self._with("time", {"origin": date, "unit": unit, "span": span})

    def opportunity(self, column: str, *, type: str = "time") -> LiftStudy:
        """The publisher's column that says when a person could first have been reached."""
        return self._with("publisher", {"opportunity": {"column": column, "type": type}})

    def arm(self, column: str, *, test: str, control: str, leave_out: Sequence[str] = ()) -> LiftStudy:
        """The publisher's column of arms, and their names in it; rows of ``leave_out`` do not count.

        Raises InputError.
        """
        said: dict[str, Any] = {"column": column, "test": test, "control": control}
        said.update({"leave_out": _several("leave_out", leave_out)} if leave_out else {})
        return self._with("publisher", {"arm": said})

    def impressions(self, column: str, *, type: str = "u16") -> LiftStudy:
        """The publisher's column of impressions, which counts of reached people need."""
        return self._with("publisher", {"impressions": {"column": column, "type": type}})

    def breakdown(self, column: str, *, values: Sequence[str]) -> LiftStudy:
        """The publisher's column of groups that have results of their own; its values are public.

        Raises InputError.
        """
        return self._with("publisher", {"breakdown": {"column": column, "values": _several("values", values)}})

    def events(
        self,
        column: str | Sequence[str],
        *,
        value: str | int | Sequence[str] = 1,
        type: str = "u32",
        unit: str | None = None,
        scale: int | None = None,
        negative: Literal["error", "leave-out", "net"] | None = None,
        max_events: int = 4,
        overflow: str = "keep-earliest",
    ) -> LiftStudy:
        """The advertiser's events, one a line: the column of times, the column of values or a constant value.

        Of a person who has one line with all events (the wide layout) ``column`` is a list of the columns of
        times, and ``value`` a list of as many columns, or a constant. ``negative`` says what a value below 0
        is: a mistake unless told, ``leave-out``, or ``net``, a refund (``docs/files.md``). ``max_events`` are
        those of one person that count, ``overflow`` says which.
        """
        of: dict[str, Any] = {"constant": value}
        if not isinstance(value, int):
            said = {"type": type, "unit": unit, "scale": scale, "negative": negative}
            of = {**_columns(value), **{name: one for name, one in said.items() if one is not None}}
        event = {**_columns(column), "type": "time"}
        layout = "events" if isinstance(column, str) else "wide"
        events = {"layout": layout, "event": event, "value": of, "max_events": max_events}
        return self._with("advertiser", {**events, "overflow": overflow})

    def where(self, column: str, *, equals: Sequence[str]) -> LiftStudy:
        """Only these lines of the advertiser are events. Raises InputError."""
        said = {"column": column, "equals": _several("equals", equals)}
        return self._with("advertiser", {"where": said})

    def cohort(self, column: str, *, values: Sequence[str]) -> LiftStudy:
        """The advertiser's column of groups that have results of their own; its values are public.

        Raises InputError.
        """
        said = {"column": column, "values": _several("values", values)}
        return self._with("advertiser", {"cohort": said})

    def clamp(self, most: int) -> LiftStudy:
        """R: the most that one person adds to the total."""
        return self.counting(clamp=most)

    def counting(self, **settings: Any) -> LiftStudy:
        """Settings of ``[lift]``: counts_after, within, clamp, lower_is_better."""
        return self._with("lift", settings)

    def release(
        self,
        *,
        rho: Rho | Mapping[str, Rho],
        mode: str = "sums",
        confidence: Rho = "0.95",
        also: Sequence[str] = (),
        **settings: Any,
    ) -> LiftStudy:
        """What is released: one public result for a rho, or to each party named its own for its rho.

        ``public`` among the names is everybody. Further settings are those of ``[release]``. A second call
        replaces all that the first one said. Raises InputError.
        """
        said: dict[str, Any] = {"mode": mode, "confidence": decimal_of(confidence), **settings}
        said.update({"also": _several("also", also)} if also else {})
        return self._with("release", {**said, **_viewers(rho)}, anew=True)

    def privacy(self, *, unit: str) -> LiftStudy:
        """What one row stands for, in a word or two that fit after "one": ``child``."""
        return self._with("privacy", {"unit": unit})

    def compute(self, **settings: Any) -> LiftStudy:
        """Settings of ``[compute]``: engine, shards, ot."""
        return self._with("compute", settings)

    def __getstate__(self) -> dict[str, Any]:
        return {"said": self._said}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._said, self._native = state["said"], None

    def _with(self, section: str, said: Mapping[str, Any], *, anew: bool = False) -> LiftStudy:
        before = {} if anew else self._said.get(section, {})
        all_said = {**self._said, section: {**before, **said}}
        return LiftStudy(self._said["name"], self._said["title"], all_said)

    def _study(self) -> _tacit.Study:
        if self._native is None:
            said = dict(self._said)
            # What every lift study says; sides that say another thing stand.
            said.setdefault("time", {"origin": datetime.date(1970, 1, 1), "unit": "second", "span": _SECONDS})
            said["lift"] = {"counts_after": "opportunity", **said.get("lift", {})}
            self._native = _built(self._said["name"], said)
        return self._native


def _built(name: str, said: Mapping[str, Any]) -> _tacit.Study:
    """A study of what calls said. Nobody wrote its text, so its mistakes name settings and no lines."""
    try:
        return _tacit.Study.parse(name, _tacit.canonical(name, _toml(said)))
    except InputError as error:
        text = re.sub(rf"{re.escape(name)}, line \d+(?:, column \d+)?", name, str(error))
        raise InputError(text, kind=error.kind, code=error.code, hint=error.hint) from None


def _columns(of: str | Sequence[str]) -> dict[str, Any]:
    """A column, or those of the wide layout."""
    return {"column": of} if isinstance(of, str) else {"columns": list(of)}


def _viewers(rho: Rho | Mapping[str, Rho]) -> dict[str, Any]:
    """What each viewer may be charged, as ``[release]`` has it."""
    own = rho if isinstance(rho, Mapping) else {"public": rho}
    to = {name: {"rho": decimal_of(of)} for name, of in own.items() if name != "public"}
    public = {"public": {"rho": decimal_of(own["public"])}} if "public" in own else {}
    return {**public, **({"to": to} if to else {})}


def _charge(rho: Fraction) -> Decimal:
    """No less, with as many digits as a study has."""
    return decimal_of(Fraction(-(-rho.numerator * 10**9 // rho.denominator), 10**9))


def _toml(said: Mapping[str, Any]) -> str:
    """Any text that says it; the canonical one is made of it by the program."""
    return "".join(f"{json.dumps(name)} = {_value(value)}\n" for name, value in said.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{json.dumps(str(name))} = {_value(one)}" for name, one in value.items())
        return f"{{ {pairs} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
