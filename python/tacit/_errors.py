"""Errors as exceptions. They say what the command says, and whose turn it is to act."""

from __future__ import annotations

from typing import Any, NamedTuple


class Place(NamedTuple):
    """A place in what a party has written or handed over."""

    file: str
    """The file, or what a data frame is called: ``polars DataFrame``."""
    line: int
    """The line, or the row where there are no lines; from 1."""
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
        return _again, (type(self), self.args[0], dict(self.__dict__))


class InputError(TacitError):
    """What this party wrote or handed over does not do (code 2). ``places`` says where, as far as known."""


class PeerError(TacitError):
    """The peer or the network: not there, gone, another study, another key (code 3)."""


class DeviatedError(TacitError):
    """The peer deviated from the protocol (code 4)."""


class RefusedError(TacitError):
    """A policy or privacy budget says no: this party's own, or a peer's, which does not say why (code 5)."""


class FileError(TacitError):
    """A file or disk of this machine failed, or a fault of tacit itself (code 1)."""


_KINDS: dict[str, type[TacitError]] = {
    "input": InputError,
    "peer": PeerError,
    "deviated": DeviatedError,
    "refused": RefusedError,
}


def _made(message: str, kind: str, places: list[tuple[str, int, str | None]], **fields: Any) -> TacitError:
    """An exception for ``_tacit``, which raises it."""
    made = _KINDS.get(kind, FileError)
    return made(message, kind=kind, places=[Place(*place) for place in places], **fields)


def _again(kind: type[TacitError], message: str, fields: dict[str, Any]) -> TacitError:
    fields.pop("__notes__", None)
    return kind(message, **fields)
