"""What programs and questions compute, against numpy: exactly without noise, and in a run of two parties."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping
from typing import Any

import matplotlib
import matplotlib.pyplot
import numpy as np
import polars as pl
import pytest
from conftest import both, free_address

import tacit

matplotlib.use("Agg")
ROWS = 3000
DOSES = ["none", "low", "high"]
FIRST = datetime.date(2026, 1, 1)
QUARTERS = [FIRST, datetime.date(2026, 4, 1), datetime.date(2026, 7, 1), datetime.date(2026, 10, 1)]
COST_EDGES = [-50, 0, 50, 100, 200, 450]
COST = tacit.i20["registry"].scale(100).unit("EUR")
DOSE = tacit.u2["trial"].labels(*DOSES)
SEEN = tacit.u15["trial"].date()
PRESSURE = tacit.u8["trial"].unit("mmHg").missing()
BALANCE = tacit.i16["trial"].unit("point")
ILL = tacit.bit["registry"]
MATCH = tacit.Match("pid", identifiers=["id"])
KEYS = {
    "registry": "tacit1:00112233445566778899aabbccddeeff",
    "trial": "tacit1:ffeeddccbbaa99887766554433221100",
}
COLUMNS = {
    "cost": COST, "ill": ILL, "dose": DOSE, "seen": SEEN, "pressure": PRESSURE, "balance": BALANCE,
}  # fmt: skip


class Trial:
    """Two frames that share five in six people, and of these the columns as numpy has them."""

    def __init__(self) -> None:
        random = np.random.default_rng(7)
        dose = random.integers(0, 3, ROWS)
        pressure = random.integers(90, 190, ROWS)
        cents = 150 * pressure - 14_000 + 2500 * dose + random.integers(-12_000, 12_000, ROWS)
        days = random.integers(0, 364, ROWS)
        known = random.random(ROWS) < 0.9
        self.all = {
            "cost": cents / 100,
            "ill": random.random(ROWS) < 0.3 + 0.1 * dose,
            "dose": np.array(DOSES)[dose],
            "day": days,
            "pressure": np.where(known, pressure, np.nan),
            "balance": random.integers(-900, 900, ROWS) + 3 * (pressure - 140),
        }
        people = [f"p{i}" for i in range(ROWS)]
        seen = [FIRST + datetime.timedelta(int(day)) for day in days]
        trial = {
            "id": people,
            "dose": list(self.all["dose"]),
            "seen": seen,
            "pressure": [int(of) if here else None for of, here in zip(pressure, known, strict=True)],
            "balance": list(self.all["balance"]),
        }
        registry = {"id": people, "ill": list(self.all["ill"]), "cost": [f"{of / 100:.2f}" for of in cents]}
        self.frames = {
            "trial": pl.DataFrame(trial)[: ROWS - 250],
            "registry": pl.DataFrame(registry)[250:].sample(fraction=1, shuffle=True, seed=3),
        }
        self.shared = {name: column[250 : ROWS - 250] for name, column in self.all.items()}


@pytest.fixture(scope="module")
def trial() -> Trial:
    return Trial()


def asked(row: Any, *asks: tacit.Ask, **how: Any) -> tacit.Study:
    return tacit.Study.program("asked", row, *asks, parties=KEYS, match=MATCH, **how)


QUESTIONS = (
    tacit.Ask("trial", rho="1/2")
    .count()
    .by("dose")
    .count()
    .sum(tacit.between("cost", -50, 450))
    .mean(tacit.between("cost", -50, 450), "variance", "standard-deviation", "difference")
    .by("ill")
    .mean(tacit.between("balance", -1000, 1000))
    .by("dose", tacit.edges("seen", *QUARTERS, datetime.date(2026, 12, 31)))
    .statistics("ill", "share", "risk-difference")
    .by(tacit.values("pressure", 120, 121))
    .count()
    .by()
    .histogram("cost", COST_EDGES)
    .quantile("cost", ["1/4", "1/2"], range(-50, 451, 10)),
    tacit.Ask("public", rho="1/2")
    .covariance(tacit.between("cost", -50, 450), tacit.between("pressure", 90, 190))
    .correlation(tacit.between("balance", -1200, 1200), tacit.between("pressure", 90, 190))
    .regression(
        tacit.between("cost", -50, 450),
        on=[tacit.between("pressure", 90, 190), tacit.between("balance", -1200, 1200), "ill"],
    ),
)  # fmt: skip


def truth(of: Mapping[str, Any]) -> dict[str, float]:
    """What numpy makes of the rows that both have, by label."""
    cost, ill, dose = np.clip(of["cost"], -50, 450), of["ill"], of["dose"]
    found: dict[str, float] = {"rows": len(cost)}
    for name in DOSES:
        own = cost[dose == name]
        found[f"rows, dose = {name}"] = len(own)
        found[f"sum of cost, dose = {name}"] = own.sum()
        found[f"mean of cost, dose = {name}"] = own.mean()
        found[f"variance of cost, dose = {name}"] = own.var(ddof=1)
        found[f"standard-deviation of cost, dose = {name}"] = own.std(ddof=1)
        if name != "none":
            difference = own.mean() - cost[dose == "none"].mean()
            found[f"difference of cost, dose = {name} against dose = none"] = difference
    for name, cell in (("not ill", ~ill), ("ill", ill)):
        found[f"mean of balance, {name}"] = np.clip(of["balance"], -1000, 1000)[cell].mean()
    ends = [(day - FIRST).days for day in [*QUARTERS, datetime.date(2026, 12, 31)]]
    days = [FIRST + datetime.timedelta(end) for end in ends]
    for i, name in itertools.product(range(4), DOSES):
        inside = (of["day"] >= ends[i]) & (of["day"] < ends[i + 1])
        share = {one: ill[inside & (dose == one)].mean() for one in DOSES}
        when = f"seen {days[i]} to {days[i + 1]}"
        found[f"share of ill, dose = {name}, {when}"] = share[name]
        if name != "none":
            label = f"risk-difference of ill, dose = {name} against dose = none, {when}"
            found[label] = share[name] - share["none"]
    for value in (120, 121):
        found[f"rows, pressure = {value}"] = np.sum(of["pressure"] == value)
    histogram = np.histogram(of["cost"], COST_EDGES)[0]
    for low, high, count in zip(COST_EDGES[:-1], COST_EDGES[1:], histogram, strict=True):
        found[f"rows, cost {low} to {high}"] = count
    return found | associations(of)


def associations(of: Mapping[str, Any]) -> dict[str, float]:
    known = ~np.isnan(of["pressure"])
    cost, pressure = np.clip(of["cost"], -50, 450)[known], of["pressure"][known]
    balance = np.clip(of["balance"], -1200, 1200)[known]
    design = np.column_stack([np.ones(known.sum()), pressure, balance, of["ill"][known]])
    names = ["constant of cost", "cost by pressure", "cost by balance", "cost by ill"]
    return {
        "covariance of cost with pressure": np.cov(cost, pressure)[0, 1],
        "correlation of balance with pressure": np.corrcoef(balance, pressure)[0, 1],
        **dict(zip(names, np.linalg.lstsq(design, cost, rcond=None)[0], strict=True)),
    }


def exact(study: tacit.Study, frames: Mapping[str, Any]) -> dict[str, float]:
    """By label, what a run would show without its noise."""
    done = tacit.simulate(study, frames)
    views = [view for run in done.runs for view in run.views]
    return {one.label: one.exact for view in views for part in view.parts for one in part.numbers}


def test_questions_without_noise_are_numpys(trial):
    study = asked(COLUMNS, *QUESTIONS)
    found, right = exact(study, trial.frames), truth(trial.shared)
    assert not set(right) - set(found), set(right) - set(found)
    for label, value in right.items():
        assert found[label] == pytest.approx(value, rel=1e-9, abs=1e-9), label
    for share in (0.25, 0.5):
        label = "median of cost" if share == 0.5 else "quantile 1/4 of cost"
        assert abs(found[label] - np.quantile(trial.shared["cost"], share)) <= 10
    assert study.check().rho.to_dict() == pytest.approx({"public": 0.5, "registry": 0.5, "trial": 1})


def row(cost: COST, ill: ILL, dose: DOSE, seen: SEEN, pressure: PRESSURE, balance: BALANCE):
    late = seen >= datetime.date(2026, 7, 1)
    high = dose.isin(["low", "high"]) & late
    score = balance.cast(tacit.i18) * 2 + pressure.default(140).cast(tacit.i18) - 140
    apart = abs(balance.clamp(-500, 500) - 100)
    return {
        "spent": tacit.sum(tacit.select(high, cost.clamp(-50, 450), 0)),
        "other": tacit.sum(tacit.select(~high, cost.clamp(-50, 450), 0)),
        "score": tacit.sum(score.clamp(-1000, 1000)),
        "apart": tacit.sum(apart.clamp(0, 600)),
        "measured": tacit.sum(pressure.known() & (pressure > 120) & ~ill),
        "pressure": tacit.sum(pressure.clamp(200)),
    }


def release(t: tacit.Release, spent, other, score, apart, measured, pressure) -> None:
    for name, noisy in zip(
        ("spent", "other"), t.gaussian("trial", rho="1/2", of=[spent, other]), strict=True
    ):
        t.reveal(noisy, "trial", name)
    for name, fold in (("score", score), ("apart", apart), ("measured", measured), ("pressure", pressure)):
        t.reveal(t.gaussian("public", rho="1/2", of=[fold])[0], "public", name)


def row_truth(of: Mapping[str, Any]) -> dict[str, int]:
    cents = np.round(np.clip(of["cost"], -50, 450) * 100).astype(int)
    high = (of["dose"] != "none") & (of["day"] >= (datetime.date(2026, 7, 1) - FIRST).days)
    pressure, known = np.nan_to_num(of["pressure"]).astype(int), ~np.isnan(of["pressure"])
    score = of["balance"] * 2 + np.where(known, pressure, 140) - 140
    return {
        "spent": cents[high].sum(),
        "other": cents[~high].sum(),
        "score": np.clip(score, -1000, 1000).sum(),
        "apart": np.clip(np.abs(np.clip(of["balance"], -500, 500) - 100), 0, 600).sum(),
        "measured": np.sum(known & (pressure > 120) & ~of["ill"]),
        "pressure": np.clip(pressure[known], 0, 200).sum(),
    }


CHANGES = {"spent": 50_000, "other": 50_000, "score": 2000, "apart": 600, "measured": 1, "pressure": 200}
"""The most that a row changes: from -50 to 450 in cents, as the cells are the viewer's own, and so on."""


