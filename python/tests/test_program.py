"""Programs that functions make: their texts, their mistakes, and that a file says the same."""

from __future__ import annotations

import datetime
import decimal
import math
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

import tacit

EXAMPLES = Path(__file__).parents[2] / "examples"
KEYS = {"shop": "tacit1:00112233445566778899aabbccddeeff", "trial": "tacit1:ffeeddccbbaa99887766554433221100"}
MATCH = tacit.Match("pid", identifiers=[tacit.Identifier("person", normalise=["trim", "lowercase"])])
ARM = tacit.u2["trial"]
SPENT = tacit.u16["shop"]
MONEY = tacit.i20["shop"].scale(100).unit("EUR")
DOSE = tacit.u2["trial"].labels("none", "low", "high")
SEEN = tacit.u15["trial"].date()


def made(row: Any, *steps: Any, **how: Any) -> tacit.Study:
    return tacit.Study.program("spending", row, *steps, **{"parties": KEYS, "match": MATCH, **how})


def row(arm: Annotated[tacit.Value, ARM], spent: SPENT) -> dict[str, tacit.Fold]:
    test, most = arm == 1, spent.clamp(100)
    return {
        "people": tacit.sum(test, bits=40),
        "test": tacit.sum(tacit.select(test, most, 0), bits=48),
        "control": tacit.sum(tacit.select(arm == 2, most, 0), bits=48),
    }


def release(t: tacit.Release, people: tacit.Fold, test: tacit.Fold, control: tacit.Fold) -> None:
    noisy = t.gaussian("trial", rho="1/8", of=[test, control])
    t.reveal(people, "trial", "people in the test arm")
    t.reveal(noisy[0], "trial", "spending, test arm")
    t.reveal(noisy[0] - noisy[-1], "trial", "difference of spending")


TEXT = """tacit-program/2
name "spending"
class dp
rows any
party shop
party trial
column arm u2 trial
column spent u16 shop
row
arm = column arm
v0 = const 1 u2
v1 = eq arm v0
spent = column spent
v2 = clamp spent 100
v3 = const 0 u16
v4 = select v1 v2 v3
v5 = const 2 u2
v6 = eq arm v5
v7 = select v6 v2 v3
combine
people = sum v1 u40
test = sum v4 u48
control = sum v7 u48
release
m0 = gaussian trial 1/8 test control
v0 = total people
reveal v0 trial "people in the test arm"
v1 = noised m0 0
reveal v1 trial "spending, test arm"
v2 = noised m0 1
v3 = sub v1 v2
reveal v3 trial "difference of spending"
"""


def test_functions_become_the_program(command, tmp_path):
    study = made(row, release, rows="any", title="Spending after treatment")
    assert study.text == TEXT
    assert study.name == "spending" and study.title == "Spending after treatment"
    assert "[release.to.trial]\nrho = 0.125\n" in study.toml()
    found = study.check()
    assert found.rho.to_dict() == {"shop": 0, "trial": 0.125}
    assert found.revealed["trial"] == [
        "people in the test arm",
        "spending, test arm",
        "difference of spending",
    ]
    path = study.save(tmp_path / "study.toml")
    assert command("check", path)["study"] == found.study.to_dict()
    assert tacit.Study.load(path) == study == made(row, release, rows="any", title="Spending after treatment")


def test_a_program_by_hand_is_the_same_program():
    """Of other names: what is computed is hashed by number."""
    built = made(row, release, rows="any")
    by_hand = built.toml().replace("v4", "of-test").replace("v7", "of-control")
    written = tacit.Study(by_hand.replace("people = ", "treated = ").replace("total people", "total treated"))
    assert "of-test = select v1" in written.text and written.hash != built.hash
    assert written.check().study.program == built.check().study.program


def test_questions_have_the_hash_of_a_file(command, tmp_path):
    keys = {"registry": KEYS["shop"], "trial": KEYS["trial"]}
    columns = {
        "cost": tacit.i20["registry"].scale(100).unit("EUR").missing().named("eur"),
        "ill": tacit.bit["registry"].named("icd_group"),
        "dose": tacit.u2["trial"].labels("none", "low", "high").named("arm"),
    }
    asked = (
        tacit.Ask("trial", rho="1/10")
        .by("dose")
        .mean(tacit.between("cost", -50, 450), "difference")
        .statistics("ill", "share", "risk-ratio")
    )
    title = "What treatment costs by dose, and who falls ill"
    study = tacit.Study.program("cost-by-dose", columns, asked, parties=keys, match=MATCH, title=title)
    path = tmp_path / "written.toml"
    path.write_text((EXAMPLES / "questions.toml").read_text().replace('"Cost by dose"', '"cost-by-dose"'))
    written = tacit.Study.load(path)
    assert study.text == written.text
    assert study.hash == written.hash == command("check", path)["study"]["hash"]
    assert study.toml() == written.toml()


