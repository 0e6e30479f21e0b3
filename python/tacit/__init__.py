"""Organisations compute one result over data they will not show each other.

What this package does is what the command ``tacit`` does, by the same functions: studies, checks, plans,
runs, matches, ledgers and reports. ``docs/python.md`` shows it by example.
"""

from . import generate
from ._errors import (
    DeviatedError,
    FileError,
    InputError,
    PeerError,
    Place,
    RefusedError,
    TacitError,
)
from ._keys import Key, keygen
from ._ledger import Ledger, Spending
from ._party import MatchResult, Party, Run
from ._progress import Event
from ._ray import Ray
from ._report import Fields, Report, Reports, Table
from ._simulate import simulate
from ._study import Check, Identifier, LiftStudy, Plan, Prices, Study
from ._tacit import __version__

__all__ = [
    "Check",
    "DeviatedError",
    "Event",
    "Fields",
    "FileError",
    "Identifier",
    "InputError",
    "Key",
    "Ledger",
    "LiftStudy",
    "MatchResult",
    "Party",
    "PeerError",
    "Place",
    "Plan",
    "Prices",
    "Ray",
    "RefusedError",
    "Report",
    "Reports",
    "Run",
    "Spending",
    "Study",
    "Table",
    "TacitError",
    "__version__",
    "generate",
    "keygen",
    "simulate",
]
