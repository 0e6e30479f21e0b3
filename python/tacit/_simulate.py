"""A study tried on this machine, with the data of all parties."""

from __future__ import annotations

from collections.abc import Mapping

from . import _tacit
from ._data import Data, given
from ._errors import InputError
from ._report import Printed
from ._study import Study


class Simulation(Printed):
    """What a simulation found: the JSON of ``tacit simulate --json``, and its ``text``, shown in a notebook.

    ``runs`` have ``views``, one for each viewer, whose ``parts`` have the ``numbers``:
    ``found.runs[0].views[0].parts[0].numbers`` is a table.
    """


def simulate(
    study: Study,
    data: Mapping[str, Data],
    *,
    draws: int = 0,
    seed: int = 7,
    threads: int | None = None,
) -> Simulation:
    """What each viewer would see, beside the exact values, for developing a study.

    ``data`` has the path or the data frame of each party, by name. With ``draws`` so many releases are drawn,
    to show how far the noise lies from the exact values. Nothing is sent, and no ledger and no key is
    touched. What it returns are EXACT values of all parties' data, not for passing on. Raises InputError.
    """
    if not 0 <= draws < 1 << 64:
        raise InputError(f"draws={draws}: releases that are drawn are from 0 on", kind="input", code=2)
    stop = _tacit.Stop()
    rows = {party: given(one, stop, f"data[{party!r}]") for party, one in data.items()}
    known = {party: one for party, one in rows.items() if one is not None}
    return Simulation(_tacit.simulate(study._study(), known, draws, seed, threads, stop))