def test_rows_and_sums_in_two_functions():
    def two(arm: ARM, spent: SPENT):
        return {"test": arm == 1, "most": spent.clamp(0, 100)}

    def combine(most, test):
        return {"total-spent": tacit.sum(tacit.select(test, most, 0))}

    def told(t, total_spent):
        t.reveal(t.gaussian("public", rho=Fraction(1, 4), of=[total_spent])[0], "public", "spent")

    study = made(two, combine, told)
    assert "test = eq arm v0" in study.text and "total-spent = sum v2 u49" in study.text
    assert "[release.public]\nrho = 0.25\n" in study.toml()


def test_every_operation():
    def every(arm: ARM, spent: SPENT, cost: MONEY, dose: DOSE, seen: SEEN, age: tacit.u7["trial"].missing()):
        wide = spent.cast(tacit.u32)
        made = [
            (wide * 3 + 1 - 2) // 7 | 1 & (wide ^ 5),
            (7 - wide) << 2 >> 1,
            (5 // wide) & 255,
            wide.popcount(tacit.u6).cast(tacit.u32),
            wide.isqrt(),
            tacit.maximum(wide, 3),
            tacit.minimum(9, wide),
            tacit.lookup(wide, keys=[1, 10], values=[4, 5], type=tacit.u32),
            tacit.lookup(wide, until=wide, keys=[1, 10], values=[4, 5, 6], type=tacit.u32),
        ]
        bits = [
            abs(cost) >= 149.28,
            -cost < Decimal("0.5"),
            cost.clamp(-50, Fraction(901, 2)) == 0,
            (cost + 1) - cost != 1,
            cost.parts() * 2 <= 600,
            dose == "low",
            dose.isin(["none", "high"]),
            dose > "none",
            seen >= datetime.date(2026, 3, 1),
            seen + 30 < datetime.date(2026, 12, 1),
            seen.clamp(datetime.date(2026, 1, 1), datetime.date(2026, 12, 31)) == seen,
            age.known(),
            age.default(40) > 39,
            tacit.present("shop") & tacit.matched(),
            tacit.const(1, tacit.bit) ^ True,
            np.int64(3) == spent,
            ~(0 < spent) & (spent < 9),
        ]
        both = bits[0]
        for bit in bits[1:]:
            both = both & bit
        everything = made[0]
        for one in made[1:]:
            everything = everything + one
        return {"all": tacit.sum(tacit.select(both, everything.clamp(100), 0))}

    def told(t, all):
        t.reveal(t.gaussian("trial", rho="0.1", of=[all])[0], "trial", "all")

    text = made(every, told).text
    for line in (
        "const 14928 i20",
        "const 50 i20",
        "clamp cost -5000 45050",
        "shl cost 0",
        "const 600 i20",
        'const "low" dose',
        "const 2026-03-01 seen",
        "const 30 u15",
        "clamp seen 20454 20818",
        "known age",
        "default age",
        "present shop",
        "lookup after",
        "popcount",
        "isqrt",
    ):
        assert line in text, line
    made(every, told).check()


def test_exact_programs():
    def bids(bid: tacit.u12["shop"], asked: tacit.u12["trial"]):
        fits = asked <= bid
        return {"best": tacit.greatest(bid, where=fits), "fits": tacit.collect(fits), "rows": tacit.sum(fits)}

    def told(t, best, fits, rows):
        t.reveal(tacit.select(best.found, best, 0), "trial", "the highest bid")
        t.reveal(best.index, "trial", "its row")
        t.reveal(rows, "shop", "rows that fit")
        t.reveal_rows(fits, "shop", "which rows fit")

    study = made(bids, told, exact=True)
    assert "class exact" in study.text and "reveal-rows fits shop" in study.text
    assert "release" not in study.toml().partition("[program]")[0] and "[release" not in study.toml()


def test_mechanisms_of_n_s_and_q():
    def sums(arm: ARM, spent: SPENT):
        most = spent.clamp(100)
        square = most.cast(tacit.u14) * most.cast(tacit.u14)
        of = {"test": arm == 1, "control": arm == 2}
        return {
            f"{what}_{name}": tacit.sum(bit if value is None else tacit.select(bit, value, 0), bits=48)
            for name, bit in of.items()
            for what, value in (("n", None), ("s", most), ("q", square))
        }

    def told(t, n_test, s_test, q_test, n_control, s_control, q_control):
        test, control = [n_test, s_test, q_test], [n_control, s_control, q_control]
        for i, one in enumerate(t.joint("public", rho="1/4", clamp=100, cells=[test, control])):
            t.reveal(one, "public", f"hidden {i}")
        for i, one in enumerate(t.joint("trial", rho="1/4", clamp=100, cells=[test, control], known=True)):
            t.reveal(one, "trial", f"known {i}")

    study = made(sums, told, rows="any")
    assert [len(of) for of in study.check().revealed.values()] == [6, 0, 4]
    study.check()


def trace_mistake(row: Callable[..., Any], *steps: Any, **how: Any) -> str:
    """The message of a mistake; its place is the line that has the comment `here`."""
    with pytest.raises(tacit.TraceError) as caught:
        made(row, *(steps or (release,)), **how)
    error = caught.value
    text = Path(__file__).read_text().splitlines()
    place = error.places[0]
    assert place.file == __file__ and "# here" in text[place.line - 1], (place.line, str(error))
    assert f"{__file__}, line {place.line}" in str(error) and error.kind == "input" and error.code == 2
    assert pickle.loads(pickle.dumps(error)).places == error.places
    return str(error)


def test_what_python_asks_of_a_number_is_refused():
    asked: list[tuple[Callable[[Any, Any], Any], str]] = [
        (lambda a, b: 1 if a == 1 else 2, "tacit.select"),  # here
        (lambda a, b: a == 1 and b == 2, "& | ~ between bits"),  # here
        (lambda a, b: 0 < b < 9, "(0 < x) & (x < 9)"),  # here
        (lambda a, b: not a, "cannot look at it"),  # here
        (lambda a, b: b in [1, 2], "cannot look at it"),  # here
        (lambda a, b: 1 in b, "value.isin([1, 2])"),  # here
        (lambda a, b: int(b), "value.cast"),  # here
        (lambda a, b: float(b), ".scale(100)"),  # here
        (lambda a, b: math.sqrt(b), ".scale(100)"),  # here
        (lambda a, b: complex(b), "whole numbers"),  # here
        (lambda a, b: [1, 2][b], "tacit.lookup"),  # here
        (lambda a, b: range(b), "tacit.lookup"),  # here
        (lambda a, b: list(b), "tacit.sum(value)"),  # here
        (lambda a, b: len(b), "counts rows"),  # here
        (lambda a, b: b[0], "one of its bits"),  # here
        (lambda a, b: round(b), "value // 10"),  # here
        (lambda a, b: min(a, a), "& | ~"),  # here
        (lambda a, b: {b: 1}, "key of a dictionary"),  # here
        (lambda a, b: b / 2, "a // b"),  # here
        (lambda a, b: b % 2, "no remainder"),  # here
        (lambda a, b: b**2, "x * x"),  # here
    ]
    for ask, words in asked:
        message = trace_mistake(asking(ask))
        assert words in message, message


def asking(ask: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def row(arm: ARM, spent: SPENT):
        return ask(arm, spent)

    return row


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda a, b: a + b, "value.cast(tacit.u32)"),  # here
        (lambda a, b: a == b, "value.cast(tacit.u32)"),  # here
        (lambda a, b: a == 5, "does not fit u2"),  # here
        (lambda a, b: b == 0.5, "whole number"),  # here
        (lambda a, b: b == "low", ".labels(..)"),  # here
        (lambda a, b: b == datetime.date(2026, 1, 1), ".date()"),  # here
        (lambda a, b: b == None, "no constant"),  # noqa: E711  # here
        (lambda a, b: b == float("nan"), "no constant"),  # here
        (lambda a, b: (a == 1) + 1, "bit.cast(tacit.u8)"),  # here
        (lambda a, b: (a == 1) * b, "tacit.select(bit, value, 0)"),  # here
        (lambda a, b: -b, "below 0"),  # here
        (lambda a, b: b << b, "by a constant"),  # here
        (lambda a, b: tacit.select(b, b, 0), "not a bit"),  # here
        (lambda a, b: tacit.select(True, b, 0), "is a constant"),  # here
        (lambda a, b: tacit.select(a == 1, 1, 0), "tacit.const(1, tacit.u8)"),  # here
        (lambda a, b: b.cast(16), "no type"),  # here
        (lambda a, b: tacit.sum(b, bits=8), "at least as wide"),  # here
        (lambda a, b: tacit.present("bank"), "a party's name"),  # here
        (lambda a, b: tacit.sum(b) + 1, "before the release function"),  # here
    ],
)
def test_what_the_model_refuses_is_refused_at_its_line(ask, words):
    def row(arm: ARM, spent: SPENT):
        made = ask(arm, spent)
        return {"x": made if isinstance(made, tacit.Fold) else tacit.sum(made)}

    message = trace_mistake(row, noised)
    assert words in message, message


