"""Studies: built, read, hashed as by the command."""

import datetime
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from conftest import TIMES, World

import tacit
from tacit._words import python_words

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["lift", "lift-several", "program", "match", "market-cloud", "questions"])
def test_the_hash_is_the_commands(name, command, tmp_path):
    path = EXAMPLES / f"{name}.toml"
    study = tacit.Study.load(path)
    assert study.hash == command("check", path)["study"]["hash"]
    saved = study.save(tmp_path / "canonical.toml")
    assert command("check", saved)["study"]["hash"] == study.hash
    assert tacit.Study.load(saved).toml() == saved.read_text() == study.toml()


def test_a_built_study_is_that_of_a_file(world: World, command, tmp_path):
    text = (EXAMPLES / "generated.toml").read_text()
    for example, own in (
        ("tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11", world.keys["media"]),
        ("tacit1:b07e66d2915c4fa3a2d8017b34ce9f50", world.keys["shop"]),
    ):
        text = text.replace(example, own.fingerprint)
    text = text.replace("party.publisher", "party.media").replace("party.advertiser", "party.shop")
    text = text.replace('"generated"', '"spring"').replace("Generated lift study, K = 4", "Spring campaign")
    written = tmp_path / "written.toml"
    written.write_text(text)
    built = world.study().impressions("impressions")
    assert built.hash == tacit.Study.load(written).hash == command("check", written)["study"]["hash"]
    assert built == tacit.Study(text)
    saved = built.save(tmp_path / "built.toml")
    assert command("check", saved)["study"]["hash"] == built.hash
    assert built.parties == {"media": str(world.keys["media"]), "shop": str(world.keys["shop"])}


def test_a_builder_stays_as_it_is(world: World):
    first = world.study()
    before = first.hash
    second = first.release(rho={"media": "0.1", "shop": "0.2"}).time(**TIMES | {"span": 10**9})
    assert first.hash == before != second.hash
    assert "rho = 0.2" in second.toml() and "rho = 0.2" not in first.toml()
    assert first.time(**TIMES) == first


@pytest.mark.parametrize("rho", ["0.1", "1/10", 0.1, Decimal("0.1"), Fraction(1, 10)])
def test_a_rho_is_said_in_any_form(world: World, rho):
    assert world.study(rho=rho).hash == world.study().hash


def test_settings_of_a_lift_study(world: World):
    study = (
        world.study()
        .time(origin=datetime.date(2026, 1, 1), unit="hour", span=8760)
        .breakdown("region", values=["north", "south"])
        .cohort("age", values=["young", "old"])
        .where("channel", equals=["web"])
        .counting(within=100, lower_is_better=True)
        .compute(engine="gmw", shards=2)
    )
    again = tacit.Study(study.toml())
    assert again == study and again.toml() == study.toml()
    for said in ("origin = 2026-01-01", "within = 100", 'engine = "gmw"', 'equals = ["web"]', "clamp = 100"):
        assert said in study.toml()


def test_a_mistake_has_its_place(world: World, tmp_path):
    with pytest.raises(tacit.InputError) as caught:
        tacit.Study('format = "tacit-study/1"\nname = 7\n', name="mine.toml")
    assert caught.value.kind == "input" and caught.value.code == 2
    assert "mine.toml, line" in str(caught.value)
    path = tmp_path / "study.toml"
    path.write_text(world.study().toml() + "\n[lft]\n")
    with pytest.raises(tacit.InputError) as caught:
        tacit.Study.load(path)
    (place,) = caught.value.places
    assert place.file == str(path) and place.line > 20 and place.column == "2"


def test_a_study_that_says_something_else_is_not_replaced(world: World, tmp_path):
    path = world.study().save(tmp_path / "study.toml")
    assert world.study().save(path) == path
    with pytest.raises(tacit.InputError, match="says something else"):
        world.study(rho="0.2").save(path)


