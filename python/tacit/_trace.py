"""Programs by tracing: functions are called once, and what they do to values becomes a program's text."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Union

from ._ask import Ask
from ._columns import Column, quoted
from ._errors import Place
from ._numbers import Rho, rho_text
from ._value import CURRENT, Draft, Fold, Line, TraceError, Value, caller, mistake

Row = Union[Callable[..., Mapping[str, Value]], Mapping[str, Column]]
"""What is computed of each row: a function whose parameters are columns. Or columns alone, by name."""
Step = Union[Ask, Callable[..., Any]]
"""What comes behind the row: a release function, a combine function before it, or questions."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_MECHANISMS = ("gaussian", "joint")
_ROWS = 2**32
"""The most rows of a study: for so many it is proved that sums do not wrap, as a check does."""


@dataclass(frozen=True)
class Traced:
    """A program that functions made."""

    text: str
    columns: dict[str, Column]
    rho: dict[str, Fraction]
    """What each viewer is charged, as the verifier derives it."""


@dataclass(frozen=True)
class Head:
    """What a program says before its rows."""

    name: str
    parties: Sequence[str]
    rows: str
    exact: bool
    degrees: Mapping[str, int]
    alone: Mapping[str, int]

    def lines(self, asks: bool) -> list[str]:
        """As a program's text has it, but for the columns."""
        said = ["tacit-program/2", f"name {quoted(self.name)}"]
        said += [] if asks else [f"class {'exact' if self.exact else 'dp'}"]
        said += [] if self.rows == "matched" else [f"rows {self.rows}"]
        said += [f"party {party}" for party in self.parties]
        said += [f"degree {party} {number}" for party, number in self.degrees.items()]
        said += [f"alone {party} {number}" for party, number in self.alone.items()]
        return said


class Noised(Sequence[Value]):
    """What a mechanism makes of its sums: a value for each."""

    def __init__(self, draft: Draft, mechanism: Line, outputs: int) -> None:
        self._draft = draft
        self._mechanism = mechanism
        self._outputs = outputs

    def __len__(self) -> int:
        return self._outputs

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(f"the mechanism has {len(self)} outputs, from 0")
        return Value(self._draft, self._draft.add(["noised", self._mechanism, str(at % len(self))]))


class Release:
    """What a release function is given first: noise, and who is shown what.

    ``rho`` is what a mechanism costs its viewer, who is a party or ``"public"``. What one row changes the
    verifier derives, and how much noise that takes. What it does not verify raises TraceError at the line
    that asks for it.
    """

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    def gaussian(self, viewer: str, *, rho: Rho, of: Sequence[Fold]) -> Noised:
        """A discrete Gaussian on each of these sums, which are of cells that share no row.

        Raises TraceError.
        """
        return self._noise(["gaussian", viewer, rho_text(rho), *map(_fold_line, of)], len(of))

    def joint(
        self, viewer: str, *, rho: Rho, clamp: int, cells: Sequence[Sequence[Fold]], known: bool = False
    ) -> Noised:
        """n, S and Q of each cell by one mechanism (``docs/program.md``): rows, a sum, and of its square.

        ``clamp`` is the most that a row adds to S; ``known``: the viewer's own columns decide the cells.
        Raises TraceError.
        """
        outputs = 1 if clamp == 1 and known else 2 if clamp == 1 or known else 3
        rows = "known" if known else "hidden"
        words = ["joint", viewer, rho_text(rho), "rows", rows, "clamp", str(clamp)]
        folds = [_fold_line(fold) for cell in cells for fold in cell]
        return self._noise([*words, *folds], outputs * len(cells))

    def reveal(self, value: Value, viewer: str, label: str) -> None:
        """Shows a value to a party or to ``"public"``, under a label of its own. Raises TraceError."""
        self._draft.put(Line(["reveal", value._ref(), viewer, quoted(label)], caller()))

    def reveal_rows(self, of: Fold, party: str, label: str) -> None:
        """Shows a party the collected bit of every row. Raises TraceError."""
        self._draft.put(Line(["reveal-rows", _fold_line(of), party, quoted(label)], caller()))

    def _noise(self, words: list[str | Line], outputs: int) -> Noised:
        return Noised(self._draft, self._draft.mechanism(words), outputs)


def _fold_line(fold: Fold) -> Line:
    if not isinstance(fold, Fold) or fold.fold is None:
        raise mistake(f"{fold!r} is no sum that the row or combine function returned")
    return fold.fold