def test_cells_are_compared_with_what_they_may_be():
    for ask, words in (
        (lambda dose, cost, seen: dose == "Low", "none of the labels"),  # here
        (lambda dose, cost, seen: dose == 1, "holds labels"),  # here
        (lambda dose, cost, seen: cost * 2 == 1, "value.parts()"),  # here
        (lambda dose, cost, seen: cost < 0.001, "no whole number of 1/100"),  # here
        (lambda dose, cost, seen: cost == seen.cast(tacit.i20), "counted in 1/100"),  # here
        (lambda dose, cost, seen: cost < 6000, "does not fit i20"),  # here
        (lambda dose, cost, seen: seen < 20454, "holds days"),  # here
        (lambda dose, cost, seen: seen > 1 + seen.parts(), "is a day, the other one a number"),  # here
        (lambda dose, cost, seen: dose == dose.parts(), "one of these is a label"),  # here
        (lambda dose, cost, seen: dose + dose == dose, "labels are no numbers"),  # here
        (lambda dose, cost, seen: cost >> 1 > 0, "value.parts()"),  # here
        (lambda dose, cost, seen: cost << 1 > 0, "value.parts()"),  # here
    ):
        CELLS[:] = [ask]
        message = trace_mistake(cells)
        assert words in message, message

    def places(dose: DOSE):
        return {"x": tacit.sum(dose)}  # here

    assert "labels are no numbers: sum the bits" in trace_mistake(places)