def test_check_and_plan_are_the_commands(world: World, command, tmp_path):
    study = world.study()
    path = study.save(tmp_path / "study.toml")
    assert study.check(rows=(5000, 4000)).to_dict() == command("check", path, "--rows", "5000,4000")
    prices = EXAMPLES.parent / "docs/prices-2026.toml"
    words = ("plan", path, "--rows", "2M", "--cores", 8, "--link", "1gbps,20ms", "--prices", prices)
    plan = study.plan(rows=2_000_000, cores=8, link="1gbps,20ms", price=tacit.Prices.load(prices))
    assert plan.to_dict() == command(*words)
    assert tacit.Prices.aws_2026().text == prices.read_text()
    frame = plan.to_pandas()
    assert list(frame["name"]) == [stage["name"] for stage in plan.stages.to_dicts()]
    assert (frame["bytes"] > 0).any() and len(plan.to_polars()) == len(frame)
    with pytest.raises(tacit.InputError, match="bandwidth and round-trip"):
        study.plan(rows=1000, link="fast")
    with pytest.raises(tacit.InputError, match=r"rows=-1: numbers of rows are from 0"):
        study.plan(rows=-1)

def test_a_peers_study_is_held_against_this_one(world: World, command, tmp_path):
    study = world.study()
    assert study.check(peer=world.study()).peer_agrees is True
    other = study.clamp(90)
    assert other.hash != study.hash
    differs = r"differ first in line \d+, lift.clamp: here .*in the peer's"
    with pytest.raises(tacit.InputError, match=differs) as told:
        study.check(peer=other)
    path = other.save(tmp_path / "theirs.toml")
    with pytest.raises(tacit.InputError, match="theirs.toml"):
        study.check(peer=path)
    mine = study.save(tmp_path / "mine.toml")
    said = command("check", mine, "--peer-study", path, code=2)["error"]["message"]
    assert said == str(told.value).replace("the peer's", str(path))


def test_a_second_release_or_match_replaces_the_first(world: World):
    """Or who varies a study would release to both."""
    first = world.study(rho={"media": "0.1"}, also=["reach"])
    second = first.release(rho="0.1")
    assert second == world.study() and "reach" not in second.toml()
    two = world.study().match("ecdh-psi", identifiers=["email"], duplicates="first")
    again = two.match("pid", identifiers=[tacit.Identifier("id", normalise=["trim", "lowercase"])])
    assert again == world.study()


@pytest.mark.parametrize("rho", ["x", "1/0", "1/x", float("nan"), "inf"])
def test_what_is_no_rho_is_told(world: World, rho):
    with pytest.raises(tacit.InputError, match="is no number: write one such as 0.125 or 1/8"):
        world.study(rho=rho)


def test_a_builder_says_what_errors_propose(world: World):
    study = (
        world.study()
        .arm("arm", test="test", control="control", leave_out=["second"])
        .events("bought", value="amount", unit="cent", negative="net")
        .privacy(unit="child")
    )
    for said in ('leave_out = ["second"]', 'negative = "net"', '[privacy]\nunit = "child"'):
        assert said in study.toml()
    wide = study.events(["first", "second"], value=["paid", "more"], max_events=2)
    assert 'columns = ["first", "second"]' in wide.toml() and 'layout = "wide"' in wide.toml()
    assert wide.check().to_dict()["study"]["hash"] == tacit.Study(wide.toml()).hash


def test_studies_and_parties_pickle(world: World, tmp_path):
    built = world.study()
    for study in (built, tacit.Study(built.toml()), tacit.Study.load(built.save(tmp_path / "study.toml"))):
        assert pickle.loads(pickle.dumps(study)) == study
    assert pickle.loads(pickle.dumps(built)).clamp(90) == built.clamp(90)
    party = world.parties(built, "pickled")["media"]
    again = pickle.loads(pickle.dumps(party))
    assert (again.name, again.study) == ("media", built)
    assert again.check(world.files["media"]) == party.check(world.files["media"])
    file = tmp_path / "media.toml"
    file.write_text(f'study = "study.toml"\nas = "media"\nidentity = "{world.keys["media"].path}"\n')
    assert pickle.loads(pickle.dumps(tacit.Party.load(file))).study == built


