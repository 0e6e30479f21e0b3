"""Questions: what viewers are told, a call each, as lines of ``ask`` in a program's text."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Union

from ._errors import Place
from ._numbers import Number, Rho, end_text, rho_text
from ._value import caller, mistake

End = Union[Number, datetime.date]
"""A number in its column's unit, or a day."""
Statistic = Literal[
    "mean",
    "share",
    "variance",
    "standard-deviation",
    "difference",
    "ratio",
    "risk-difference",
    "risk-ratio",
    "odds-ratio",
    "needed-to-treat",
]
"""What is said of each group (the first four), or of each against the first one."""


@dataclass(frozen=True)
class Between:
    """A value, and where it is taken to lie: see ``between``."""

    name: str
    low: str
    high: str


@dataclass(frozen=True)
class Groups:
    """The groups that a value makes: see ``edges`` and ``values``."""

    name: str
    word: str
    numbers: Sequence[str]


Asked = Union[str, Between]
"""A value by its name; with bounds by ``between`` where the program gives it none."""


def between(name: str, low: End, high: End) -> Between:
    """A value taken to lie between two numbers in its unit: what is beyond counts as the nearer end."""
    return Between(name, _end(low), _end(high))


def edges(name: str, *ends: End) -> Groups:
    """Groups of a value: from each edge on, below the next one; the last one with its upper edge."""
    return Groups(name, "edges", [_end(end) for end in ends])


def values(name: str, *numbers: End) -> Groups:
    """Groups of a value: where it is each of these."""
    return Groups(name, "values", [_end(number) for number in numbers])


def _end(end: End) -> str:
    text = end_text(end)
    if text is None:
        raise mistake(f"{end!r} is no number and no datetime.date")
    return text


class Ask:
    """What one viewer is told, for so much rho together (``docs/questions.md``).

    Values are named as the row function returns them, or as columns. Every call adds a question, and
    returns a new Ask. Questions share the rho by their ``weight``; a count or sum may say the accuracy that
    it wants instead: ``within=50`` takes what makes half of its 95 % interval 50. Rows in which a value is
    missing do not count. What is no number, no day or no share raises TraceError where it is written, and a
    name that the row does not give where the study is made.
    """

    def __init__(self, viewer: str, *, rho: Rho) -> None:
        self._lines: tuple[tuple[str, tuple[str, ...], Place], ...] = ()
        self._add(f"ask {viewer} rho {rho_text(rho)}", ())

    def by(self, *groups: str | Groups) -> Ask:
        """Groups for the questions that follow: bits, labels, ``edges`` or ``values``; none: all rows.

        All of them are one charge: a question costs the same with one group or fifty. Raises TraceError.
        """
        words = [one if isinstance(one, str) else _group(one) for one in groups]
        return self._with(f"by {' and '.join(words) or 'all'}", [_name(one) for one in groups])

    def count(self, *, within: Number | None = None, weight: int | None = None) -> Ask:
        """Rows of each group. Raises TraceError."""
        return self._with("count" + _wanted(within, weight), [])

    def histogram(
        self, name: str, ends: Sequence[End], *, within: Number | None = None, weight: int | None = None
    ) -> Ask:
        """Rows between these edges; what is beyond them does not count. Raises TraceError."""
        line = f"histogram {_group(edges(name, *ends))}"
        return self._with(line + _wanted(within, weight), [name])

    def sum(self, of: Asked, *, within: Number | None = None, weight: int | None = None) -> Ask:
        """The sum, in the value's unit. Raises TraceError."""
        return self._with(f"sum of {_value(of)}" + _wanted(within, weight), [_name(of)])

    def mean(self, of: Asked, *also: Statistic, weight: int | None = None) -> Ask:
        """The mean; with it whatever else is to be told of the same sums. Raises TraceError."""
        return self.statistics(of, "mean", *also, weight=weight)

    def statistics(self, of: Asked, *words: Statistic, weight: int | None = None) -> Ask:
        """Several statistics of one value, which share one charge. Raises TraceError."""
        line = f"{' '.join(words)} of {_value(of)}"
        return self._with(line + _wanted(None, weight), [_name(of)])

    def median(self, name: str, ends: Sequence[End], *, weight: int | None = None) -> Ask:
        """The median, as exact as these edges; what is beyond them is in the range at that end.

        Raises TraceError.
        """
        line = f"median of {_group(edges(name, *ends))}"
        return self._with(line + _wanted(None, weight), [name])

    def quantile(
        self, name: str, shares: Sequence[Rho], ends: Sequence[End], *, weight: int | None = None
    ) -> Ask:
        """Quantiles, as exact as these edges; several share one charge. Raises TraceError."""
        line = f"quantile {' '.join(map(rho_text, shares))} of {_group(edges(name, *ends))}"
        return self._with(line + _wanted(None, weight), [name])

    def covariance(self, a: Asked, b: Asked, *, weight: int | None = None) -> Ask:
        """How two values go together, in the product of their units. Raises TraceError."""
        line = f"covariance of {_value(a)} with {_value(b)}"
        return self._with(line + _wanted(None, weight), [_name(a), _name(b)])

    def correlation(self, a: Asked, b: Asked, *, weight: int | None = None) -> Ask:
        """How two values go together, from -1 to 1. Raises TraceError."""
        line = f"correlation of {_value(a)} with {_value(b)}"
        return self._with(line + _wanted(None, weight), [_name(a), _name(b)])

    def regression(self, of: Asked, on: Sequence[Asked], *, weight: int | None = None) -> Ask:
        """Least squares with a constant, on up to six values. Raises TraceError."""
        line = f"regression of {_value(of)} on {' '.join(map(_value, on))}"
        return self._with(line + _wanted(None, weight), [_name(one) for one in (of, *on)])

    def _with(self, line: str, names: Sequence[str]) -> Ask:
        other = Ask.__new__(Ask)
        other._lines = self._lines
        other._add(line, names)
        return other

    def _add(self, line: str, names: Sequence[str]) -> None:
        self._lines = (*self._lines, (line, tuple(names), caller()))

    def _read(self, known: Mapping[str, object]) -> list[tuple[str, Place]]:
        """The lines, each with where it was written; the names in them are known."""
        for _, names, place in self._lines:
            for name in names:
                if name not in known:
                    text = f"there is no value {name!r}: the row gives {', '.join(known)}"
                    raise mistake(text, place)
        return [(line, place) for line, _, place in self._lines]

    def __repr__(self) -> str:
        return f"Ask({'; '.join(line for line, _, _ in self._lines)})"


def _name(of: str | Between | Groups) -> str:
    return of if isinstance(of, str) else of.name


def _value(of: Asked) -> str:
    return of if isinstance(of, str) else f"{of.name} between {of.low} {of.high}"


def _group(of: Groups) -> str:
    return f"{of.name} {of.word} {' '.join(of.numbers)}"


def _wanted(within: Number | None, weight: int | None) -> str:
    said = "" if within is None else f" within {_end(within)}"
    return said if weight is None else f"{said} weight {weight}"
