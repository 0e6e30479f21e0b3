"""The coordinator of a party: the RayJob runs it on the head, and workers are actors of its cluster."""

import os

import tacit

party = tacit.Party.load("/etc/tacit/party.toml")
workers = tacit.Ray(os.environ["RAY_ADDRESS"], workers=int(os.environ["TACIT_WORKERS"]))
print(party.run(launcher=workers).text)
