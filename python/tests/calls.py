"""The calls of docs/python.md, for mypy --strict. ``test_types`` reads this file, and runs it as a whole."""

import asyncio
import sys
from pathlib import Path

import polars as pl

import tacit


def studies(folder: Path) -> tacit.Study:
    key = tacit.keygen(folder / "registry.key")
    print(key.fingerprint)
    study = (
        tacit.Study.lift("spring", title="Spring campaign")
        .publisher("media", key=key)
        .advertiser("shop", key="tacit1:b07e66d2915c4fa3a2d8017b34ce9f50")
        .match("pid", identifiers=[tacit.Identifier("email", normalise=["trim", "lowercase"])])
        .opportunity("seen")
        .arm("arm", test="test", control="control")
        .events("bought", value="amount", unit="cent", max_events=4)
        .clamp(10_000)
        .release(rho={"media": "0.1", "shop": "0.1"})
    )
    study.save(folder / "study.toml")
    print(study.check().revealed)
    plan = study.plan(rows=500_000_000, cores=32, price=tacit.Prices.aws_2026())
    plan.to_polars()
    return study


def simulated(study: tacit.Study, folder: Path) -> None:
    media = pl.DataFrame({"email": ["a", "b"], "arm": ["test", "control"], "seen": [10, 20]})
    shop = pl.DataFrame({"email": ["a", "c"], "bought": [15, 25], "amount": [100, 200]})
    exact = tacit.simulate(study, {"media": media, "shop": shop})
    print(exact.runs)


def runs(study: tacit.Study, folder: Path, peer: str) -> tacit.Report:
    party = tacit.Party(
        study,
        as_="media",
        identity=folder / "registry.key",
        ledger=folder / "media.ledger",
        lineage="members",
        listen="0.0.0.0:7000",
        workers=8,
        memory="16G",
        state="s3://media/tacit-state/",
    )
    report = party.run(pl.read_parquet(folder / "members.parquet"))
    print(report.estimate.lift, report.interval)
    report.counts.to_polars()
    report.plot()
    print(tacit.Ledger(folder / "media.ledger").spent("members"))
    party.run("s3://media/members/", workers=8, memory="16G", state="s3://media/tacit-state/", state_key="k")
    launcher = tacit.Ray("10.0.0.5:6379", workers=32, threads=1)
    party.run("s3://media/members/", launcher=launcher, state="s3://media/tacit-state/")
    matched: tacit.MatchResult = party.match("s3://media/members/")
    matched.to_polars()
    return report


async def watched(party: tacit.Party) -> None:
    async for event in party.start("members.parquet"):
        print(event.stage, event.rows, event.bytes, event.retries, event.report)


def refused(party: tacit.Party) -> list[tacit.Place]:
    try:
        party.check("members.parquet")
    except tacit.InputError as error:
        return error.places
    except tacit.RefusedError as error:
        print(error.party, error.peer, error.step, error.kind, error.code, error.hint)
    return []


if __name__ == "__main__":
    home = Path(sys.argv[1])
    simulated(studies(home), home)
    print(asyncio.iscoroutinefunction(watched))
