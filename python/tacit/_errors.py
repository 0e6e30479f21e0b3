"""Errors as exceptions. They say what the command says, and whose turn it is to act."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ._words import python_words

if TYPE_CHECKING:
    from fractions import Fraction


class Place(NamedTuple):
    """A place in what a party has written or handed over."""

    file: str
    """The file, or what a data frame is called: ``polars DataFrame``."""
    line: int
    """The line, or the row where there are no lines; from 1. That of a whole column is its header's, or 1."""
    column: str | None
    """The name of a column of data; in a study or a party file its number, from 1."""


class TacitError(Exception):
    """Something that ended a call. It pickles, and has the fields of the command's JSON.

    ``kind`` and ``code`` say whose turn it is: ``docs/cli.md`` lists them. ``party`` is who reports it,
    ``peer`` whom it talked to, ``step`` where, each None where nobody was met. ``hint`` says how things stand
    after it, and what to do. ``answer`` is what was complete before it: this party's own report, or what a
    check found.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "internal",
        code: int = 1,
        party: str | None = None,
        peer: str | None = None,
        step: str | None = None,
        hint: str | None = None,
        places: list[Place] | None = None,
        answer: Any = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.code = code
        self.party = party
        self.peer = peer
        self.step = step
        self.hint = hint
        self.places: list[Place] = list(places or [])
        self.answer = answer

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args[0]), dict(self.__dict__)


class InputError(TacitError):
    """What this party wrote or handed over does not do (code 2). ``places`` says where, as far as known."""


class PeerError(TacitError):
    """The peer or the network: not there, gone, another study, another key (code 3)."""


class DeviatedError(TacitError):
    """The peer deviated from the protocol (code 4)."""


class RefusedError(TacitError):
    """A policy or privacy budget says no: this party's own, or a peer's, which does not say why (code 5).

    Where a budget of this party's does not pay, ``bound`` names it as a party file does
    (``policy.budget``, ``policy.period_budget``, ``policy.total``, ``policy.delta``), and ``spent``,
    ``budget`` and ``asked`` are its numbers, exact: of rho, and of delta for the last one. All four are None
    for any other refusal. Where several do not pay they are of the first one that the message has.
    """

    def __init__(
        self,
        message: str,
        *,
        bound: str | None = None,
        spent: Fraction | None = None,
        budget: Fraction | None = None,
        asked: Fraction | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(message, **fields)
        self.bound = bound
        self.spent = spent
        self.budget = budget
        self.asked = asked


class FileError(TacitError):
    """A file or disk of this machine failed, or a fault of tacit itself (code 1)."""


_KINDS: dict[str, type[TacitError]] = {
    "input": InputError,
    "peer": PeerError,
    "deviated": DeviatedError,
    "refused": RefusedError,
}


def _made(
    message: str,
    kind: str,
    places: list[tuple[str, int, str | None]],
    shortfall: tuple[str, str, str, str] | None = None,
    **fields: Any,
) -> TacitError:
    """An exception for ``_tacit``, which raises it. What to do is said in the words of this package."""
    message = python_words(message)
    if fields.get("hint") is not None:
        fields["hint"] = python_words(fields["hint"])
    made = _KINDS.get(kind, FileError)
    if shortfall is not None:
        from fractions import Fraction

        bound, spent, budget, asked = shortfall
        fields |= {"bound": bound}
        fields |= {"spent": Fraction(spent), "budget": Fraction(budget), "asked": Fraction(asked)}
    return made(message, kind=kind, places=[Place(*place) for place in places], **fields)


def _again(kind: type[TacitError], message: str) -> TacitError:
    """The exception alone: what it has as attributes, notes among them, pickle puts there."""
    return kind(message)
