"""Organisations compute one result over data they will not show each other.

What this package does is what the command ``tacit`` does, by the same functions: studies, checks, plans,
runs, matches, ledgers and reports. ``docs/python.md`` shows it by example.
"""

import typing

from . import generate
from ._ask import Ask, Between, Groups, between, edges, values
from ._columns import Column, Type, i, u
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
from ._report import Fields, Output, Outputs, Printed, PublicResult, Report, Reports, Table
from ._simulate import Simulation, simulate
from ._sql import sql
from ._study import Check, Identifier, LiftStudy, Match, Plan, Prices, Study
from ._tacit import __commit__, __version__
from ._trace import Noised, Release
from ._value import (
    Fold,
    TraceError,
    Value,
    collect,
    const,
    greatest,
    least,
    lookup,
    matched,
    maximum,
    minimum,
    present,
    select,
    sum,
)
from ._widths import *  # noqa: F403

if typing.TYPE_CHECKING:
    from ._service import Service, ServiceEvent
else:

    def __getattr__(name):
        # Only who asks a service needs TLS and sockets.
        if name in ("Service", "ServiceEvent"):
            from . import _service

            return getattr(_service, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Ask",
    "Between",
    "Check",
    "Column",
    "DeviatedError",
    "Event",
    "Fields",
    "FileError",
    "Fold",
    "Groups",
    "Identifier",
    "InputError",
    "Key",
    "Ledger",
    "LiftStudy",
    "Match",
    "MatchResult",
    "Noised",
    "Output",
    "Outputs",
    "Party",
    "PeerError",
    "Place",
    "Plan",
    "Prices",
    "Printed",
    "PublicResult",
    "Ray",
    "RefusedError",
    "Release",
    "Report",
    "Reports",
    "Run",
    "Service",
    "ServiceEvent",
    "Simulation",
    "Spending",
    "Study",
    "Table",
    "TacitError",
    "TraceError",
    "Type",
    "Value",
    "__commit__",
    "__version__",
    "between",
    "bit",
    "collect",
    "const",
    "edges",
    "generate",
    "greatest",
    "i",
    "keygen",
    "least",
    "lookup",
    "matched",
    "maximum",
    "minimum",
    "present",
    "select",
    "simulate",
    "sql",
    "sum",
    "u",
    "values",
]
# fmt: off
__all__ += [
    "u2", "u3", "u4", "u5", "u6", "u7", "u8", "u9", "u10", "u11", "u12", "u13", "u14", "u15", "u16", "u17",
    "u18", "u19", "u20", "u21", "u22", "u23", "u24", "u25", "u26", "u27", "u28", "u29", "u30", "u31",
    "u32", "u33", "u34", "u35", "u36", "u37", "u38", "u39", "u40", "u41", "u42", "u43", "u44", "u45",
    "u46", "u47", "u48", "u49", "u50", "u51", "u52", "u53", "u54", "u55", "u56", "u57", "u58", "u59",
    "u60", "u61", "u62", "u63", "u64",
    "i2", "i3", "i4", "i5", "i6", "i7", "i8", "i9", "i10", "i11", "i12", "i13", "i14", "i15", "i16", "i17",
    "i18", "i19", "i20", "i21", "i22", "i23", "i24", "i25", "i26", "i27", "i28", "i29", "i30", "i31",
    "i32", "i33", "i34", "i35", "i36", "i37", "i38", "i39", "i40", "i41", "i42", "i43", "i44", "i45",
    "i46", "i47", "i48", "i49", "i50", "i51", "i52", "i53", "i54", "i55", "i56", "i57", "i58", "i59",
    "i60", "i61", "i62", "i63", "i64",
]