def test_errors_have_the_packages_words(world: World, tmp_path):
    study, key = world.study(), world.keys["media"].path
    data = world.files["media"]

    def told(call) -> str:
        with pytest.raises(tacit.TacitError) as caught:
            call()
        return f"{caught.value} {caught.value.hint}"

    def party(**how):
        said = {"as_": "media", "identity": key, "listen": "127.0.0.1:7000", "lineage": "m", **how}
        return tacit.Party(study, ledger=tmp_path / "l.ledger", **said)

    assert "hand rows or a path to the call" in told(lambda: party().check())
    assert 'add lineage="' in told(lambda: party(lineage=None).check(data))
    assert "for `deadline`" in told(lambda: party(deadline="3"))
    assert "check as_ of the Party" in told(lambda: party(as_="medium").check(data))
    assert "add it to allow_kinds" in told(lambda: party(allow_kinds=["program"]).check(data))
    assert '{"shop": data}' in told(lambda: tacit.simulate(study, {"media": data}))
    assert 'tacit.keygen("' in told(lambda: party(identity=tmp_path / "none.key").check(data))
    assert "Key.load(path)" in told(lambda: tacit.keygen(key))
    said = python_words("Agree on fewer cells, or say --spend-anyway; a stored answer")
    assert said == "Agree on fewer cells, or say spend_anyway=True; a stored answer"
    for command, package in {
        "add its hash \"ab12\" to policy.studies": "add its hash \"ab12\" to allow_studies of the Party",
        "this party's policy.max_rho is 0.01 (--max-rho)": "this party's max_rho is 0.01",
        "or raise policy.budget, which": "or raise budget of the Party, which",
        "or raise policy.period_budget": 'or raise "period-budget" of settings={...} of the Party',
        "and say it with --mean (--mean 0.5 is": "and say it with mean=X (mean=0.5 is",
        "and put the line `key` that it prints into the study": "and put its fingerprint into the study",
        "and as many of the peer's; else say\n  --rows": "and as many of the peer's; else say rows=(N, M)",
    }.items():
        assert python_words(command) == package
    form = python_words('add zone = "+02:00", under [format] of the party file (or --zone)')
    assert form == 'add zone = "+02:00", as settings={"zone": ...} of the Party'


def test_one_text_is_no_list(world: World):
    match = r'^identifiers=.email. is one text: hand over a list, identifiers=\[.email.\]$'
    with pytest.raises(tacit.InputError, match=match):
        tacit.Match("pid", identifiers="email")
    with pytest.raises(tacit.InputError, match=r'normalise=\[.trim.\]'):
        tacit.Match("pid", identifiers=[tacit.Identifier("email", "trim")])
    study = world.study()
    for said in (
        lambda: study.where("kind", equals="sale"),
        lambda: study.cohort("kind", values="sale"),
        lambda: study.breakdown("kind", values="sale"),
        lambda: study.arm("arm", test="a", control="b", leave_out="sale"),
        lambda: study.release(rho="0.1", also="sale"),
    ):
        with pytest.raises(tacit.InputError, match=r"=\[.sale.\]$"):
            said()
    with pytest.raises(tacit.InputError, match=r"^match=.pid.: hand over tacit\.Match"):
        tacit.Study.program("p", {}, parties={}, match="pid")
    with pytest.raises(tacit.InputError, match="^draws=-1"):
        tacit.simulate(study, {}, draws=-1)


def test_a_mistake_of_a_builder_names_no_line_of_a_text_that_nobody_wrote(world: World):
    with pytest.raises(tacit.InputError, match="^spring: .*rho") as caught:
        world.study().release(rho="-1").check()
    assert not caught.value.places and "line" not in str(caught.value)


def test_a_file_that_does_not_go_says_so(world: World, tmp_path):
    with pytest.raises(tacit.FileError, match="cannot be written"):
        world.study().save(tmp_path / "nowhere/study.toml")
    with pytest.raises(tacit.InputError, match="cannot be read"):
        tacit.Prices.load(tmp_path / "prices.toml")


def test_a_day_that_is_none_is_an_input_error():
    lift = tacit.Study.lift("spring", title="Spring")
    with pytest.raises(tacit.InputError, match="origin='soon' is no day"):
        lift.time(origin="soon", unit="second", span=10)