CELLS: list[Callable[..., Any]] = []


def cells(dose: DOSE, cost: MONEY, seen: SEEN):
    return {"x": tacit.sum(CELLS[0](dose, cost, seen))}


def refused(value: Callable[[Any, Any], Any], told: Callable[..., Any], **how: Any) -> str:
    def row(arm: ARM, spent: SPENT):
        return {"x": value(arm, spent)}

    return trace_mistake(row, told, **how)


def noised(t: tacit.Release, x: tacit.Fold) -> None:
    t.reveal(t.gaussian("trial", rho="1/8", of=[x])[0], "trial", "x")


def test_the_verifier_names_the_callers_line():
    assert "rule R3" in refused(lambda arm, spent: tacit.sum(spent), noised)  # here
    assert "rule R7" in refused(lambda arm, spent: tacit.sum(spent.clamp(100), bits=20), noised)  # here
    words = refused(lambda arm, spent: tacit.sum(spent < 3), noised, rows="any")  # here
    assert "rule R9" in words and "tacit.present" in words

    def shown(t: tacit.Release, x: tacit.Fold) -> None:
        t.reveal(x, "trial", "x")  # here

    assert "rule R1" in refused(lambda arm, spent: tacit.sum(spent.clamp(100)), shown)

    def computed(t: tacit.Release, x: tacit.Fold) -> None:
        t.reveal(x + 1, "trial", "x")  # here

    assert "rule R2" in refused(lambda arm, spent: tacit.sum(spent.clamp(100)), computed)

    def twice(t: tacit.Release, x: tacit.Fold) -> None:
        t.gaussian("trial", rho="1/8", of=[x, x])  # here

    assert "rule R4" in refused(lambda arm, spent: tacit.sum(spent.clamp(100)), twice)  # here