def traced(head: Head, row: Row, steps: Sequence[Step]) -> Traced:
    """Calls the functions once. Raises TraceError at the caller's line."""
    at = caller()
    asks = [one for one in steps if isinstance(one, Ask)]
    if not steps or len(asks) not in (0, len(steps)) or (not asks and len(steps) > 2):
        text = (
            "behind the row comes a release function, a combine function before it, or questions (tacit.Ask)"
        )
        raise mistake(text, at)
    columns = dict(row) if isinstance(row, Mapping) else _columns(row)
    _named(columns, "columns", at)
    draft = Draft()
    before = CURRENT.set(draft)
    try:
        above = [(text, at) for text in head.lines(asks=bool(asks))]
        above += [(column.words(name), _place_of(row)) for name, column in columns.items()]
        for text, place in [*above, ("row", at)]:
            draft.head(text, place)
        draft.reserve(columns)
        given = {name: Value(draft, None, (name, column)) for name, column in columns.items()}
        made = given if isinstance(row, Mapping) else _returned(row, row(**given))
        if asks:
            lines = _asked(draft, {**given, **made}, asks, columns)
        else:
            folds = made
            if len(steps) == 2:
                folds = _returned(steps[0], _call(steps[0], made))
                _want(draft, made)
            _fold_all(draft, folds, row if len(steps) == 1 else steps[0])
            lines = _released(draft, steps[-1], folds, columns)
    finally:
        CURRENT.reset(before)
        draft.is_open = False
    return _verified([*above, *lines], columns)


def _columns(row: Callable[..., Mapping[str, Value]]) -> dict[str, Column]:
    """The columns that a function's parameters are annotated with."""
    place = _place_of(row)
    try:
        hints = inspect.get_annotations(row, eval_str=True)
    except NameError:
        hints = inspect.get_annotations(row)
    columns = {}
    for name, parameter in inspect.signature(row).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise mistake(f"*{name} is no column: name each", place)
        hint = hints.get(name)
        column = next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Column)), hint)
        if isinstance(column, str):
            text = f"the annotation of {name} names what is local to a function: make it a name of the module"
            raise mistake(f"{text}, or leave out `from __future__ import annotations`", place)
        if not isinstance(column, Column):
            text = f'the parameter {name} says no column: write {name}: tacit.u16["party"]'
            raise mistake(f'{text}, or Annotated[tacit.Value, tacit.u16["party"]] for type checkers', place)
        columns[name] = column
    return columns


def _place_of(function: Any) -> Place:
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    if code is None or Path(code.co_filename).parent == Path(__file__).parent:
        return caller()
    return Place(code.co_filename, code.co_firstlineno, None)


def _named(of: Mapping[str, Any], what: str, place: Place) -> None:
    for name in of:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            text = f"{name!r} is no name for one of the {what}: a letter or _, then letters, digits, _ and -"
            raise mistake(f"{text}, at most 64", place)


def _returned(function: Any, made: Any) -> dict[str, Value]:
    """The values that a function returned, by name."""
    place = _place_of(function)
    if not isinstance(made, Mapping) or not all(isinstance(one, Value) for one in made.values()):
        name = getattr(function, "__name__", "the function")
        raise mistake(f"{name} has to return a dictionary of values by name, and returned {made!r}", place)
    _named(made, "values", place)
    return dict(made)


def _call(function: Any, values: Mapping[str, Value], *first: Release) -> Any:
    """Calls a function with the values that it names."""
    place = _place_of(function)
    parameters = list(inspect.signature(function).parameters.values())[len(first) :]
    names = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
    if len(names) < len(parameters):
        names += [one for one in values if one.replace("-", "_") not in names]
    unknown = [
        name for name in names if name.replace("_", "-") not in {one.replace("_", "-") for one in values}
    ]
    if unknown:
        text = f"nothing returned is called {unknown[0]}: there is {', '.join(values)}"
        raise mistake(text, place)
    alike: dict[str, list[str]] = {}
    for name in values:
        alike.setdefault(name.replace("-", "_"), []).append(name)
    for name in names:
        of = alike[name.replace("-", "_")]
        if len(of) > 1:
            raise mistake(f"{' and '.join(of)} are both {name} here: return them by other names", place)
    return function(*first, **{name: values[alike[name.replace("-", "_")][0]] for name in names})


