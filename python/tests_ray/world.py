"""A study of two parties, their files and their party files; the true answer is known."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import Any

import tacit

NAMES = ["clinic", "works"]
"""The first one listens, and leads."""
STUDY = """
format = "tacit-study/1"
name = "days"
kind = "program"
title = "Weighted exposure"
[party.clinic]
key = "{clinic}"
[party.works]
key = "{works}"
[match]
protocol = "{protocol}"
identifiers = [ {{ name = "person" }} ]
duplicates = "error"
[columns]
weight = {{ party = "clinic", column = "weight" }}
days = {{ party = "works", column = "days" }}
[program]
text = \"\"\"
tacit-program/2
name "days"
class {class_of}
{aligned}party clinic
party works
column weight u16 clinic
column days u16 works
row
weight = column weight
days = column days
mine = mul weight days
{rest}\"\"\"
[compute]
engine = "gmw"
ot = "softspoken:4"
"""
RELEASED = """
[release.to.clinic]
rho = 0.125
"""
EXACT = """combine
all = sum mine u60
release
all = total all
reveal all clinic "weighted days"
reveal all works "weighted days"
"""
NOISED = """most = clamp mine 60000
combine
all = sum most u60
release
m = gaussian clinic 1/8 all
all = noised m 0
reveal all clinic "weighted days"
"""
SIGMA = 2 * 60_000
"""Of the noise: what one person may change by the root of twice rho."""
PARTY = """
study = "study.toml"
as = "{name}"
identity = "{name}.key"
data = "{name}.csv"
{meet}
ledger = "{name}.ledger"
report = "out-{name}"
lineage = "{name}-people"
deadline = "60s"
memory = "512M"
{more}
[policy]
kinds = ["program"]
allow_exact = true
"""


class World:
    """Two parties' files; rows are aligned, or joined by Private-ID on the lanes of workers."""

    def __init__(self, folder: Path, *, rows: int, pid: bool, noised: bool = False) -> None:
        self.folder, self.noised = folder, noised
        keys = {name: tacit.keygen(folder / f"{name}.key").fingerprint for name in NAMES}
        how = {"protocol": "aligned", "aligned": "rows aligned\n"}
        if pid:
            how = {"protocol": "pid", "aligned": ""}
        said = {"class_of": "dp", "rest": NOISED} if noised else {"class_of": "exact", "rest": EXACT}
        (folder / "study.toml").write_text(STUDY.format(**keys, **how, **said) + RELEASED * noised)
        shared = rows // 5 if pid else rows
        self.truth = 0
        with (folder / "clinic.csv").open("w") as weights, (folder / "works.csv").open("w") as days:
            weights.write("person,weight\n")
            days.write("person,days\n")
            for i in range(rows):
                weight, of = i * 17 % 60, i * 31 % 977
                self.truth += weight * of if i < shared else 0
                weights.write(f"p{i},{weight}\n")
                days.write(f"{'p' if i < shared else 'q'}{i},{of}\n")
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{bound.getsockname()[1]}"
        meets = f'listen = "{address}"', f'peer = "{address}"'
        for name, meet in zip(NAMES, meets, strict=True):
            more = f'state = "state-{name}"\nstate_key = "{name}.state"\nspool = true' if pid else ""
            (folder / f"{name}.toml").write_text(PARTY.format(name=name, meet=meet, more=more))

    def forget(self) -> None:
        """Ledgers that know the answer compute nothing."""
        for name in NAMES:
            for path in self.folder.glob(f"{name}.ledger*"):
                path.unlink()
            shutil.rmtree(self.folder / f"out-{name}", ignore_errors=True)

    def check(self, reports: list[dict[str, Any]]) -> None:
        for report in reports:
            outputs = report["view"]["outputs"]
            if not self.noised:
                assert outputs[0]["value"] == str(self.truth)
            elif report["party"] == NAMES[0]:
                # Ten deviations: never by noise.
                assert abs(int(outputs[0]["value"]) - self.truth) < 10 * SIGMA < self.truth