def test_functions_are_traced_on_several_threads():
    started = threading.Barrier(4)

    def one(number: int) -> str:
        def row(spent: SPENT):
            started.wait()
            limit = tacit.const(number, tacit.u16)
            started.wait()
            return {"x": tacit.sum(spent.clamp(9) + limit)}

        return made(row, noised).text

    with ThreadPoolExecutor(4) as pool:
        for number, text in enumerate(pool.map(one, range(4))):
            assert f"const {number} u16" in text and text.count("const") == 1


def test_functions_are_refused_at_their_lines():
    def no_column(arm): ...  # here

    def local(arm: int): ...  # here

    def several(*arms: ARM): ...  # here

    def nothing(arm: ARM): ...  # here

    def value(arm: ARM):  # here
        return {"arm": arm}

    def unknown(t, nobody): ...  # here

    def fine(arm: ARM):
        return {"x": tacit.sum(arm.clamp(1))}

    def name(arm: ARM):  # here
        return {"a b": tacit.sum(arm)}

    assert 'tacit.u16["party"]' in trace_mistake(no_column)
    assert "says no column" in trace_mistake(local)
    assert "name each" in trace_mistake(several)
    assert "has to return a dictionary" in trace_mistake(nothing)
    assert "return tacit.sum(arm)" in trace_mistake(value)
    assert "nothing returned is called nobody" in trace_mistake(fine, unknown)
    assert "is no name" in trace_mistake(name)

    def raw(t, x):
        t.reveal(KEPT[0], "trial", "x")  # here

    def keeps(arm: ARM):
        KEPT[:] = [arm]
        return {"x": tacit.sum(arm.clamp(1))}

    assert "summed" in trace_mistake(keeps, raw)
    with pytest.raises(tacit.TraceError, match="made already"):
        KEPT[0] + 1
    with pytest.raises(tacit.TraceError, match="for functions that make a program"):
        tacit.present("shop")
    with pytest.raises(tacit.TraceError, match="behind the row comes"):
        made(keeps)
    with pytest.raises(tacit.TraceError, match="behind the row comes"):
        made(keeps, noised, tacit.Ask("trial", rho=1))


KEPT: list[Any] = []


def test_a_question_is_refused_at_its_line():
    columns = {"cost": MONEY, "dose": DOSE}
    first = tacit.Ask("trial", rho=1)
    for ask, words in (
        (first.mean("cost"), 'tacit.between("cost", 0, 100)'),  # here
        (first.mean("costs"), "there is no value 'costs': the row gives cost, dose"),  # here
        (first.mean(tacit.between("cost", 0, 6000)), "does not fit"),  # here
        (first.histogram("cost", [1]), "two numbers or more"),  # here
        (first.statistics(tacit.between("cost", 0, 9), "share"), "is said of a bit"),  # here
        (first.count(within=1).mean(tacit.between("cost", 0, 9)), "accuracies"),
    ):
        if words == "accuracies":
            with pytest.raises(tacit.TraceError, match="need a rho of"):
                made(columns, ask)
            continue
        message = trace_mistake(columns, ask)
        assert words in message, message
    with pytest.raises(tacit.TraceError, match="is no number"):
        tacit.between("cost", "0", 100)
    with pytest.raises(tacit.InputError, match="no program"):
        print(tacit.Study.load(EXAMPLES / "lift.toml").text)


def counted(
    cost: MONEY,
    fee: tacit.i20["shop"].scale(100),
    tax: tacit.i20["trial"].scale(100).unit("USD"),
    dose: DOSE,
    got: tacit.u2["shop"].labels("low", "none", "high"),
):
    return {"x": tacit.sum(CELLS[0](cost, fee, tax, dose, got))}


def test_what_is_counted_differently_is_refused_at_its_line():
    for ask, words in (
        (lambda cost, fee, tax, dose, got: (cost + fee) > 5, 'in "EUR", the other one in no unit'),  # here
        (lambda cost, fee, tax, dose, got: cost < tax, 'in "EUR", the other one in "USD"'),  # here
        (lambda cost, fee, tax, dose, got: tacit.maximum(cost, tax) > 1, "value.parts() of each"),  # here
        (lambda cost, fee, tax, dose, got: dose == got, "labels of dose and got are not one list"),  # here
        (lambda cost, fee, tax, dose, got: dose < got, "labels of dose and got"),  # here
    ):
        CELLS[:] = [ask]
        message = trace_mistake(counted)
        assert words in message, message


