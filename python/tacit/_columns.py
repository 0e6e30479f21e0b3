"""Columns of a program: the type of a value, and the party whose column it is."""

from __future__ import annotations

import copy

from ._numbers import Number, end_text


class Type:
    """A type of values: ``bit``, ``u2`` to ``u64``, ``i2`` to ``i64``, wider ones by ``u(100)``, ``i(100)``.

    ``tacit.u16["shop"]`` is a column of it that the shop holds.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, owner: str) -> Column:
        """A column of this type, which this party holds."""
        return Column(self, owner)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tacit.{self.name}"


class Column:
    """What a column holds, and who holds it. It stays as it is: every call returns a new one.

    As an annotation it declares a parameter of a ``row`` function:
    ``Annotated[tacit.Value, tacit.i20["registry"].scale(100).unit("EUR")]``.
    """

    def __init__(self, type: Type, owner: str) -> None:
        self.type = type
        self.owner = owner
        self.source: str | None = None
        """The name in the owner's file, where it is another one than the program's."""
        self._labels: tuple[str, ...] = ()
        self._scale: int | None = None
        self._date = False
        self._unit = ""
        self._missing = False
        self._absent: Number | None = None

    def named(self, source: str) -> Column:
        """What the owner's file calls it."""
        return self._with(source=source)

    def scale(self, parts: int) -> Column:
        """Fixed point: numbers in whole parts of so many to one. 100 holds 149.28 as 14,928."""
        return self._with(_scale=parts)

    def unit(self, unit: str) -> Column:
        """What numbers are counted in, for readers."""
        return self._with(_unit=unit)

    def labels(self, *labels: str) -> Column:
        """The texts that its cells may be: a public list. The type has to hold their number, from 1 on."""
        return self._with(_labels=labels)

    def date(self) -> Column:
        """Cells are days such as 2026-03-01: days after 1970-01-01. Days of this century want ``u15``."""
        return self._with(_date=True)

    def missing(self) -> Column:
        """A cell may be missing, and so is what is computed of it. Without this that is an error."""
        return self._with(_missing=True)

    def absent(self, number: int) -> Column:
        """What it holds in rows that the owner does not have, 0 unless told, counted as the type counts."""
        return self._with(_absent=number)

    @property
    def has_labels(self) -> bool:
        """Whether its values are texts."""
        return bool(self._labels)

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that its cells may be, in their order."""
        return self._labels

    @property
    def is_date(self) -> bool:
        """Whether its values are days."""
        return self._date

    @property
    def may_be_missing(self) -> bool:
        """Whether a cell may be missing."""
        return self._missing

    def words(self, name: str) -> str:
        """Its line in a program's text."""
        said = [f"column {name} {self.type.name} {self.owner}"]
        said += [f"absent {end_text(self._absent)}"] if self._absent is not None else []
        said += [f"scale {self._scale}"] if self._scale is not None else []
        said += ["labels", *map(quoted, self._labels)] if self._labels else []
        said += ["date"] if self._date else []
        said += [f"unit {quoted(self._unit)}"] if self._unit else []
        return " ".join([*said, "missing"] if self._missing else said)

    def _with(self, **said: object) -> Column:
        other = copy.copy(self)
        vars(other).update(said)
        return other

    def __repr__(self) -> str:
        return f"Column({self.words('NAME')!r})"


def quoted(text: str) -> str:
    """A label as a program's text writes it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def u(width: int) -> Type:
    """Whole numbers of so many bits, 1 to 128, none below 0."""
    return Type("bit" if width == 1 else f"u{width}")


def i(width: int) -> Type:
    """Whole numbers of so many bits, 2 to 128, with a sign."""
    return Type(f"i{width}")