def test_a_function_of_rows_without_noise_is_numpys(trial):
    study = asked(row, release)
    found = exact(study, trial.frames)
    assert found == row_truth(trial.shared)
    assert study.check().rho.to_dict() == pytest.approx({"public": 2, "registry": 2, "trial": 2.5})


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    return folder, {name: tacit.keygen(folder / f"{name}.key") for name in KEYS}


def reports(study: tacit.Study, keys: Any, frames: Mapping[str, Any]) -> dict[str, tacit.Report]:
    """A run of both."""
    folder, own = keys
    address = free_address()
    parties = {
        name: tacit.Party(
            study,
            as_=name,
            identity=own[name].path,
            ledger=folder / f"{study.hash[:8]}-{name}.ledger",
            lineage=f"{name}-people",
            deadline="120s",
            allow_kinds=["program"],
            max_rho=5,
            budget=20,
            total=20,
            **{"listen" if name == "registry" else "peer": address},
        )
        for name in own
    }
    done = both({name: lambda name=name: parties[name].run(frames[name], progress=False) for name in own})
    for one in done.values():
        if isinstance(one, BaseException):
            raise one
    return done


def test_a_run_of_a_function_has_the_noise_that_was_derived(trial, keys):
    study = tacit.Study.program("run", row, release, parties=keys[1], match=MATCH)
    done = reports(study, keys, trial.frames)
    right = row_truth(trial.shared)
    shown = {one.label: one for report in done.values() for one in report.outputs}
    assert set(shown) == set(right)
    for label, one in shown.items():
        sigma = CHANGES[label] / (2 * 0.5) ** 0.5
        assert float(one.sigma) == pytest.approx(sigma, rel=0.02, abs=0.1), label
        assert abs(int(one.value) - right[label]) <= 12 * sigma, label
    # Cents are told as cents, with noise as without it.
    told = {label: (one.unit, one.scale) for label, one in shown.items()}
    assert told["spent"] == told["other"] == ("EUR", 100) and told["measured"] == told["score"] == ("", 1)
    report = done["trial"]
    assert "spent, 1/100 EUR" in report.text and "spent, 1/100 EUR" in report.html
    axes = report.plot(group="EUR")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["spent", "other"]
    low, high = next(line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2)
    assert high - low == pytest.approx(2 * 1.96 * float(shown["spent"].sigma) / 100, rel=1e-3)
    spent = shown["spent"]
    assert repr(spent).startswith(f"Output('spent', value={spent.value} of 1/100 EUR, sigma=")
    for label, party, unit in (("spent", "trial", ["EUR", 100]), ("score", "registry", ["", 1])):
        frame = done[party].outputs.to_pandas().set_index("label")
        assert [*frame.loc[label, ["unit", "scale"]]] == unit
    units = report.numbers.to_pandas().set_index("group").unit
    assert units["spent"] == "1/100 EUR" and not isinstance(units["score"], str)
    views = [view for run in tacit.simulate(study, trial.frames).runs for view in run.views]
    simulated = {one.label: one.unit for view in views for part in view.parts for one in part.numbers}
    assert simulated["spent"] == "1/100 EUR" and simulated["score"] == ""