def test_a_column_keeps_its_name():
    """Also where no line reads it, and its name is one that values are given."""

    def least(v0: tacit.u8["shop"], v1: tacit.u8["trial"], q: tacit.u8["trial"]):
        return {"y": tacit.minimum(q, 2)}

    study = made(least, tacit.Ask("trial", rho=1).sum(tacit.between("v0", 0, 200)))
    assert "row\nq = column q\nv2 = const 2 u8\ny = min q v2\nask" in study.text


def test_names_that_are_one_for_python_are_refused():
    def two(arm: ARM, spent: SPENT):
        return {"a-b": arm == 1, "a_b": spent.clamp(5)}

    def combine(a_b):  # here
        return {"x": tacit.sum(a_b)}

    assert "a-b and a_b are both a_b here" in trace_mistake(two, combine, noised)
    made(two, tacit.Ask("trial", rho=1).by("a-b").sum("a_b"))


def test_keys_are_in_the_unit_of_what_is_looked_up():
    def tiers(cost: tacit.u20["shop"].scale(100), seen: SEEN):
        tier = tacit.lookup(cost, keys=[10, 50.5], values=[1, 2], type=tacit.u8)
        late = tacit.lookup(seen, keys=[datetime.date(2026, 3, 1)], values=[1], type=tacit.u8)
        return {"tier": tier, "late": late}

    text = made(tiers, tacit.Ask("trial", rho=1).sum(tacit.between("tier", 0, 2))).text
    assert "const 1000 u20" in text and "const 5050 u20" in text and "const 2026-03-01 seen" in text


@pytest.mark.parametrize("digits", [6, 28])
def test_constants_have_all_their_digits(digits):
    def wide(spent: tacit.u(100)["shop"], cost: tacit.i64["shop"].scale(10**9)):
        return {"x": (spent > Fraction(2**95 + 1)) & (cost > Fraction(-1234567890123456789, 10**9))}

    with decimal.localcontext() as context:
        context.prec = digits
        text = made(wide, tacit.Ask("trial", rho=Fraction(1, 8)).by("x").count()).text
    assert f"const {2**95 + 1} u100" in text and "const -1234567890123456789 i64" in text


def test_a_value_of_another_program_is_refused():
    def inner(spent: SPENT):
        return {"x": tacit.sum(tacit.minimum(spent, OUTER[0]))}  # here

    def outer(arm: ARM, spent: SPENT):
        OUTER[:] = [tacit.maximum(spent, 7)]
        made(inner, noised)
        return {"x": tacit.sum(spent.clamp(9))}

    assert "this value is of another program" in trace_mistake(outer)


OUTER: list[Any] = []


def test_what_numpy_asks_is_refused_in_tacits_words():
    asked: list[tuple[Callable[[Any, Any], Any], str]] = [
        (lambda a, b: np.minimum(b, 3), "write tacit.minimum"),  # here
        (lambda a, b: np.where(b > 3, b, 0), "tacit.select"),  # here
        (lambda a, b: b.mean(), "no .mean: it has cast"),  # here
        (lambda a, b: np.array([1, 2]) + b, "an array is no constant"),  # here
    ]
    for ask, words in asked:
        message = trace_mistake(asking(ask))
        assert words in message, message


def test_numbers_of_numpy_are_constants():
    def own(most: int) -> Callable[..., Any]:
        def row(arm: ARM, spent: SPENT):
            return {"sum": tacit.sum((most < spent) & (spent < most + 5))}

        return row

    assert made(own(np.int64(3)), one_sum).text == made(own(3), one_sum).text
    assert not hasattr(tacit.Value, "mean")


def one_sum(t: tacit.Release, **sums: tacit.Fold) -> None:
    for name, of in sums.items():
        t.reveal(t.gaussian("trial", rho="1/8", of=[of])[0], "trial", name)


def test_all_sums_are_given_by_two_stars():
    def many(arm: ARM, spent: SPENT):
        return {f"arm-{arm_is}": tacit.sum(arm == arm_is) for arm_is in (1, 2, 3)}

    def named(t: tacit.Release, arm_1: tacit.Fold, **others: tacit.Fold) -> None:
        assert list(others) == ["arm-2", "arm-3"]
        one_sum(t, arm_1=arm_1)

    text = made(many, one_sum).text
    assert [f'"arm-{number}"' in text for number in (1, 2, 3)] == [True] * 3
    assert "reveal" in made(many, named).text
