"""Values of a program in the making: what operators on them do is a line of the program."""

from __future__ import annotations

import datetime
import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn, Union

from . import _tacit
from ._columns import Column, Type, quoted
from ._errors import InputError, Place
from ._numbers import Number, days, end_text, number_text

Operand = Union["Value", Number, str, datetime.date]
"""A value, or a constant in its unit: a number, a label of its column, a day."""


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floor_divide": operator.floordiv,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
"""What operators of numpy's numbers come as where a value stands behind them."""
_INSTEAD = {
    "minimum": "write tacit.minimum(a, b)",
    "fmin": "write tacit.minimum(a, b)",
    "maximum": "write tacit.maximum(a, b)",
    "fmax": "write tacit.maximum(a, b)",
    "clip": "write value.clamp(low, high)",
    "absolute": "write abs(value)",
    "fabs": "write abs(value)",
    "invert": "write ~value",
    "negative": "write -value",
    "sqrt": "write value.isqrt(), the whole part of it",
    "logical_and": "write a & b, between bits",
    "logical_or": "write a | b, between bits",
    "logical_not": "write ~bit",
}


class TraceError(InputError):
    """A function that makes a program does what no program can do (code 2).

    The message begins with the caller's file and line, says what is wrong and what to write instead;
    ``places`` has the same file and line.
    """


class _NoPart(TraceError, AttributeError):
    """An attribute that no value has, so that ``hasattr`` says no."""


def caller() -> Place:
    """Where the code outside this package is that called."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tacit":
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno, None)


def mistake(text: str, place: Place | None = None) -> TraceError:
    """An error at the caller's line, or at another place."""
    at = place or caller()
    return TraceError(f"{at.file}, line {at.line}: {text}", kind="input", code=2, places=[at])


class Line:
    """A line of the program: words, and other lines whose names stand among them."""

    def __init__(
        self, words: Sequence[str | Line], place: Place, name: str | None = None, wanted: str | None = None
    ) -> None:
        self.words = words
        self.place = place
        self.name = name
        """What the value is called that it defines, if it defines one."""
        self.wanted = wanted
        """What it is to be called in the end."""

    def text(self) -> str:
        """As it stands in the text."""
        words = " ".join(one if isinstance(one, str) else one.name or "" for one in self.words)
        return words if self.name is None else f"{self.name} = {words}"


class Draft:
    """The lines of one program in the making, each of which the program model has read."""

    def __init__(self) -> None:
        self.native = _tacit.Draft()
        self.is_open = True
        """Whether its functions are being called."""
        self.section = "row"
        self.lines: dict[str, list[Line]] = {"row": [], "combine": [], "release": []}
        self._shared: dict[tuple[str, ...], Line] = {}
        self._taken: set[str] = set()

    def head(self, text: str, place: Place) -> None:
        """A line that defines no value."""
        try:
            self.native.line(text, place.file, place.line)
        except ValueError as error:
            raise mistake(_advised(str(error)), place) from None

    def add(self, words: Sequence[str | Line], wanted: str | None = None) -> Line:
        """A line that defines a value; of the same words the one that is there."""
        key = (self.section, *(one if isinstance(one, str) else f"={id(one)}" for one in words))
        if key not in self._shared:
            self._shared[key] = self.put(Line(words, caller(), wanted or self._free("v"), wanted))
        return self._shared[key]

    def mechanism(self, words: Sequence[str | Line]) -> Line:
        """A mechanism: of the same words another one, with noise of its own."""
        return self.put(Line(words, caller(), self._free("m")))

    def put(self, line: Line) -> Line:
        """The next line of this section."""
        try:
            self.native.line(line.text(), line.place.file, line.place.line)
        except ValueError as error:
            raise mistake(_advised(str(error)), line.place) from None
        self.lines[self.section].append(line)
        return line

    def reserve(self, names: Iterable[str]) -> None:
        """Names that no line may take by itself."""
        self._taken.update(names)

    def _free(self, prefix: str) -> str:
        number = len(self.lines[self.section])
        while f"{prefix}{number}" in self._taken:
            number += 1
        self._taken.add(f"{prefix}{number}")
        return f"{prefix}{number}"


