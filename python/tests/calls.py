"""The calls of docs/python.md, for mypy --strict. ``test_types`` reads this file, and runs it as a whole."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import polars as pl

import tacit
from tacit import Value

KEYS = {"shop": "tacit1:00112233445566778899aabbccddeeff", "trial": "tacit1:ffeeddccbbaa99887766554433221100"}
MATCH = tacit.Match("pid", identifiers=[tacit.Identifier("email", normalise=["trim", "lowercase"])])


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
    plan.to_pandas()
    return study


def row(
    arm: Annotated[Value, tacit.u2["trial"].labels("test", "control")],
    spent: Annotated[Value, tacit.u24["shop"].scale(100).unit("EUR")],
) -> dict[str, tacit.Fold]:
    most = spent.clamp(0, 500)
    return {
        "people": tacit.sum(arm == "test", bits=40),
        "test": tacit.sum(tacit.select(arm == "test", most, 0)),
        "control": tacit.sum(tacit.select(arm == "control", most, 0)),
    }


def release(t: tacit.Release, people: Value, test: tacit.Fold, control: tacit.Fold) -> None:
    noisy = t.gaussian("trial", rho="1/8", of=[test, control])
    t.reveal(people, "trial", "people in the test arm")
    t.reveal(noisy[0] - noisy[1], "trial", "difference of spending")


def programs() -> tacit.Study:
    study = tacit.Study.program("spending", row, release, parties=KEYS, match=MATCH, rows="any")
    print(study.text, study.check().rho)
    return study


def questions() -> tacit.Study:
    columns = {
        "spent": tacit.u24["shop"].scale(100).unit("EUR").missing().named("eur"),
        "arm": tacit.u2["trial"].labels("test", "control"),
        "age": tacit.u7["trial"],
    }
    spent = tacit.between("spent", 0, 500)
    asked = (
        tacit.Ask("trial", rho="1/10")
        .by("arm", tacit.edges("age", 18, 40, 90))
        .count(within=50)
        .mean(spent, "variance", "difference")
        .by()
        .regression(spent, on=[tacit.between("age", 18, 90)])
    )
    return tacit.Study.program("spending", columns, asked, parties=KEYS, match=MATCH)


def queries() -> tacit.Study:
    columns = {
        "spent": tacit.u24["shop"].scale(100).unit("EUR").named("eur").missing(),
        "arm": tacit.u2["trial"].labels("test", "control"),
        "age": tacit.u7["trial"],
    }
    return tacit.sql(
        """SELECT arm, COUNT(*), AVG(LEAST(spent, 500)) AS spent_most FROM trial JOIN shop USING (email)
        WHERE age >= 18 GROUP BY arm""",
        columns=columns,
        viewer="trial",
        rho="1/10",
        parties=KEYS,
    )


def simulated(study: tacit.Study, folder: Path) -> None:
    media = pl.DataFrame({"email": ["a", "b"], "arm": ["test", "control"], "seen": [10, 20]})
    shop = pl.DataFrame({"email": ["a", "c"], "bought": [15, 25], "amount": [100, 200]})
    exact = tacit.simulate(study, {"media": media, "shop": shop})
    print(exact.runs, exact.text)


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
    report.counts.to_pandas()
    report.plot()
    print(tacit.Ledger(folder / "media.ledger").spent("members"))
    party.run("s3://media/members/", workers=8, memory="16G", state="s3://media/tacit-state/", state_key="k")
    launcher = tacit.Ray("10.0.0.5:6379", workers=32, threads=1)
    party.run("s3://media/members/", launcher=launcher, state="s3://media/tacit-state/")
    gate = {"expose": "gate", "gate": "gate.example.org:7001", "gate-key": KEYS["shop"]}
    behind = tacit.Party(study, as_="media", identity="media.key", listen="0.0.0.0:7000", settings=gate)
    behind.run("members.parquet", launcher=launcher)
    matched: tacit.MatchResult = party.match("s3://media/members/")
    matched.to_polars()
    return report


async def awaited(party: tacit.Party) -> tacit.Report:
    reports: tacit.Reports = await party.start_all("members.parquet")
    print(len(reports))
    return await party.start("members.parquet")


def outputs(report: tacit.Report) -> float:
    one = report.outputs[0]
    print(one.label, one.value - 1, report.public_result.html)
    return one.sigma or 0.0


async def watched(party: tacit.Party) -> None:
    async for event in party.start("members.parquet"):
        print(event.stage, event.rows, event.bytes, event.retries, event.report)


def served(url: str, token: str) -> tacit.Report:
    service = tacit.Service(url, token, certificate="cert.pem", timeout=10.0)
    study: str = service.propose("study.toml", note="For the spring.", days=14)
    words: str = service.summary(study).words
    service.consent(study, words=words, data="members")
    found: tacit.Fields = service.wait(study, timeout=600.0)
    print(found.state, [one.title for one in service.studies(open=True)], service.budget())
    for event in service.events():
        print(event.kind, event.id, event.data)
    return service.report(study)


def refused(party: tacit.Party) -> list[tacit.Place]:
    try:
        party.check("members.parquet")
    except tacit.InputError as error:
        return error.places
    except tacit.RefusedError as error:
        print(error.party, error.peer, error.step, error.kind, error.code, error.hint)
        if error.budget is not None and error.spent is not None:
            print(error.bound, error.budget - error.spent, error.asked)
    return []


if __name__ == "__main__":
    home = Path(sys.argv[1])
    simulated(studies(home), home)
    trial = pl.DataFrame({"email": ["a", "b"], "arm": ["test", "control"], "age": [20, 30]})
    shop = pl.DataFrame({"email": ["a", "b"], "spent": ["1.50", "2"], "eur": ["1.50", None]})
    for program in (programs(), questions(), queries()):
        print(tacit.simulate(program, {"trial": trial, "shop": shop}).runs)
    print(asyncio.iscoroutinefunction(watched))
