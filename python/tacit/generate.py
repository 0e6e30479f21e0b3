"""Data with a known answer, made up."""

from __future__ import annotations

import json
import os
from typing import Literal

from . import _tacit
from ._report import Fields
from ._study import Study


def polio(out: str | os.PathLike[str], *, seed: int = 1954) -> Fields:
    """The 1954 poliomyelitis field trial, from its published counts: files of both sides, and the truth.

    ``out`` is the folder, which is made if need be. Raises FileError.
    """
    return Fields(json.loads(_tacit.generate("polio", out, seed, (1, 1), 0.5, 4, 100, "csv")))


def lift(
    out: str | os.PathLike[str],
    *,
    rows: int = 10_000,
    overlap: float = 0.5,
    events: int = 4,
    clamp: int = 100,
    seed: int = 1954,
    format: Literal["csv", "parquet"] = "csv",
) -> Fields:
    """A random trial: files of both sides, and the truth.

    ``rows`` are people on each side, ``overlap`` the share of the publisher's people whom the advertiser
    knows, ``events`` those of one person that count, ``clamp`` the most that one person adds. Raises
    InputError or FileError.
    """
    made = _tacit.generate("lift", out, seed, (rows, rows), overlap, events, clamp, format)
    return Fields(json.loads(made))


def columns(study: Study, out: str | os.PathLike[str], *, rows: int = 10_000, seed: int = 1954) -> Fields:
    """A file for each party of a study of kind ``program`` or ``match``, with the columns that it reads.

    Raises InputError for a lift study.
    """
    made = _tacit.generate("program", out, seed, (rows, rows), 0.5, 4, 100, "csv", study._study())
    return Fields(json.loads(made))