def _advised(text: str) -> str:
    """What the program model says, and what to write here."""
    if "operand is" in text or "is compared with" in text:
        return f"{text}: values of one operation have one type, which value.cast(tacit.u32) changes"
    if "has no bound" in text:
        return f'{text} (here tacit.between("{text.split()[0]}", 0, 100))'
    if "`shl NAME 0`" in text:
        return text.replace("`shl NAME 0`", "value.parts()")
    if text.startswith("not defined on i"):
        return f"{text}, by value.cast(tacit.u32)"
    return text


CURRENT: ContextVar[Draft | None] = ContextVar("CURRENT", default=None)
"""The program that is being made, of each thread."""


def current(what: str) -> Draft:
    """The program that the caller's function makes."""
    draft = CURRENT.get()
    if draft is None:
        raise mistake(f"{what} is for functions that make a program: see tacit.Study.program")
    return draft


class Value:
    """A value of a program in the making: of each row, or, in ``release``, of all of them.

    Operators make values of the same type, comparisons make bits: ``+ - * // << >> & | ^ ~``, ``abs``,
    ``== != < <= > >=``. Arithmetic wraps in the type's width, and nobody sees it: 3 - 5 of ``u16`` is 65,534,
    also for a ``clamp`` or ``<`` behind it. Cast to a type with room for the result first.
    Constants are in the value's unit: a number (149.28 of a column with a scale), a label, a day. In
    ``release`` they are as the type counts: a total of hundredths has 14928 for 149.28.
    Nothing has a number yet: ``if``, ``int()``, ``for`` and the like raise TraceError.
    """

    def __init__(
        self,
        draft: Draft,
        line: Line | None,
        column: tuple[str, Column] | None = None,
        like: tuple[str, Column] | None = None,
    ) -> None:
        self._draft = draft
        self._line = line
        self._column = column
        self._like = like or column
        """The column whose labels or days it has."""
        self._section = draft.section

    # What it is.

    def _ref(self) -> Line:
        """The line that defines it; of a column that is first read, a new one."""
        if not self._draft.is_open:
            raise mistake("this value is of a program that is made already: use it in its functions alone")
        if CURRENT.get() not in (None, self._draft):
            raise mistake("this value is of another program in the making: use it in its functions alone")
        if self._section != self._draft.section:
            text = "a value of a row is not there when all rows are summed"
            raise mistake(f"{text}: return tacit.sum(value) from the row or combine function")
        if self._line is None:
            assert self._column is not None
            name = self._column[0]
            self._line = self._draft.add(["column", name], wanted=name)
        return self._line

    def _type(self) -> str:
        return self._draft.native.type_of(self._ref().name or "") or ""

    def _parts(self) -> int:
        name = self._ref().name or ""
        return (self._draft.native.scale_of(name) or 1) if self._section == "row" else 1

    def _has_labels(self) -> bool:
        return self._like is not None and self._like[1].has_labels

    def _is_day(self) -> bool:
        return self._like is not None and self._like[1].is_date

    def _is_of(self, column: Column) -> bool:
        """Whether it has the type of a column. One that is not read yet is none's but its own."""
        return self._column is not None or self._type() == column.type.name

    def _kind(self) -> str | None:
        """What its numbers stand for; None of a constant, which stands for what it is beside."""
        if self._ref().words[0] == "const":
            return None
        return "a label" if self._has_labels() else "a day" if self._is_day() else "a number"

    def __repr__(self) -> str:
        name = self._line.name if self._line else self._column[0] if self._column else "total"
        return f"<{type(self).__name__} {name} of a program in the making>"

    # Operators.

    def _made(self, *words: str | Line, like: tuple[str, Column] | None = None) -> Value:
        return Value(self._draft, self._draft.add(words), like=like)

    def _constant(self, other: Operand, whole: bool = False) -> Line:
        """A constant that this value is used with; ``whole``: as the type counts."""
        like, column = self._like or ("", None)
        if isinstance(other, str):
            if column is None or not column.has_labels:
                raise mistake(
                    f"{other!r} is a text, and this value is none: .labels(..) of a column makes one"
                )
            if not self._is_of(column) and other in column.choices:
                return self._draft.add(["const", str(column.choices.index(other) + 1), self._type()])
            return self._draft.add(["const", quoted(other), like])
        if column is not None and column.has_labels:
            raise mistake(f"this column holds labels, and {other!r} is none of them")
        text = end_text(other)
        if text is None:
            raise mistake(f"{other!r} is no constant of a program: use a number, a label or a datetime.date")
        if isinstance(other, datetime.date):
            if column is None or not column.is_date:
                raise mistake(f"{text} is a day, and this value is none: .date() of a column makes it one")
            if not self._is_of(column):
                return self._draft.add(["const", str(days(other)), self._type()])
            return self._draft.add(["const", text, like])
        if column is not None and column.is_date and not whole:
            raise mistake(f"this column holds days: compare with datetime.date(2026, 3, 1), not with {text}")
        return self._draft.add(["const", text if whole else self._counted(text), self._type()])

    def _counted(self, text: str) -> str:
        """What this value holds for a number in its unit, or for a day."""
        name = self._ref().name or ""
        if self._section != "row":
            return text
        if self._column is None and self._like is not None and self._like[1].is_date:
            name = Value(self._draft, None, self._like)._ref().name or ""
        try:
            return self._draft.native.number(name, text)
        except ValueError as error:
            raise mistake(str(error)) from None

    def _other(self, other: Operand, whole: bool = False) -> Line:
        if not isinstance(other, Value):
            return self._constant(other, whole)
        line, parts = other._ref(), (self._parts(), other._parts())
        if parts[0] != parts[1] and not whole and "const" not in (line.words[0], self._ref().words[0]):
            text = f"one of these is counted in 1/{max(parts)}, the other one in 1/{min(parts)}"
            raise mistake(f"{text}: write value.parts() of both, whole numbers that you bring to one unit")
        kinds = (self._kind(), other._kind())
        if kinds[0] != kinds[1] and None not in kinds and not whole:
            text = f"one of these is {kinds[0]}, the other one {kinds[1]}"
            raise mistake(f"{text}: value.parts() is the number that a label or a day is held as")
        return line

    def _two(self, op: str, other: Operand, turned: bool = False, whole: bool = False) -> Value:
        """An operation on this value and another one; ``turned``: the other one first."""
        own, its = self._ref(), self._other(other, whole)
        return self._made(op, its, own) if turned else self._made(op, own, its)

    def _days(self, op: str, other: Operand, turned: bool = False) -> Value:
        """A sum or difference; to a day whole ones are added, and two days have a number between them."""
        self._no_bit(op, other)
        if isinstance(other, int) and self._is_day() and not turned:
            return self._made(op, self._ref(), self._constant(other, whole=True), like=self._like)
        if not isinstance(other, Value) or self._is_day() == other._is_day():
            return self._two(op, other, turned)
        if (op == "sub" and other._is_day()) or self._parts() != 1 or other._parts() != 1:
            return self._two(op, other, turned)
        like = self._like if self._is_day() else other._like
        return self._made(op, self._ref(), other._ref(), like=like)

    def _product(self, op: str, other: Operand, turned: bool = False) -> Value:
        """Products and quotients are of whole numbers."""
        self._no_bit(op, other)
        for one in (self, other):
            if isinstance(one, Value):
                one._no_parts()
        return self._two(op, other, turned, whole=True)

    def _no_parts(self) -> None:
        parts = self._parts()
        if parts != 1:
            text = f"this value is counted in 1/{parts}, and a product of such counts in another unit"
            raise mistake(f"{text}: write it of value.parts(), the whole number of 1/{parts}")

    def _no_bit(self, op: str, other: Operand) -> None:
        bits = [one for one in (self, other) if isinstance(one, Value) and one._type() == "bit"]
        if bits and op == "mul":
            raise mistake("one of these is a bit: write tacit.select(bit, value, 0), or bit & bit")
        if bits:
            raise mistake("a bit has room for 0 and 1 alone: cast it first, as in bit.cast(tacit.u8) + 1")
        if any(isinstance(one, Value) and one._has_labels() for one in (self, other)):
            raise mistake("labels are no numbers: value.parts() is the place of a label in its list, from 1")

    def __add__(self, other: Operand) -> Value:
        return self._days("add", other)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Value:
        return self._days("sub", other)

    def __rsub__(self, other: Operand) -> Value:
        return self._days("sub", other, turned=True)

    def __mul__(self, other: Operand) -> Value:
        return self._product("mul", other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Operand) -> Value:
        return self._product("div", other)

    def __rfloordiv__(self, other: Operand) -> Value:
        return self._product("div", other, turned=True)

    def __and__(self, other: Operand) -> Value:
        return self._two("and", other, whole=True)

    __rand__ = __and__

    def __or__(self, other: Operand) -> Value:
        return self._two("or", other, whole=True)

    __ror__ = __or__

    def __xor__(self, other: Operand) -> Value:
        return self._two("xor", other, whole=True)

    __rxor__ = __xor__

    def __invert__(self) -> Value:
        return self._made("not", self._ref())

    def __neg__(self) -> Value:
        if not self._type().startswith("i"):
            text = f"{self._type()} holds nothing below 0: cast it first, as in -value.cast(tacit.i32)"
            raise mistake(text)
        return self._two("sub", 0, turned=True)

    def __abs__(self) -> Value:
        return maximum(self, -self)

    def __lshift__(self, by: int) -> Value:
        self._no_parts()
        return self._made("shl", self._ref(), _whole(by))

    def __rshift__(self, by: int) -> Value:
        self._no_parts()
        return self._made("shr", self._ref(), _whole(by))

    def __eq__(self, other: Operand) -> Value:  # type: ignore[override]
        return self._two("eq", other)

    def __ne__(self, other: Operand) -> Value:  # type: ignore[override]
        return ~(self == other)

    def __lt__(self, other: Operand) -> Value:
        return self._two("lt", other)

    def __gt__(self, other: Operand) -> Value:
        return self._two("lt", other, turned=True)

    def __le__(self, other: Operand) -> Value:
        return ~(self > other)

    def __ge__(self, other: Operand) -> Value:
        return ~(self < other)

    # Operations that have no sign of their own.

    def clamp(self, *ends: Number | datetime.date) -> Value:
        """At most ``clamp(high)``, of a type without a sign; no less and no more: ``clamp(low, high)``.

        In the value's unit. What is noised needs both ends, which bound what one row changes.
        """
        texts = [self._clamped(end) for end in ends]
        return self._made("clamp", self._ref(), *texts, like=self._like)

    def _clamped(self, end: Number | datetime.date) -> str:
        text = end_text(end)
        if text is None:
            raise mistake(f"{end!r} is no number")
        return self._counted(text)

    def cast(self, type: Type) -> Value:
        """The same number in another type, cut where that is too narrow."""
        return self._made("cast", self._ref(), _type_name(type))

    def parts(self) -> Value:
        """The whole number that a fixed-point value is held as: of 149.28 in hundredths 14,928."""
        return self._made("shl", self._ref(), "0")

    def isin(self, values: Iterable[Operand]) -> Value:
        """Whether it is one of these: a bit."""
        found: Value | None = None
        for one in values:
            found = (self == one) if found is None else found | (self == one)
        if found is None:
            raise mistake("isin() names no value")
        return found

    def popcount(self, type: Type) -> Value:
        """The number of set bits, in a type that has room for it."""
        return self._made("popcount", self._ref(), _type_name(type))

    def isqrt(self) -> Value:
        """The square root, rounded down; of the whole number that is held."""
        return self._made("isqrt", self.parts()._ref() if self._parts() != 1 else self._ref())

    def known(self) -> Value:
        """Whether it is not missing: a bit."""
        return self._made("known", self._ref())

    def default(self, other: Operand) -> Value:
        """Where it is missing, ``other``."""
        return self._made("default", self._ref(), self._other(other), like=self._like)

    # What Python and numpy would ask of a number.

    def _secret(self, asked: str, instead: str) -> NoReturn:
        raise mistake(
            f"a value of a program in the making is secret and has no number, so {asked}: {instead}"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        own = ", ".join(one for one in dir(Value) if not one.startswith("_"))
        text = f"a value of a program in the making has no .{name}: it has {own}"
        instead = "; means and the like are asked of all rows: tacit.sum(value), or tacit.Ask(..).mean(name)"
        at = caller()
        raise _NoPart(f"{at.file}, line {at.line}: {text}{instead}", kind="input", code=2, places=[at])

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **how: Any) -> Any:
        operation = _OPERATIONS.get(ufunc.__name__)
        if any(getattr(one, "shape", ()) != () for one in given if not isinstance(one, Value)):
            self._secret("an array is no constant of it", "write a number, or tacit.lookup for a table")
        numbers = [one if isinstance(one, Value) or not hasattr(one, "item") else one.item() for one in given]
        if operation is not None and method == "__call__" and not how:
            return operation(*numbers)
        instead = _INSTEAD.get(ufunc.__name__, "the operators of Python and the functions of tacit do")
        raise mistake(f"numpy.{ufunc.__name__} takes no values of a program in the making: {instead}")

    def __array__(self, *how: Any, **said: Any) -> Any:
        self._secret("it fills no array", "tacit.select(bit, a, b) chooses, and values stand one by one")

    def __bool__(self) -> bool:
        instead = (
            "write tacit.select(condition, a, b), & | ~ between bits (in brackets), and (0 < x) & (x < 9)"
        )
        text = "`if`, `while`, `and`, `or`, `not`, `in` and 0 < x < 9 cannot look at it"
        self._secret(text, instead)

    def __int__(self) -> int:
        self._secret("int() cannot say which", "value.cast(tacit.u16) changes its type")

    def __float__(self) -> float:
        text = "count in whole parts, as .scale(100) of a column does"
        self._secret("float() and functions of math cannot say which", text)

    def __complex__(self) -> complex:
        self._secret("complex() cannot say which", "programs have whole numbers")

    def __index__(self) -> int:
        self._secret("it counts and indexes nothing", "tacit.lookup(value, keys=.., values=..) is a table")

    def __iter__(self) -> Any:
        self._secret(
            "there is nothing to go through", "it is one number of each row; tacit.sum(value) adds rows"
        )

    def __len__(self) -> int:
        self._secret("it has no length", "tacit.sum(tacit.const(1, tacit.bit)) counts rows")

    def __getitem__(self, at: object) -> Any:
        self._secret("it has no parts", "value >> 3 & 1 is one of its bits")

    def __contains__(self, one: object) -> bool:
        self._secret("nothing is in it", "write value.isin([1, 2]) for `value in [1, 2]`")

    def __round__(self, digits: int | None = None) -> int:
        self._secret("round() cannot say which", "value // 10 rounds down")

    def __truediv__(self, other: object) -> Any:
        raise mistake(
            "programs have whole numbers: write a // b, or ask for a mean, which divides after noise"
        )

    __rtruediv__ = __truediv__

    def __mod__(self, other: object) -> Any:
        raise mistake("there is no remainder: write a - a // b * b, or a & 7 for powers of two")

    __rmod__ = __divmod__ = __rdivmod__ = __mod__

    def __pow__(self, power: object) -> Any:
        raise mistake("there are no powers: write x * x, in a type wide enough")

    __rpow__ = __pow__

    def __hash__(self) -> int:
        self._secret("it is no key of a dictionary or set", "use a list, or tacit.lookup")


