"""Real runs of two parties: results are those of the command on files that say the same."""

import pickle
import subprocess
import sys
import textwrap
from fractions import Fraction
from pathlib import Path

import pytest
from conftest import World, both, free_address, runs

import tacit

PARTY = """
study = "{study}"
as = "{name}"
identity = "{folder}/{name}.key"
data = "{data}"
{meet}
ledger = "{folder}/{ledger}.ledger"
report = "{folder}/{ledger}-out"
lineage = "{name}-people"
deadline = "60s"
"""


def test_both_see_one_public_result(world: World, reports):
    media, shop = reports["media"], reports["shop"]
    assert media.public.to_dict() == shop.public.to_dict() == media.view.to_dict()
    low, high = media.interval
    assert low <= media.estimate.lift <= high
    # Noise of rho 0.1 lies far within this.
    assert abs(media.estimate.lift - world.made.truth.lift) < 4 * media.estimate.standard_error + 1
    assert media.study.full_hash == world.study().hash and not media.stored
    assert media.inputs.rows_read == tacit.generate.Fields(world.made.publisher).rows


def test_the_command_and_the_package_meet(world: World, command, tmp_path):
    """One side by the command from files, the other one here from the same files: one study, one answer."""
    study = world.study().save(world.folder / "met.toml")
    address = free_address()
    mine, theirs = tmp_path / "media.toml", tmp_path / "shop.toml"
    for path, name, meet in (
        (mine, "media", f'listen = "{address}"'),
        (theirs, "shop", f'peer = "{address}"'),
    ):
        fields = {"study": study, "name": name, "folder": world.folder, "data": world.files[name]}
        path.write_text(PARTY.format(meet=meet, ledger=f"met-{name}", **fields))
    party = tacit.Party.load(mine)
    assert party.name == "media" and party.study.hash == world.study().hash
    done = both({"media": lambda: party.run(progress=False), "shop": lambda: command("run", theirs)})
    assert done["media"].public.to_dict() == done["shop"]["public"]
    assert done["media"].study.to_dict() == done["shop"]["study"]
    # The party file names a folder for reports.
    written = tacit.Report.load(world.folder / "met-media-out/report.json")
    assert written.to_dict() == done["media"].to_dict()
    assert (world.folder / "met-media-out/report.html").read_text() == written.html
    # Both by the command: the ledgers answer what they answered here, at no further charge.
    again = both({path.stem: lambda path=path: command("run", path) for path in (mine, theirs)})
    assert again["media"]["stored"] and again["media"]["view"] == done["media"].view.to_dict()
    # And here again, by settings in the place of the file.
    loaded = {
        name: tacit.Party.load(path, memory="512M") for name, path in (("media", mine), ("shop", theirs))
    }
    again = runs(loaded, {"media": None, "shop": None})
    assert again["shop"].stored and again["shop"].public == done["media"].public


def test_the_ledger_says_what_was_spent(world: World, reports, command):
    path = world.folder / "files-media.ledger"
    ledger = tacit.Ledger(path)
    shown = command("ledger", "show", path)
    assert ledger.spent("media-people") == sum(Fraction(row["rho"]) for row in shown["lineages"])
    (spending,) = {(of.viewer, of.rho) for of in ledger.totals() if of.viewer == "shop"}
    assert spending[1] > 0 and ledger.spent("others") == 0
    assert ledger.entries().to_dicts() == shown["entries"]
    with pytest.raises(tacit.InputError, match="no ledger"):
        tacit.Ledger(world.folder / "none.ledger").totals()


def test_a_policy_refuses(world: World):
    parties = world.parties(world.study(), "refused", max_rho="0.01")
    with pytest.raises(tacit.RefusedError) as caught:
        parties["media"].check(world.files["media"])
    assert caught.value.code == 5 and caught.value.answer.revealed.to_dict()
    with pytest.raises(tacit.InputError, match="`max_rho`"):
        world.parties(world.study(), "refused", max_rho="much")
    with pytest.raises(tacit.InputError, match='no setting "colour"; there are: study, as'):
        tacit.Party(world.study(), as_="media", identity="x", settings={"colour": "red"})


def test_a_refused_budget_has_its_numbers(world: World):
    with pytest.raises(tacit.RefusedError) as caught:
        world.parties(world.study(), "poor", budget="0.05")["media"].check(world.files["media"])
    error = caught.value
    assert (error.bound, error.spent, error.budget) == ("policy.budget", 0, Fraction(1, 20))
    assert error.asked is not None and error.asked >= Fraction(1, 10), "and what a match takes"
    again = pickle.loads(pickle.dumps(error))
    assert (again.bound, again.spent, again.budget, again.asked) == (
        error.bound,
        error.spent,
        error.budget,
        error.asked,
    )
    with pytest.raises(tacit.RefusedError) as caught:
        world.parties(world.study(), "poor", max_rho="0.01")["media"].check(world.files["media"])
    assert caught.value.bound is None and caught.value.spent is None, "no ledger says so"


