"""The coordinator of a party: the RayJob runs it on the head, and workers are actors of its cluster."""

import os
import sys

import tacit

party = tacit.Party.load("/etc/tacit/party.toml")
workers = tacit.Ray(os.environ["RAY_ADDRESS"], workers=int(os.environ["TACIT_WORKERS"]))
try:
    print(party.run(launcher=workers).text)
except (tacit.InputError, tacit.RefusedError, tacit.DeviatedError) as error:
    # Nothing but a person mends these, so the job is over: RayJob tries again whatever ends with another code.
    print(f"NO RESULT, and no try again: {error}", file=sys.stderr)