class Fold(Value):
    """A sum over all rows, a best row or a list; in ``release`` its total, as a value."""

    def __init__(self, draft: Draft, words: Sequence[str | Line], place: Place) -> None:
        super().__init__(draft, None)
        self.words = words
        self.place = place
        self.fold: Line | None = None

    def _ref(self) -> Line:
        return self._of("total")

    def _of(self, word: str) -> Line:
        if self._draft.section != "release" or self.fold is None:
            text = "a sum is of all rows, and there is none before the release function"
            raise mistake(f"{text}: return it by a name, which is a parameter of that function")
        self._section = "release"
        return self._draft.add([word, self.fold])

    @property
    def index(self) -> Value:
        """Of a best row: its number from 0."""
        return Value(self._draft, self._of("index"))

    @property
    def found(self) -> Value:
        """Of a best row: whether there was one, a bit."""
        return Value(self._draft, self._of("found"))


def _whole(number: Any) -> str:
    if isinstance(number, Value):
        raise mistake("a shift is by a constant")
    return number_text(number) or repr(number)


def _type_name(type: Type) -> str:
    if not isinstance(type, Type):
        raise mistake(f"{type!r} is no type: write one such as tacit.u32")
    return type.name


def _draft_of(values: Iterable[object], what: str) -> Draft:
    of = next((one._draft for one in values if isinstance(one, Value)), None)
    return of if of is not None else current(what)


