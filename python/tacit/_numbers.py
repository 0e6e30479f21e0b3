"""Numbers as texts that say all their digits."""

from __future__ import annotations

import datetime
import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any, Union

from ._errors import InputError

Number = Union[int, float, Decimal, Fraction]
"""A number in the unit of what it stands beside; Decimal says all digits."""
Rho = Union[str, int, float, Decimal, Fraction]
"""A privacy parameter: best as text or Decimal, which say all digits."""


def number_text(number: Any) -> str | None:
    """A number in decimal digits; none of what is no number, or has no such digits."""
    if isinstance(number, Fraction):
        return _digits_of(number)
    if isinstance(number, Decimal):
        return format(number, "f") if number.is_finite() else None
    try:
        return str(int(operator.index(number)))
    except TypeError:
        pass
    if isinstance(number, float):
        return number_text(Decimal(repr(float(number))))
    return None


def _digits_of(number: Fraction) -> str | None:
    tens = 1
    while tens % number.denominator:
        tens *= 10
        if tens > 10**40:
            return None
    # As a text: arithmetic of Decimal rounds to the digits of its context.
    digits, places = str(abs(number.numerator) * (tens // number.denominator)), len(str(tens)) - 1
    digits = digits.rjust(places + 1, "0")
    whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
    return f"{'-' if number < 0 else ''}{whole}{f'.{part}' if part else ''}"


def days(day: datetime.date) -> int:
    """Days after 1970-01-01."""
    return day.toordinal() - datetime.date(1970, 1, 1).toordinal()


def end_text(end: Any) -> str | None:
    """A number or a day, as a program's text writes it."""
    if isinstance(end, datetime.date) and not isinstance(end, datetime.datetime):
        return end.isoformat()
    return number_text(end)


def rho_text(rho: Rho) -> str:
    """As a program's text writes it: 1/8, 0.1."""
    return rho if isinstance(rho, str) else str(rho) if isinstance(rho, Fraction) else number_text(rho) or ""


def decimal_of(rho: Rho) -> Decimal:
    """A decimal as it is written; a fraction where it is one. Raises InputError."""
    try:
        if isinstance(rho, str) and "/" in rho:
            rho = Fraction(rho)
        if isinstance(rho, Fraction):
            text = _digits_of(rho)
            return Decimal(text) if text else Decimal(rho.numerator) / Decimal(rho.denominator)
        made = Decimal(str(rho))
    except (ArithmeticError, ValueError):
        made = Decimal("nan")
    if not made.is_finite():
        raise InputError(f"{rho!r} is no number: write one such as 0.125 or 1/8", kind="input", code=2)
    return made