def test_a_run_of_questions_is_numpys_within_its_noise(trial, keys):
    study = tacit.Study.program("questions", COLUMNS, *QUESTIONS, parties=keys[1], match=MATCH)
    done = reports(study, keys, trial.frames)
    right = truth(trial.shared)
    seen = 0
    for report in done.values():
        for one in [*report.view.derived, *report.public.derived]:
            if one.label in right and one.noise is not None:
                seen += 1
                assert abs(one.value - right[one.label]) <= 6 * one.noise + 1e-6, one.label
    assert seen > len(right) * 0.8
    plotted(done["trial"])


def plotted(report: tacit.Report) -> None:
    """Axes of each group of numbers, with all that is determined."""
    axes = report.plot()
    titles = [of.get_title().removeprefix("questions: ") for of in axes]
    assert {"mean of cost", "variance of cost", "risk-difference of ill"} <= set(titles), titles
    one = report.plot(group="mean of cost")
    own = {of.label: of for of in report.view.derived if of.label.startswith("mean of cost, ")}
    assert [label.get_text() for label in one.get_yticklabels()] == [
        label.removeprefix("mean of cost, ") for label in own
    ]
    points = [line.get_xdata()[0] for line in one.lines if line.get_marker() == "o"]
    assert points == [of.value for of in own.values()]
    ends = [[*line.get_xdata()] for line in one.lines if len(line.get_xdata()) == 2 and line.get_color() != "0.6"]
    assert ends == [ends for of in own.values() for ends in of.intervals]
    assert one.get_xlabel() == "EUR, with 95% intervals"
    with pytest.raises(tacit.InputError, match="no group 'cost'; there are: .*'mean of cost'"):
        report.plot(group="cost")
    with pytest.raises(tacit.InputError, match="one ax takes one group of numbers"):
        report.plot(ax=one)
    matplotlib.pyplot.close("all")


def test_noise_of_questions_is_what_the_verifier_derives():
    """Half of an interval is 1.96 sigma, and sigma^2 is the change squared over twice the rho."""
    cost = tacit.between("cost", -50, 450)
    asked_of = tacit.Ask("trial", rho="1/2").by("dose").count().sum(cost).by("ill").count().sum(cost)
    plan = asked(COLUMNS, asked_of).plan(rows=ROWS)
    # The viewer's own groups keep a row in its cell; between others' groups it moves, and two cells change.
    changes = [1, 50_000, 2**0.5, 2**0.5 * 45_000]
    assert [one.rho for one in plan.noise] == [pytest.approx(1 / 8)] * 4
    for one, change in zip(plan.noise, changes, strict=True):
        assert one.half_width == pytest.approx(1.96 * change / (2 / 8) ** 0.5, rel=0.005), one.name