def _both(a: Operand, b: Operand) -> tuple[Line, Line]:
    """Two values of one type; one of them may be a constant."""
    if isinstance(a, Value):
        return a._ref(), a._other(b)
    if isinstance(b, Value):
        return b._other(a), b._ref()
    raise mistake("both of these are constants: say the type of one, as in tacit.const(1, tacit.u8)")


def _like(a: Operand, b: Operand) -> tuple[str, Column] | None:
    """The column whose labels or days one of two has."""
    return next((one._like for one in (a, b) if isinstance(one, Value) and one._like), None)


def select(condition: Operand, a: Operand, b: Operand) -> Value:
    """``a`` where the bit ``condition`` is set, else ``b``; one of them may be a constant."""
    if not isinstance(condition, Value):
        raise mistake("the condition is a constant: select() chooses by a bit of the program")
    first, second = _both(a, b)
    return condition._made("select", condition._ref(), first, second, like=_like(a, b))


def minimum(a: Operand, b: Operand) -> Value:
    """The smaller one."""
    first, second = _both(a, b)
    draft = _draft_of((a, b), "minimum")
    return Value(draft, draft.add(["min", first, second]), like=_like(a, b))


def maximum(a: Operand, b: Operand) -> Value:
    """The larger one."""
    first, second = _both(a, b)
    draft = _draft_of((a, b), "maximum")
    return Value(draft, draft.add(["max", first, second]), like=_like(a, b))