def _fold_all(draft: Draft, folds: Mapping[str, Value], function: Any) -> None:
    draft.head("combine", caller())
    draft.section = "combine"
    for name, fold in folds.items():
        if not isinstance(fold, Fold):
            text = f"{name} is a value of each row: return tacit.sum({name}), or have a combine function"
            raise mistake(text, _place_of(function))
        if fold.fold is None:
            fold.fold = draft.put(Line(fold.words, fold.place, name, name))


def _released(
    draft: Draft, release: Any, folds: Mapping[str, Value], columns: Iterable[str]
) -> list[tuple[str, Place]]:
    """Calls the release function; all lines behind the head."""
    draft.head("release", caller())
    draft.section = "release"
    _call(release, folds, Release(draft))
    at = caller()
    lines: list[tuple[str, Place]] = []
    for section, of in draft.lines.items():
        _rename(of, columns if section == "row" else ())
        lines += [(section, at), *((line.text(), line.place) for line in of)]
    return lines


def _asked(
    draft: Draft, made: Mapping[str, Value], asks: Sequence[Ask], columns: Iterable[str]
) -> list[tuple[str, Place]]:
    """The row section, if something is computed, and the questions behind it."""
    for name, value in made.items():
        if isinstance(value, Fold):
            raise mistake(f"{name} is a sum, and questions sum by themselves: return the value", value.place)
    _want(draft, made)
    row = draft.lines["row"]
    _rename(row, columns)
    asked = [line for ask in asks for line in ask._read(made)]
    computed = [("row", caller()), *((line.text(), line.place) for line in row)] if row else []
    return [*computed, *asked]


def _want(draft: Draft, made: Mapping[str, Value]) -> None:
    """Values are to be called what a function returned them as."""
    names: dict[int, str] = {}
    for name, value in made.items():
        is_column = value._column is not None and value._column[0] == name
        if isinstance(value, Fold) or (is_column and value._line is None):
            continue
        line = value._ref()
        if id(line) in names:
            text = f"{names[id(line)]} and {name} are the same value: return it by one name"
            raise mistake(text, line.place)
        names[id(line)] = name
    for line in draft.lines["row"]:
        own = names.get(id(line))
        line.wanted = own or (None if line.wanted in made else line.wanted)


def _rename(lines: Sequence[Line], columns: Iterable[str]) -> None:
    """Gives every value the name that it is wanted to have, and the others numbers. A column keeps its name
    also where no line reads it: a question may."""
    taken = {*columns, *(line.wanted for line in lines if line.wanted is not None)}
    free = {prefix: _free(prefix, taken) for prefix in "vm"}
    for line in lines:
        if line.name is not None:
            line.name = line.wanted or next(free["m" if line.words[0] in _MECHANISMS else "v"])


def _free(prefix: str, taken: Container[str | None]) -> Iterator[str]:
    """Numbered names that nothing has."""
    names = (f"{prefix}{number}" for number in itertools.count())
    return (name for name in names if name not in taken)


def _verified(lines: Sequence[tuple[str, Place]], columns: dict[str, Column]) -> Traced:
    """Reads the whole text again, with its final names, and verifies it."""
    draft = Draft()
    for text, place in lines:
        draft.head(text, place)
    try:
        charged = draft.native.verified(_ROWS)
    except ValueError as error:
        raise _at_caller(str(error), lines) from None
    rho = {viewer: Fraction(number) for viewer, number in charged}
    return Traced("".join(f"{text}\n" for text, _ in lines), columns, rho)


def _at_caller(text: str, lines: Sequence[tuple[str, Place]]) -> TraceError:
    """A refusal, at a line of the caller's that it names, else where the program is made."""
    fold = re.match(r"f(\d+): ", text)
    if fold is not None:
        folds = lines[[line for line, _ in lines].index("combine") + 1 :]
        line, place = folds[int(fold[1])]
        return mistake(f"{line}: {text[fold.end() :]}", place)
    named = [one for _, one in lines if f"{one.file}, line {one.line}" in text]
    # The last one is what a mechanism noises; it stands behind the mechanism.
    named = sorted(dict.fromkeys(named), key=lambda one: -text.index(f"{one.file}, line {one.line}"))
    at = named[0] if named else caller()
    begins = f"{at.file}, line {at.line}: "
    whole = begins + text.removeprefix(begins).replace(f"({at.file}, line ", "(line ")
    if "rule R9" in text:
        whole += '. Here: bit & tacit.present("party"), or tacit.select(tacit.present("party"), value, 0)'
    return TraceError(whole, kind="input", code=2, places=named or [at])
