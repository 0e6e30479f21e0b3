"""The command that the package is held against."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]


def command_path() -> str:
    """That of TACIT_COMMAND, else the one that this checkout has built, else the one on PATH.

    Raises FileNotFoundError, which says how to have one.
    """
    said = os.environ.get("TACIT_COMMAND")
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    for place in [said] if said else [str(target / "release/tacit"), "tacit"]:
        found = shutil.which(place)
        if found is not None:
            return str(Path(found).resolve())
    where = f"TACIT_COMMAND names {said}, which is no program" if said else "there is none"
    raise FileNotFoundError(
        f"these tests hold the package against the command of the same commit, and {where}: `make build` "
        f"makes it in {target}/release, PATH may have it, or TACIT_COMMAND names it"
    )