def const(number: Number, type: Type) -> Value:
    """A constant of a type, as the type counts."""
    draft = current("const")
    text = number_text(number)
    if text is None:
        raise mistake(f"{number!r} is no number")
    return Value(draft, draft.add(["const", text, _type_name(type)]))


def present(party: str) -> Value:
    """Whether a party has the row: a bit of each row. ``rows`` of ``Study.program`` says which are met."""
    draft = current("present")
    return Value(draft, draft.add(["present", party]))


def matched() -> Value:
    """Whether all parties have the row: a bit of each row."""
    draft = current("matched")
    return Value(draft, draft.add(["matched"]))


def lookup(
    after: Value,
    *,
    keys: Sequence[Operand],
    values: Sequence[Operand],
    type: Type,
    until: Value | None = None,
) -> Value:
    """A step function: the value at the first key above ``after``, 0 where there is none.

    Keys are of the type and in the unit of ``after``, constants among ``values`` as ``type`` counts. With
    ``until`` the values are a triangle over first and last key (``docs/program.md``).
    """
    draft = after._draft
    key_lines = [after._other(key) for key in keys]
    name = _type_name(type)
    value_lines = [
        one._ref() if isinstance(one, Value) else draft.add(["const", number_text(one) or repr(one), name])
        for one in values
    ]
    ends: list[str | Line] = ["until", until._ref()] if until is not None else []
    words: list[str | Line] = [
        "lookup",
        "after",
        after._ref(),
        *ends,
        "keys",
        *key_lines,
        "values",
        *value_lines,
    ]
    return Value(draft, draft.add(words))


