"""The coordinator of a party: the RayJob runs it on the head, and workers are actors of its cluster.

Tries of a study are counted on the ledger's volume, each before it begins: the third match that begins is
charged, and what starts this program again, whatever it is, does not know how often it was started.
"""

import os
import sys
from pathlib import Path

import tacit

ENDED = (tacit.InputError, tacit.RefusedError, tacit.DeviatedError)
"""Nothing but a person mends these."""

party = tacit.Party.load("/etc/tacit/party.toml")
workers = tacit.Ray(os.environ["RAY_ADDRESS"], workers=int(os.environ["TACIT_WORKERS"]))
volume = Path("/var/lib/tacit")
tries = volume / f"tries-{party.study.hash}"
allowed = int(os.environ["TACIT_TRIES"])
begun = tries.read_text().splitlines() if tries.exists() else []


def write(lines: list[str]) -> None:
    """A line for each try; after this returns a machine that fails has them."""
    cut = tries.exists() and not tries.read_text().endswith("\n")
    with tries.open("a") as file:
        file.write("\n" if cut else "")
        file.writelines(f"{line}\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(volume, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def spend(how: str) -> None:
    """Leaves no try: what is over is over for whoever starts this again."""
    write([how] * max(1, allowed - len(begun) - 1))


if len(begun) >= allowed:
    more = f"TACIT_TRIES={len(begun) + 1} allows one more, which may be charged ({tries})"
    if begun and begun[-1] == "answered":
        print(f"answered before, and no try again; {more}")
        sys.exit(0)
    sys.exit(f"NO RESULT, and no try again: {begun[-1] if begun else 'none is allowed'}; {more}")
write(["begun, and its end is not known"])
try:
    print(party.run(launcher=workers).text)
except ENDED as error:
    spend(" ".join(str(error).split()))
    sys.exit(f"NO RESULT, and no try again: {error}")
spend("answered")
