"""Two services as daemons, each asked by programs alone: the life of a study, and what is refused."""

from __future__ import annotations

import hashlib
import json
import pickle
import subprocess
import threading
import time
import traceback
from pathlib import Path

import pytest
from built import command_path
from conftest import free_address

import tacit
from tacit._service import _wait

COLUMNS = {
    "media": '["id", "arm", "seen", "impressions"]',
    "shop": '["id", "bought", "amount"]',
}
RULES = """
format = "tacit-service/1"
name = "{name}"
identity = "own.key"
store = "service.db"
ledger = "own.ledger"
data_root = "data"
[web]
listen = "{web}"
[link]
listen = "{link}"
run_ports = "{run}-{run}"
[peers.{peer}]
key = "{key}"
{address}
run_ports = "{there}-{there}"
kinds = ["lift"]
[data.rows]
path = "rows.csv"
lineage = "{name}"
columns = {columns}
peers = ["{peer}"]
stewards = ["stella"]
least_rows = 2
budget = 10
delta = "1e-3"
[policy]
kinds = ["lift"]
max_rho = 1
max_delta = "1e-3"
consent_by_token = true
"""


class Side:
    """A service, its people's tokens and its address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = free_address()
        self.process: subprocess.Popen[bytes] | None = None
        self.certificate = ""

    def begin(self, command) -> None:
        program = command_path()
        file = self.folder / "service.toml"
        command("service", "accept", file)
        words = [program, "service", "run", str(file), "--json"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE)
        told = tacit.Fields(json.loads(self.process.stdout.readline()))
        self.certificate = told.certificate
        for name, role in (("ann", "analyst"), ("stella", "steward")):
            command("service", "account", "add", file, name, "--role", role)

    def service(self, command, account: str, scopes: str, **how: object) -> tacit.Service:
        words = [word for scope in scopes.split() for word in ("--scope", scope)]
        name = f"{account}-{len(words)}"
        made = command("service", "token", "add", self.folder / "service.toml", account, name, *words)
        url = f"https://{self.address}"
        return tacit.Service(url, made["token"], **{"certificate": self.certificate, **how})


@pytest.fixture(scope="module")
def sides(tmp_path_factory, command):
    home = tmp_path_factory.mktemp("services")
    tacit.generate.lift(home / "lift", rows=4000)
    files = {"media": "publisher.csv", "shop": "advertiser.csv"}
    all = {name: Side(home / name) for name in files}
    links = {name: free_address() for name in files}
    runs = {name: free_address().rpartition(":")[2] for name in files}
    for name, side in all.items():
        (side.folder / "data").mkdir(parents=True)
        (home / "lift" / files[name]).rename(side.folder / "data/rows.csv")
    keys = {name: tacit.keygen(side.folder / "own.key") for name, side in all.items()}
    for name, side in all.items():
        peer = next(other for other in files if other != name)
        address = f'address = "{links[peer]}"' if name == "shop" else ""
        text = RULES.format(
            name=name,
            web=side.address,
            link=links[name],
            run=runs[name],
            there=runs[peer],
            peer=peer,
            key=keys[peer].fingerprint,
            address=address,
            columns=COLUMNS[name],
        )
        (side.folder / "service.toml").write_text(text)
    study = (
        tacit.Study.lift("spring", title="Spring campaign")
        .publisher("media", key=keys["media"])
        .advertiser("shop", key=keys["shop"])
        .match("pid", identifiers=[tacit.Identifier("id", normalise=["trim", "lowercase"])])
        .opportunity("seen")
        .arm("arm", test="test", control="control")
        .events("bought", value="amount", unit="cent", max_events=4)
        .clamp(100)
        .release(rho="0.1")
    )
    try:
        for side in all.values():
            side.begin(command)
        yield all, study
    finally:
        for side in all.values():
            if side.process is not None:
                side.process.kill()
                side.process.wait()


def test_a_study_by_programs_on_both_sides(sides, command):
    all, study = sides
    scopes = "studies consent run reports data budget audit"
    ann = all["media"].service(command, "ann", "studies propose run reports")
    stewards = {name: side.service(command, "stella", scopes) for name, side in all.items()}
    assert ann.me().account == "ann" and ann.me().roles == ["analyst"]
    seen: list[tacit.ServiceEvent] = []
    heard = threading.Event()

    def listen() -> None:
        for event in ann.events():
            seen.append(event)
            if event.kind == "study" and event.data.state == "answered":
                heard.set()
                return

    threading.Thread(target=listen, daemon=True).start()
    assert ann.preview(study).study == study.hash
    assert ann.propose(study, note="For the spring.") == study.hash
    with pytest.raises(tacit.RefusedError, match="proposed already"):
        ann.propose(study)
    for name, steward in stewards.items():
        while all_of(steward, study.hash) is None:
            time.sleep(0.2)
        words = steward.summary(study.hash).words
        done = steward.consent(study.hash, words=words, data="rows")
        assert done.done == "weighing", name
    for name, steward in stewards.items():
        found = steward.wait(study.hash, timeout=240)
        assert found.state == "answered", (name, found, steward.statements(study.hash))
        report = steward.report(study.hash)
        assert report.study.full_hash == study.hash
        assert report.interval is not None
        assert steward.file(study.hash, "numbers.csv").count(b"\n") > 1
        assert steward.run(study.hash).runs[-1].outcome in ("answered", "stored")
        assert any(viewer.debits for one in steward.budget() for viewer in one.viewers)
        assert steward.verify().fits
        assert any(entry.subject == study.hash for entry in steward.audit(actor="stella"))
    assert ann.report(study.hash).study.full_hash == study.hash
    assert heard.wait(60), seen
    assert any(event.kind == "line" and event.data.study == study.hash for event in seen)
    assert next(ann.events(after=seen[0].id)).data.study == study.hash
    with pytest.raises(tacit.RefusedError):
        ann.withdraw(study.hash, "Too late.")


def all_of(service: tacit.Service, study: str) -> tacit.Fields | None:
    return next((one for one in service.studies() if one.study == study), None)


def test_what_is_refused_says_why(sides, command, tmp_path):
    all, _ = sides
    narrow = all["media"].service(command, "ann", "studies")
    with pytest.raises(tacit.RefusedError, match="the scope data") as refused:
        narrow.data()
    assert (refused.value.kind, refused.value.code) == ("refused", 5)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    with pytest.raises(tacit.InputError, match="nothing of this name"):
        narrow.study("0" * 64)
    with pytest.raises(tacit.InputError, match="no state"):
        list(narrow.studies(state="nothing"))
    wrong = tacit.Service(f"https://{all['media'].address}", "tacit_x", certificate=all["media"].certificate)
    with pytest.raises(tacit.RefusedError, match="a token that holds"):
        wrong.me()
    with pytest.raises(tacit.RefusedError, match="a token that holds"):
        next(wrong.events())
    with pytest.raises(tacit.InputError, match="write https"):
        tacit.Service("http://127.0.0.1:1", "t")


def test_another_certificate_is_not_believed(sides, command):
    all, _ = sides
    with pytest.raises(tacit.PeerError, match="another certificate"):
        all["media"].service(command, "ann", "studies run", certificate=hashlib.sha256(b"").hexdigest()).me()
    with pytest.raises(tacit.PeerError, match="not reached"):
        all["media"].service(command, "ann", "studies run data", certificate=None).me()
    nobody = tacit.Service(f"https://{free_address()}", "t", certificate="00" * 32)
    with pytest.raises(tacit.PeerError, match="not reached"):
        nobody.me()


def test_what_is_said_of_addresses_certificates_and_tokens():
    with pytest.raises(tacit.InputError, match="names a user") as caught:
        tacit.Service("https://stella:secret@house.example:8443", "token")
    assert "secret" not in str(caught.value)
    with pytest.raises(tacit.InputError, match="neither a SHA-256 .* nor a file in PEM"):
        tacit.Service("https://house.example:8443", "token", certificate="3f:9a")
    service = tacit.Service("https://house.example:8443", "hidden")
    assert "hidden" not in repr(vars(service))
    with pytest.raises(tacit.InputError, match="a number up to 65535"):
        tacit.Service("https://house.example:84430", "token")
    # Of a file, with its line's end; and one that no header can have is not said again, by nothing.
    of_file = tacit.Service("https://house.example:8443", "hidden\n")
    assert of_file._headers()["Authorization"] == "Bearer hidden"
    for token in ("hid\nden", "hid den", "", "hidé"):
        with pytest.raises(tacit.InputError, match="the token is none") as caught:
            tacit.Service("https://house.example:8443", token)
        assert "hid" not in "".join(traceback.format_exception(caught.value))
    dates = (None, "0", "3", "3600", "Fri, 31 Dec 2027 23:59:59 GMT", "-1")
    assert [_wait(said) for said in dates] == [1.0, 0.0, 3.0, 60.0, 1.0, 1.0]


def test_why_it_was_not_proposed_is_what_is_told(monkeypatch):
    service = tacit.Service("https://house.example:8443", "token")
    answers = {"POST /drafts": (200, b'{"id": 1}'), "GET /drafts/1/preview": (200, b'{"study": "ab"}')}
    told = b'{"error": {"kind": "refused", "code": 5, "message": "no right", "places": []}}'
    lost = b'{"error": {"kind": "input", "code": 2, "message": "no draft", "places": []}}'
    answers |= {"POST /drafts/1/propose": (403, told), "DELETE /drafts/1": (404, lost)}
    monkeypatch.setattr(service, "_ask", lambda method, path, body=None: answers[f"{method} {path}"])
    monkeypatch.setattr(service, "_draft", lambda study, note, days: 1)
    with pytest.raises(tacit.RefusedError, match="no right"):
        service.propose("study.toml")
    answers["GET /drafts/1/preview"] = (403, told)
    with pytest.raises(tacit.RefusedError, match="no right"):
        service.preview("study.toml")
