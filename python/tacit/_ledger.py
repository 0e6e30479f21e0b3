"""What was spent of the privacy of a party's data."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from . import _tacit
from ._report import Table


@dataclass(frozen=True)
class Spending:
    """What one viewer has got of one lineage, over all studies."""

    lineage: str
    """The stable name of the data."""
    viewer: str
    """The viewer's name where the ledger knows it, else its key; ``public`` is anybody."""
    viewer_key: str
    """The viewer's key, or ``public``."""
    rho: Fraction
    """zCDP, exactly."""
    epsilon: float
    """The same as epsilon at ``delta``."""
    delta: float
    """The delta of that epsilon."""


class Ledger:
    """A privacy ledger that a run has made. Every question reads the file anew, and changes nothing."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._native = _tacit.Ledger(path)

    def spent(self, lineage: str) -> Fraction:
        """zCDP that all viewers of a lineage have got together, what several see counted once.

        Raises InputError where there is no ledger, or it was changed.
        """
        return Fraction(self._native.spent(lineage))

    def totals(self) -> list[Spending]:
        """What each viewer has got of each lineage."""
        shown = json.loads(self._native.show())
        return [
            Spending(
                lineage=of["lineage"],
                viewer=shown["names"].get(of["viewer_key"], of["viewer_key"]),
                viewer_key=of["viewer_key"],
                rho=Fraction(of["rho"]),
                epsilon=float(of["total"]["epsilon"]),
                delta=float(of["total"]["delta"]),
            )
            for of in shown["totals"]
        ]

    def entries(self) -> Table:
        """All debits, a row each, as ``tacit ledger show --json`` has them."""
        return Table(json.loads(self._native.show())["entries"])

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"
