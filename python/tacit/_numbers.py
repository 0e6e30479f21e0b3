"""Numbers as texts that say all their digits."""

from __future__ import annotations

import datetime
import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any, Union

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
    return number_text(Decimal(number.numerator * (tens // number.denominator)).scaleb(1 - len(str(tens))))


def end_text(end: Any) -> str | None:
    """A number or a day, as a program's text writes it."""
    if isinstance(end, datetime.date) and not isinstance(end, datetime.datetime):
        return end.isoformat()
    return number_text(end)


def rho_text(rho: Rho) -> str:
    """As a program's text writes it: 1/8, 0.1."""
    return rho if isinstance(rho, str) else str(rho) if isinstance(rho, Fraction) else number_text(rho) or ""


def decimal_of(rho: Rho) -> Decimal:
    """A decimal as it is written; a fraction where it is one."""
    if isinstance(rho, Fraction):
        return Decimal(rho.numerator) / Decimal(rho.denominator)
    return Decimal(str(rho))