def test_errors_pickle_with_their_fields(world: World):
    error = tacit.PeerError("gone", kind="peer", code=3, party="a", peer="b", step="match", hint="again")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is tacit.PeerError and again.__dict__ == error.__dict__ and str(again) == "gone"


def test_an_error_pickles_with_what_was_added():
    error = tacit.RefusedError("no", kind="refused", code=5, bound="policy.total")
    error.add_note("of today")
    error.attempt = 3
    again = pickle.loads(pickle.dumps(error))
    assert vars(again) == vars(error) and str(again) == "no"
    assert (again.__notes__, again.attempt, again.bound) == (["of today"], 3, "policy.total")


def test_several_advertisers_apart_are_refused_before_a_run(world: World, tmp_path):
    """A run that is over has been charged, and nobody would have its reports."""
    text = (Path(__file__).parents[2] / "examples/lift-several.toml").read_text()
    text = text.replace("1" * 32, world.keys["media"].fingerprint.removeprefix("tacit1:"))
    study = tacit.Study(text.replace('advertisers  = "together"\n', ""))
    party = tacit.Party(study, as_="paper", identity=world.keys["media"].path, ledger=tmp_path / "ledger")
    with pytest.raises(tacit.InputError, match="use run_all"):
        party.run(world.files["media"], progress=False)
    assert not (tmp_path / "ledger").exists()


def test_another_study_is_the_peers_error(world: World):
    mine = world.parties(world.study(), "differ")
    address = free_address()
    meet = {"ledger": world.folder / "differ.ledger", "deadline": "60s", "lineage": "x"}
    media = tacit.Party(world.study(), as_="media", identity=world.keys["media"].path, listen=address, **meet)
    shop = tacit.Party(
        world.study(rho="0.2"),
        as_="shop",
        identity=world.keys["shop"].path,
        peer=address,
        **meet | {"ledger": world.folder / "differ-2.ledger"},
    )
    done = runs({"media": media, "shop": shop}, world.files)
    for error in done.values():
        assert isinstance(error, tacit.PeerError) and error.code == 3 and error.peer, done
    assert done["media"].party == "media" and done["media"].step == "meet"
    assert mine.keys() == done.keys()


STRUCK = """
import os, signal, sys, threading, time
import pyarrow, tacit

sent = [0.0]

def strike(after):
    def one():
        time.sleep(after)
        sent[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=one).start()

def struck(call):
    try:
        call()
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - sent[0], flush=True)

def endless(path):
    # Rows of a file again and again: nobody ever has all of them.
    import pyarrow.csv
    table = pyarrow.csv.read_csv(path)
    def batches():
        while True:
            time.sleep(0.01)
            yield from table.slice(0, 100).to_batches()
    return pyarrow.RecordBatchReader.from_batches(table.schema, batches())

"""
"""What a child has that is struck by Ctrl-C: it takes the time itself, from the signal to the exception."""


def struck(program: Path, text: str) -> "subprocess.Popen[str]":
    program.write_text(STRUCK + textwrap.dedent(text))
    return subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("call", ["run", "match", "check", "simulate"])
def test_ctrl_c_ends_a_call_within_a_tenth_of_a_second(world: World, tmp_path, call):
    calls = {
        "run": "party.run(media, progress=False)",
        "match": "party.match(media, progress=False)",
        "check": "party.check(endless(media))",
        "simulate": "tacit.simulate(study, {'media': endless(media), 'shop': shop})",
    }
    made = world.study().toml()
    if call == "match":
        parts = [f'[party.{name}]\nkey = "{key.fingerprint}"\n' for name, key in world.keys.items()]
        made = 'format = "tacit-study/1"\nname = "pair"\nkind = "match"\ntitle = "Pair"\n' + "".join(parts)
        made += '[match]\nprotocol = "pid"\nidentifiers = [{ name = "id" }]\nduplicates = "error"\n'
    child = struck(
        tmp_path / "child.py",
        f"""
        media, shop = {str(world.files["media"])!r}, {str(world.files["shop"])!r}
        study = tacit.Study({made!r})
        for at in range(5):
            party = tacit.Party(study, as_="media", identity={str(world.keys["media"].path)!r},
                listen="127.0.0.1:0", ledger={str(tmp_path)!r} + f"/{{at}}.ledger", lineage="x", deadline="60s",
                allow_kinds=["match", "lift"])
            # At another time of the round in which signals are looked at.
            strike(0.4 + at * 0.017)
            struck(lambda: {calls[call]})
        """,
    )
    said = [line.split() for line in child.communicate(timeout=120)[0].splitlines()]
    assert [word for word, *_ in said] == ["interrupted"] * 5 and child.returncode == 0, said
    # Half of them: what else the machine does may hold up any.
    assert sorted(float(seconds) for _, seconds in said)[2] < 0.1, said