def _fold(value: Value, words: Sequence[str | Line]) -> Fold:
    return Fold(value._draft, words, caller())


def sum(value: Value, bits: int | None = None) -> Fold:
    """The sum over all rows, of ``bits`` bits, signed as the value is; wide enough for 2^32 rows unless told.

    A missing value adds nothing. Of a bit it counts.
    """
    if not isinstance(value, Value) or isinstance(value, Fold):
        raise mistake(f"{value!r} is no value of a row")
    if value._has_labels():
        raise mistake("labels are no numbers: sum the bits (x == label), or count by groups")
    own = value._type()
    width = bits or min((1 if own == "bit" else int(own[1:])) + 33, 128)
    return _fold(value, ["sum", value._ref(), f"{'i' if own[0] == 'i' else 'u'}{width}"])


def least(key: Value, *, where: Value) -> Fold:
    """The row with the smallest key among those whose bit is set: for exact programs."""
    return _fold(key, ["least", key._ref(), "where", where._ref()])


def greatest(key: Value, *, where: Value) -> Fold:
    """The row with the largest key among those whose bit is set: for exact programs."""
    return _fold(key, ["greatest", key._ref(), "where", where._ref()])


def collect(value: Value) -> Fold:
    """The bit of every row, for ``reveal_rows``: for exact programs."""
    return _fold(value, ["collect", value._ref()])
