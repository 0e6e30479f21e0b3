"""SQL: what a query asks is what its questions ask; what is outside says why."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import polars as pl
import pytest
from test_numbers import COLUMNS, KEYS, MATCH, Trial, exact

import tacit

WIDE = {**COLUMNS, "rooms": tacit.u3["trial"]}
FROM = "FROM registry JOIN trial USING (id)"


@pytest.fixture(scope="module")
def trial() -> Trial:
    made = Trial()
    rooms = np.arange(len(made.frames["trial"])) % 5
    made.frames["trial"] = made.frames["trial"].with_columns(rooms=rooms)
    made.shared["rooms"] = np.arange(len(made.all["ill"]))[250:-250] % 5
    return made


def query(text: str, rho: object = 2, **how: object) -> tacit.Study:
    return tacit.sql(text, columns=WIDE, viewer="trial", rho=rho, parties=KEYS, **how)


def test_a_query_is_its_questions():
    spent = "LEAST(GREATEST(cost, -50), 450)"
    study = query(f"SELECT dose, COUNT(*), AVG({spent}) AS spent, VAR_SAMP({spent}) {FROM} GROUP BY dose")
    assert study.text.endswith(
        "row\ncost = column cost\nv0 = const -5000 i20\nv1 = max cost v0\nv2 = const 45000 i20\n"
        "spent = min v1 v2\nask trial rho 2\nby dose\ncount\nmean variance of spent\n"
    )
    columns = {"cost": COLUMNS["cost"], "dose": COLUMNS["dose"]}

    def row(cost: COLUMNS["cost"], dose: COLUMNS["dose"]):
        return {"spent": tacit.minimum(tacit.maximum(cost, -50), 450)}

    asked = tacit.Ask("trial", rho=2).by("dose").count().statistics("spent", "mean", "variance")
    traced = tacit.Study.program("sql", row, asked, parties=KEYS, match=MATCH)
    assert study == traced and study.text == traced.text
    assert set(columns) == {"cost", "dose"}


def test_a_query_without_noise_is_numpys(trial):
    study = query(
        f"""SELECT COUNT(*), COUNT(pressure), SUM(LEAST(GREATEST(balance * 2 - 1, -900), 900)) AS twice,
        AVG(CASE WHEN ill THEN LEAST(GREATEST(cost, -50), 450) ELSE 0 END) AS of_ill,
        AVG(CASE WHEN pressure > 150 THEN 1 ELSE 0 END) AS high,
        CORR(LEAST(GREATEST(cost, -50), 450), ill), seen >= DATE '2026-07-01' AS older
        {FROM} WHERE rooms IN (1, 2, 3) AND NOT dose = 'none' AND trial.balance BETWEEN -800 AND 800
        GROUP BY older"""
    )
    found, of = exact(study, trial.frames), trial.shared
    for late in (False, True):
        kept = np.isin(of["rooms"], [1, 2, 3]) & (of["dose"] != "none") & (np.abs(of["balance"]) <= 800)
        kept &= (of["day"] >= 181) == late
        cell = f"chosen = 1, {'' if late else 'not '}older"
        cost = np.clip(of["cost"], -50, 450)[kept]
        right = {
            f"rows, {cell}": kept.sum(),
            f"sum of known-pressure, {cell}": np.sum(~np.isnan(of["pressure"][kept])),
            f"sum of twice, {cell}": np.clip(of["balance"][kept] * 2 - 1, -900, 900).sum(),
            f"mean of of_ill, {cell}": np.where(of["ill"][kept], cost, 0).mean(),
            f"mean of high, {cell}": np.mean(np.nan_to_num(of["pressure"][kept]) > 150),
            f"correlation of expr1 with ill, {cell}": np.corrcoef(cost, of["ill"][kept])[0, 1],
        }
        for label, value in right.items():
            assert found[label] == pytest.approx(value, rel=1e-9, abs=1e-9), (label, sorted(found))


def test_what_is_null_is_as_in_sql(trial):
    """A row is chosen by what is true; CASE takes ELSE where a condition is not known."""
    text = f"""SELECT COUNT(*), SUM(COALESCE(LEAST(GREATEST(pressure, 0), 200), 7)) AS filled,
        SUM(CASE WHEN pressure > 140 AND ill THEN 2 WHEN pressure IS NULL THEN -1 ELSE 0 END) AS cases,
        SUM(ABS(LEAST(GREATEST(-balance, -10), 10))) AS turned
        {FROM} WHERE (COALESCE(pressure, 0) < 150 OR ill) AND NOT ill IS NULL AND balance < 100000"""
    found, of = exact(query(text), trial.frames), trial.shared
    pressure, missing = np.nan_to_num(of["pressure"]), np.isnan(of["pressure"])
    kept = (pressure < 150) | of["ill"]
    right = {
        "rows": kept.sum(),
        "sum of filled": np.where(missing, 7, pressure)[kept].sum(),
        "sum of cases": np.where((pressure > 140) & of["ill"], 2, np.where(missing, -1, 0))[kept].sum(),
        "sum of turned": np.clip(np.abs(of["balance"]), 0, 10)[kept].sum(),
    }
    assert {label: found[f"{label}, chosen = 1"] for label in right} == right


def test_groups_that_where_names(trial):
    study = query(f"SELECT rooms, COUNT(1) {FROM} WHERE rooms IN (1, 3) GROUP BY rooms")
    found = exact(study, trial.frames)
    for room in (1, 3):
        assert found[f"rows, chosen = 1, rooms = {room}"] == np.sum(trial.shared["rooms"] == room)
    assert study.check().rho.trial == pytest.approx(2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT", "joined by the same key"),
        ("DELETE FROM registry", "one SELECT"),
        (f"SELECT COUNT(*) {FROM}; SELECT 1", "one SELECT"),
        (f"SELECT COUNT(*) {FROM} LIMIT 3", "LIMIT is outside of the subset: all groups"),
        (f"SELECT COUNT(*) {FROM} ORDER BY 1", "ORDER is outside"),
        (f"SELECT COUNT(*) {FROM} GROUP BY dose HAVING COUNT(*) > 3", "HAVING is outside .* tell more"),
        (f"SELECT DISTINCT COUNT(*) {FROM}", "DISTINCT is outside"),
        (f"WITH q AS (SELECT 1) SELECT COUNT(*) {FROM}", "WITH is outside"),
        ("SELECT COUNT(*) FROM registry", "the same key"),
        ("SELECT COUNT(*) FROM registry LEFT JOIN trial USING (id)", "rows are those that all tables have"),
        ("SELECT COUNT(*) FROM registry, trial", "identifiers of one name"),
        ("SELECT COUNT(*) FROM registry JOIN trial ON registry.id = trial.id", "identifiers of one name"),
        ("SELECT COUNT(*) FROM registry AS r JOIN trial USING (id)", "a table is a party"),
        ("SELECT COUNT(*) FROM registry JOIN bank USING (id)", "each party is a table"),
        (f"SELECT dose {FROM}", "neither an aggregate nor a key"),
        (f"SELECT * {FROM}", "no row is told"),
        (f"SELECT dose {FROM} GROUP BY dose", "nothing is asked for"),
        (f"SELECT MAX(cost) {FROM}", "no noise hides it"),
        (f"SELECT COUNT(DISTINCT dose) {FROM}", "distinct values"),
        (f"SELECT VAR_POP(cost) {FROM}", "VAR_SAMP"),
        (f"SELECT MEDIAN(cost) {FROM}", "public edges"),
        (f"SELECT COUNT(*) FILTER (WHERE ill) {FROM}", "CASE WHEN"),
        (f"SELECT SUM(balance) OVER () {FROM}", "windows are of rows"),
        (f"SELECT AVG(cost) {FROM}", r"LEAST\(GREATEST\(cost, 0\), 100\)"),
        (f"SELECT AVG(balance / 2) {FROM}", "divide what the report has"),
        (f"SELECT COUNT(*) {FROM} WHERE balance", "no condition"),
        (f"SELECT COUNT(*) {FROM} WHERE balance % 2 = 0", "no remainder"),
        (f"SELECT COUNT(*) {FROM} WHERE pressure > 3 OR ill", "COALESCE each side"),
        (f"SELECT COUNT(*) {FROM} WHERE NOT (pressure > 3 AND ill)", "COALESCE each side"),
        (f"SELECT COUNT(*) {FROM} GROUP BY pressure > 3 AND ill", "AND is false"),
        (f"SELECT COUNT(*) {FROM} WHERE (pressure > 3 AND ill) = FALSE", "AND is false"),
        (f"SELECT COUNT(*) {FROM} WHERE balance IN (1, rooms)", "list of constants"),
        (f"SELECT COUNT(*) {FROM} WHERE (pressure IN (1, balance)) IS NULL", "list of constants"),
        (f"SELECT COUNT(*) {FROM} WHERE balance NOT BETWEEN pressure AND 100", "COALESCE each end"),
        (f"SELECT COUNT(*) {FROM} WHERE NOT (balance BETWEEN 0 AND pressure + 1)", "COALESCE each end"),
        (f"SELECT COUNT(*) {FROM} GROUP BY pressure > 3", "write WHERE pressure IS NOT NULL"),
        (f"SELECT COUNT(*) {FROM} WHERE pressure IS NULL GROUP BY pressure > 3", "write WHERE pressure"),
        (f"SELECT COUNT(*) {FROM} WHERE ill OR pressure > 3 GROUP BY pressure > 3", "a group of their own"),
        ("SELECT COUNT(*) FROM registry JOIN trial USING (id, year)", r"\(id, year\) is outside .* one key"),
        (f"SELECT COUNT(*) {FROM} WHERE cost > 0.001", "no whole number of 1/100"),
        (f"SELECT COUNT(*) {FROM} WHERE cost * cost > 1", "counts in another unit"),
        (f"SELECT COUNT(*) {FROM} WHERE dose = 'Low'", "none of the labels"),
        (f"SELECT COUNT(*) {FROM} WHERE salary > 1", "no column salary"),
        (f"SELECT COUNT(*) {FROM} WHERE registry.dose = 'low'", "a column of trial"),
        (f"SELECT COUNT(*) {FROM} WHERE balance IN (SELECT 1)", "list of constants"),
        (f"SELECT COUNT(*) {FROM} WHERE seen > DATE '2026-02-30'", "no day"),
        (f"SELECT COUNT(*) {FROM} GROUP BY balance", r"not public: name them, as in WHERE balance IN"),
        (f"SELECT COUNT(*) {FROM} GROUP BY balance + 1", "groups are public"),
        (f"SELECT AVG(CASE WHEN ill THEN 1 END) {FROM}", "without ELSE"),
        (f"SELECT AVG(LOWER(dose)) {FROM}", "no question of a program says it"),
        ("SELECT COUNT(*) FROM registry TABLESAMPLE SYSTEM (10) JOIN trial USING (id)", "says SAMPLE of it"),
        ("SELECT COUNT(*) FROM ONLY registry JOIN trial USING (id)", "says ONLY of it"),
        ("SELECT COUNT(*) FROM registry ASOF JOIN trial USING (id)", "says METHOD of it"),
        (f"SELECT COUNT(*) {FROM} WHERE rooms BETWEEN SYMMETRIC 5 AND 2", "says SYMMETRIC of it"),
        (f"SELECT COUNT(cost, balance) {FROM}", "says EXPRESSIONS of it"),
        (f"SELECT COUNT(*) {FROM} WHERE public.trial.rooms = 1", "says DB of it"),
        (f"SELECT COUNT(*) {FROM} WHERE COLUMNS('x') = 1", "no question of a program says it"),
        (f"SELECT COUNT(*) {FROM} WHERE rooms IN (-'x')", "no question of a program says it"),
        (f"SELECT COUNT(*) {FROM} WHERE dose < 'none'", "labels have no order"),
        (f"SELECT COUNT(*) {FROM} WHERE dose BETWEEN 'high' AND 'low'", "labels have no order"),
        (f"SELECT COUNT(*) {FROM} WHERE GREATEST(dose, 'low') = 'low'", "labels have no order"),
        (f"SELECT SUM(LEAST(GREATEST(CAST(dose AS INT), 0), 3)) {FROM}", "values keep their types"),
        (f"SELECT SUM(LEAST(GREATEST(dose + 1, 0), 3)) {FROM}", "labels are no numbers"),
        (f"SELECT COUNT(*) {FROM} WHERE seen = rooms", "one of these is a day, the other one a number"),
        (f"SELECT COUNT(*) {FROM} WHERE dose = rooms", "one of these is a label, the other one a number"),
    ],
)
def test_what_is_outside_says_why(text, words):
    with pytest.raises(tacit.TraceError, match=words) as caught:
        query(text)
    assert caught.value.places[0].file == __file__


def test_the_key_is_the_identifier():
    text = f"SELECT COUNT(*) {FROM}"
    two = tacit.Match("pid", identifiers=["id", "year"])
    with pytest.raises(tacit.TraceError, match="join by one key"):
        query(text.replace("(id)", "(id, year)"), match=two)
    own = tacit.Match("pid", identifiers=[tacit.Identifier("id", normalise=["trim"])])
    assert query(text, match=own).hash != query(text).hash
    assert 'identifiers = [{ name = "id" }]' in query(text).toml()
    with pytest.raises(tacit.TraceError, match="other identifiers"):
        query(text, match=tacit.Match("pid", identifiers=["email"]))


DAY = datetime.date(2026, 3, 1)
LISTS = {
    "arm": tacit.u2["trial"].labels("test", "control"),
    "dose": tacit.u3["trial"].labels("low", "high"),
    "rooms": tacit.u3["trial"],
    "begun": tacit.u15["trial"].date(),
    "got": tacit.u2["registry"].labels("control", "test"),
    "given": tacit.u2["registry"].labels("low", "high"),
    "paid": tacit.i20["registry"].scale(100).unit("EUR"),
    "fee": tacit.i20["registry"].scale(100),
    "ill": tacit.bit["registry"],
    "over": tacit.u15["registry"].date(),
    "seen": tacit.u8["registry"].missing(),
}


def listed(text: str) -> dict[str, float]:
    """The answers of 100 people without noise, by what is asked."""
    people = range(100)
    registry = {
        "got": ["test"] * 100,
        "given": ["high" if i % 2 else "low" for i in people],
        "paid": ["100.00"] * 100,
        "fee": ["50.00"] * 100,
        "ill": [i < 10 for i in people],
        "over": [DAY - datetime.timedelta(i % 2) for i in people],
        "seen": [7 if i < 30 else None for i in people],
    }
    trial = {
        "arm": ["test"] * 100,
        "dose": ["high" if i % 3 else "low" for i in people],
        "rooms": [i % 5 for i in people],
        "begun": [DAY] * 100,
    }
    ids = {"id": [f"p{i}" for i in people]}
    frames = {"registry": pl.DataFrame({**ids, **registry}), "trial": pl.DataFrame({**ids, **trial})}
    study = tacit.sql(text, columns=LISTS, viewer="trial", rho=2, parties=KEYS)
    return {label.removesuffix(", chosen = 1"): number for label, number in exact(study, frames).items()}


@pytest.mark.parametrize(
    ("asked", "label", "right"),
    [
        # What WHERE makes has a name that no alias takes from it.
        ("COUNT(*), AVG(LEAST(GREATEST(rooms, 0), 5)) AS chosen {} WHERE ill", "rows, chosen_ = 1", 10),
        ('COUNT(seen), SUM(LEAST(GREATEST(rooms, 0), 5)) AS "known-seen" {}', "sum of known-seen_", 30),
        ('COUNT(seen), SUM(LEAST(GREATEST(rooms, 0), 5)) AS "known-seen" {}', "sum of known-seen", 200),
        ("COUNT(*) {} WHERE ill", "rows", 10),
        # Days are subtracted as numbers, which do not wrap.
        ("SUM(LEAST(GREATEST(over - begun, 0), 30)) AS stay {}", "sum of stay", 0),
        ("SUM(LEAST(GREATEST(begun - over, 0), 30)) AS stay {}", "sum of stay", 50),
        ("COUNT(*) {} WHERE over - begun < 5", "rows", 100),
        ("COUNT(*) {} WHERE over - DATE '2026-03-01' < 0", "rows", 50),
        ("COUNT(*) {} WHERE DATE '2026-03-01' - over > 0", "rows", 50),
        ("COUNT(*) {} WHERE begun - 30000 < over", "rows", 100),
        ("COUNT(*) {} WHERE begun + 40000 > DATE '2026-03-01'", "rows", 100),
        ("COUNT(*) {} WHERE over + rooms >= begun", "rows", 90),
        # Labels of one list are one, whatever the types are.
        ("COUNT(*) {} WHERE dose = given", "rows", 50),
        ("COUNT(*) {} WHERE CASE WHEN ill THEN dose ELSE given END = 'high'", "rows", 51),
        ("COUNT(*) {} WHERE rooms::boolean = TRUE", "rows", 80),
        ("COUNT(*) {} WHERE seen IS NOT NULL", "rows", 30),
        ("COUNT(*) {} WHERE seen NOTNULL", "rows", 30),
        ("COUNT(*) {} WHERE seen IS NULL", "rows", 70),
        # WHERE leaves out what would be a group of NULL: by this word, or by what is true of no such row.
        ("COUNT(*) {} WHERE seen IS NOT NULL GROUP BY seen > 3", "rows, chosen = 1, expr1", 30),
        ("COUNT(*) {} WHERE NOT (seen IS NULL) AND ill GROUP BY seen > 3", "rows, chosen = 1, expr1", 10),
        ("COUNT(*) {} WHERE seen + 1 < 9 GROUP BY seen > 3", "rows, chosen = 1, expr1", 30),
        ("COUNT(*) {} WHERE seen IN (6, 7) GROUP BY seen", "rows, chosen = 1, seen = 7", 30),
        ("COUNT(*) {} GROUP BY COALESCE(seen, 0) > 3", "rows, expr1", 30),
    ],
)
def test_an_answer_is_that_of_sql(asked, label, right):
    found = listed(f"SELECT {asked.format(FROM)}")
    assert found[label] == right, found


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("COUNT(*) {} WHERE arm = got", "the labels of arm and got are not one list"),
        ("COUNT(*) {} WHERE CASE WHEN ill THEN arm ELSE got END = 'test'", "labels of arm and got"),
        ("AVG(LEAST(GREATEST(paid + fee, 0), 500)) {}", 'is counted in "EUR", the other one in no unit'),
        ("COUNT(*) {} WHERE paid > fee", "give both columns one unit"),
    ],
)
def test_what_is_counted_differently_is_refused(asked, words):
    with pytest.raises(tacit.TraceError, match=words):
        listed(f"SELECT {asked.format(FROM)}")


def test_constants_are_those_of_the_query():
    """All digits of them, whatever the caller's context of decimals is."""
    wide = {"paid": tacit.i64["registry"].scale(10**9), "rooms": tacit.u3["trial"]}
    text = f"SELECT COUNT(*) {FROM} WHERE paid > -1234567.123456789 + 1"
    with decimal.localcontext() as context:
        context.prec = 3
        study = tacit.sql(text, columns=wide, viewer="trial", rho=2, parties=KEYS)
    assert "const -1234566123456789 i64" in study.text


def test_groups_by_number_and_what_has_no_word():
    assert query(f"SELECT dose, COUNT(*) {FROM} GROUP BY 1") == query(
        f"SELECT dose, COUNT(*) {FROM} GROUP BY dose"
    )
    for text, told in (
        (f"SELECT COUNT(*) {FROM} GROUP BY CASE WHEN rooms < 2 THEN 0 ELSE 1 END", "histogram.*tacit.edges"),
        (f"SELECT rooms, COUNT(*) {FROM} GROUP BY rooms", "WHERE rooms IN.*tacit.edges"),
        (f"SELECT dose, COUNT(*) {FROM} GROUP BY 3", "SELECT has 2 expressions"),
        ("SELECT COUNT(*) FROM trial", "one table is one party"),
    ):
        with pytest.raises(tacit.TraceError, match=told):
            query(text)