def test_ctrl_c_ends_a_run_and_the_peer_hears_of_it(world: World, tmp_path):
    study = world.study().save(world.folder / "interrupted.toml")
    address = free_address()
    child = struck(
        tmp_path / "media.py",
        f"""
        party = tacit.Party({str(study)!r}, as_="media", identity={str(world.keys["media"].path)!r},
            listen={address!r}, ledger={str(tmp_path / "media.ledger")!r}, lineage="x", deadline="60s")
        def heard(event):
            if (event.kind, event.stage) == ("stage", "match"):
                strike(0)
        struck(lambda: party.run({str(world.files["media"])!r}, progress=heard))
        """,
    )
    shop = tacit.Party(
        study,
        as_="shop",
        identity=world.keys["shop"].path,
        peer=address,
        lineage="y",
        ledger=tmp_path / "shop.ledger",
        deadline="60s",
    )
    done = both({"shop": lambda: shop.run(world.files["shop"], progress=False)})
    word, seconds = child.communicate(timeout=60)[0].split()
    # Both parties have all of the machine's cores to compute on, and the peer's deadline is a minute.
    assert word == "interrupted" and float(seconds) < 0.5 and child.returncode == 0
    assert isinstance(done["shop"], tacit.PeerError), done


def test_a_forked_process_is_refused(world: World):
    program = f"""
import os, tacit
study = tacit.Study({world.study().toml()!r})
study.check()
child = os.fork()
if child == 0:
    try:
        study.check()
    except tacit.InputError as error:
        os._exit(7 if "forked" in str(error) else 8)
    os._exit(9)
_, status = os.waitpid(child, 0)
raise SystemExit(os.waitstatus_to_exitcode(status))
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", program]).returncode == 7


def test_nothing_secret_is_shown(world: World):
    key = world.keys["media"]
    secret = key.path.read_text()
    party = world.parties(world.study(), "shown")["media"]
    shown = " ".join(map(repr, (key, party, party._native, world.study(), tacit.Key.load(key.path))))
    assert key.fingerprint in shown
    assert not any(line in shown for line in secret.splitlines() if len(line) > 20)
    with pytest.raises(tacit.InputError):
        tacit.keygen(key.path)
    assert key.path.read_text() == secret and key.path.stat().st_mode & 0o777 == 0o600


def test_a_report_folder_that_takes_no_report_is_found_before_a_run(world: World, tmp_path):
    (tmp_path / "file").touch()
    folder = {"media": tmp_path / "file" / "reports", "shop": None}
    party = world.parties(world.study(), "no-folder", report=folder)["media"]
    told = "reports cannot be written to .*; change `report`"
    for call in (party.check, party.run):
        with pytest.raises(tacit.FileError, match=told) as caught:
            call(world.files["media"])
        assert caught.value.party == "media"
    assert not (world.folder / "no-folder-media.ledger").exists()


def test_a_report_that_cannot_be_written_is_in_the_error(world: World, tmp_path):
    taken = tmp_path / "taken"
    parties = world.parties(world.study(), "taken", report={"media": taken, "shop": None})
    done = both(
        {
            # A file stands where the folder goes, since the run began.
            "media": lambda: parties["media"].run(world.files["media"], progress=lambda _: taken.touch()),
            "shop": lambda: parties["shop"].run(world.files["shop"], progress=False),
        }
    )
    error = done["media"]
    assert isinstance(error, tacit.FileError) and "no further charge" in (error.hint or ""), error
    assert error.answer.public == done["shop"].public


def test_an_unknown_setting_has_those_that_there_are(world: World):
    for name, meant in [("perod", "period"), ("maxrho", "max-rho")]:
        with pytest.raises(tacit.InputError, match=f'no setting "{name}"; there are: .*"{meant}"'):
            world.parties(world.study(), "settings", settings={"media": {name: "1"}, "shop": {}})
    # By the names of party files, too.
    said = {"media": {"period": "90d", "period_budget": "0.5"}, "shop": {}}
    assert world.parties(world.study(), "settings", settings=said)["media"].name == "media"
