"""The service of an organisation, asked by a program: ``docs/service.md`` says what it does and may."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import ssl
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from . import _tacit
from ._errors import _KINDS, FileError, InputError, PeerError, Place, TacitError
from ._report import Fields, Report
from ._study import Study

_BASE = "/api/v1"
_TRIES = 4
"""How often a request is sent again that was too fast or met no connection."""
_LONGEST = 60.0
"""The most seconds that a request waits because a service says so."""


@dataclass(frozen=True)
class ServiceEvent:
    """Something that happened at a service."""

    kind: str
    """``study``: one changed; ``line``: the process of a run said something; ``reset``: what happened
    meanwhile is unknown, so look at everything again."""
    id: str
    """Where the stream was: ``Service.events(after=...)`` goes on there."""
    data: Fields
    """The study as in ``Service.studies``, or ``study``, ``proposal``, ``run``, ``at_ms`` and ``line``."""


class Service:
    """The service of one's own organisation, by a token that somebody made on *Your account*.

    ``url`` is its address as ``tacit service run`` prints it. ``certificate`` says whom to believe where its
    certificate is its own: the SHA-256 that it prints, or a file in PEM; unsaid: the authorities of this
    machine. What a token may not do raises RefusedError, as does a state that does not allow it; InputError
    says what is wrong with a request, and where; PeerError that the service was not reached.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        certificate: str | os.PathLike[str] | None = None,
        timeout: float = 60.0,
    ) -> None:
        at = urlsplit(url)
        if at.username is not None or at.password is not None:
            # It is not said again: a password would stand in messages.
            message = "the address names a user: write https://NAME:PORT; the token says who asks"
            raise InputError(message, kind="input", code=2)
        if at.scheme != "https" or not at.hostname or at.path.rstrip("/") or at.query:
            message = f"{url} is no address of a service: write https://NAME:PORT"
            raise InputError(message, kind="input", code=2)
        try:
            self._host, self._port, self._name = at.hostname, at.port or 443, at.netloc
        except ValueError as error:
            message = f"{url} is no address of a service: a port is a number up to 65535"
            raise InputError(message, kind="input", code=2) from error
        self._token, self._timeout = _Secret(token), timeout
        self._pin: bytes | None = None
        text = None if certificate is None else os.fspath(certificate)
        pin = (text or "").replace(":", "").lower()
        if len(pin) == 64 and all(letter in "0123456789abcdef" for letter in pin):
            self._pin = bytes.fromhex(pin)
            self._tls = ssl.create_default_context()
            # The certificate is compared as a whole, so nobody has to vouch for it.
            self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        else:
            self._tls = _trusting(text)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_3

    def __repr__(self) -> str:
        return f"Service('https://{self._name}')"

    def me(self) -> Fields:
        """Whose token this is: ``organisation``, ``account``, ``roles``. Raises TacitError."""
        return self._get("/me")

    def studies(
        self, *, state: str | None = None, peer: str | None = None, open: bool = False
    ) -> Iterator[Fields]:
        """Studies that the token's account may know of, the newest first. Raises TacitError."""
        asked = {"state": state, "peer": peer, "open": "yes" if open else None, "after": None}
        while True:
            page = self._get("/studies", asked)
            yield from page.studies
            if page.next is None:
                return
            asked["after"] = str(page.next)

    def study(self, study: str) -> Fields:
        """How a study stands, by its hash: its ``state``, that in ``words``, whose turn it is (``ours``).

        Raises TacitError.
        """
        return self._get(f"/studies/{_part(study)}")

    def statements(self, study: str) -> list[Fields]:
        """What both sides have signed about it, by time. Raises TacitError."""
        path, found = f"/studies/{_part(study)}/statements", []
        asked: dict[str, str | None] = {"after": None}
        while True:
            page = self._get(path, asked)
            found.extend(page.statements)
            if page.next is None:
                return found[::-1]
            asked["after"] = page.next

    def summary(self, study: str) -> Fields:
        """What it would do, in the words that a steward reads (``sections``), and the hash of those that a
        consent is signed for (``words``).

        Raises TacitError.
        """
        return self._get(f"/studies/{_part(study)}/summary")

    def plan(self, study: str, rows: tuple[int, int]) -> Fields:
        """What it takes and could see with so many rows of both sides, in the study's order.

        Raises TacitError.
        """
        return self._get(f"/studies/{_part(study)}/plan", {"rows": f"{rows[0]},{rows[1]}"})

    def run(self, study: str) -> Fields:
        """How its runs go: ``runs``, ``stages`` of the newest one, what the next one ``waits`` for.

        Raises TacitError.
        """
        return self._get(f"/studies/{_part(study)}/run")

    def preview(self, study: Study | str | os.PathLike[str]) -> Fields:
        """What a study would do that nobody else knows of yet: its hash (``study``) and ``sections``.

        With a rule of this organisation that it breaks (``against``) it is not proposed. Raises TacitError.
        """
        draft = self._draft(study, "", 30)
        try:
            return self._get(f"/drafts/{draft}/preview")
        finally:
            # What is told is why there is none, and not what became of the draft.
            with suppress(TacitError):
                self._send("DELETE", f"/drafts/{draft}", {})

    def propose(self, study: Study | str | os.PathLike[str], *, note: str = "", days: int = 30) -> str:
        """Proposes a study, or a study file, for this organisation; its hash. It is signed and sent.

        The others have ``days`` to decide, and read the ``note``. Raises TacitError.
        """
        draft = self._draft(study, note, days)
        try:
            hash = self._get(f"/drafts/{draft}/preview").study
            return str(self._send("POST", f"/drafts/{draft}/propose", {"study": hash}).study)
        except TacitError:
            # What is told is why it was not proposed, and not what became of the draft.
            with suppress(TacitError):
                self._send("DELETE", f"/drafts/{draft}", {})
            raise

    def consent(
        self, study: str, *, words: str, data: str | None = None, runs: int = 2, days: int = 30
    ) -> Fields:
        """Consents with a data set, where ``consent_by_token`` of the organisation's rules allows it.

        Without ``data`` the organisation computes the study as one of its servers, in ``runs`` runs at most;
        the summary's ``serves`` says whether the token's account decides on that. ``words`` is the hash that
        ``summary`` gave: what is signed is what it said. The files are read first; ``wait`` says what came of
        it, and the study's ``against`` what stood against it. Raises TacitError.
        """
        body: dict[str, object] = {"words": words, "runs": runs, "days": days}
        if data is not None:
            body["data"] = data
        return self._act(study, "consent", body)

    def refuse(self, study: str, text: str, *, code: str = "other") -> Fields:
        """Refuses, where ``consent_by_token`` allows it. The other parties read the text.

        Raises TacitError.
        """
        return self._act(study, "refuse", {"code": code, "text": text})

    def withdraw(self, study: str, text: str, *, code: str = "other") -> Fields:
        """Takes back what was proposed or consented to. The other parties read the text.

        Raises TacitError.
        """
        return self._act(study, "withdraw", {"code": code, "text": text})

    def note(self, study: str, text: str) -> Fields:
        """Writes a question or an answer to the others. Raises TacitError."""
        return self._act(study, "notes", {"text": text})

    def start(self, study: str) -> Fields:
        """Lets its next run begin as soon as both sides are ready. Raises TacitError."""
        return self._act(study, "start", {})

    def stop(self, study: str) -> Fields:
        """Stops its run. What was charged stays charged, and nothing is charged twice for the same data.

        Raises TacitError.
        """
        return self._act(study, "stop", {})

    def wait(
        self, study: str, *, until: tuple[str, ...] = ("answered", "closed"), timeout: float | None = None
    ) -> Fields:
        """Waits until a study is in one of these states; TimeoutError where it takes longer (seconds).

        Raises TacitError.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            found = self.study(study)
            if found.state in until:
                return found
            if end is not None and time.monotonic() > end:
                raise TimeoutError(f"{study} is {found.state}: {found.words}")
            time.sleep(1.0)

    def report(self, study: str) -> Report:
        """Its report, as ``Party.run`` gives it. That it was read is written down at the service.

        Who was given a public result has that as ``file(study, "public.json")``, and InputError here.
        Raises TacitError.
        """
        status, body = self._ask("GET", f"/studies/{_part(study)}/report")
        self._good(status, body)
        if str(json.loads(body).get("format", "")).startswith("tacit-public/"):
            hint = 'ask for file(study, "public.json")'
            text = f"this account was given the public result of {study} alone; {hint}"
            raise InputError(text, kind="input", code=2, hint=hint)
        (report,) = _tacit.Report.all_of(body.decode("utf-8"))
        return Report(report)

    def file(self, study: str, name: str) -> bytes:
        """A file of its report: ``report.html``, ``numbers.csv``, ``public.json``, a figure (``forest.png``).

        Raises TacitError.
        """
        status, body = self._ask("GET", f"/studies/{_part(study)}/report/{_part(name)}")
        if status != 200:
            self._good(status, body)
        return body

    def budget(self) -> list[Fields]:
        """What is left of the budgets of the data sets that the account sees, for each viewer.

        Raises TacitError.
        """
        return list(self._get("/budget").sets)

    def data(self) -> list[Fields]:
        """Data sets, and what their last check found. Raises TacitError."""
        return list(self._get("/data").sets)

    def check(self, data: str) -> Fields:
        """Begins to check the files of a data set; ``data`` says what is found. Raises TacitError."""
        return self._send("POST", f"/data/{_part(data)}/check", {})

    def peers(self) -> list[Fields]:
        """Other organisations and the links to them. Raises TacitError."""
        return list(self._get("/peers").peers)

    def policy(self) -> Fields:
        """What the organisation allows, in words (``sections``), and the ``hash`` of the text that holds.

        Raises TacitError.
        """
        return self._get("/policy")

    def audit(self, **filter: str) -> Iterator[Fields]:
        """Entries of the audit log, the newest first.

        Of an ``actor``, an ``action``, a ``subject``, from a day on (``from_``, 2026-11-27), ``until`` one.
        Raises TacitError.
        """
        asked: dict[str, str | None] = {name.rstrip("_"): said for name, said in filter.items()}
        while True:
            page = self._get("/audit", asked)
            yield from page.entries
            if page.next is None:
                return
            asked["after"] = str(page.next)

    def verify(self) -> Fields:
        """Computes the chain of the audit log anew: whether it ``fits``. Raises TacitError."""
        return self._send("POST", "/audit/verify", {})

    def events(self, *, after: str | None = None) -> Iterator[ServiceEvent]:
        """What happens, as it happens, until the token ends or the service does.

        ``after`` is the ``id`` of the last event that was heard: none is missed. Raises TacitError.
        """
        # A service says a word every 15 seconds.
        connection = self._connect(max(self._timeout, 60.0))
        try:
            last = {"Last-Event-ID": after} if after is not None else {}
            connection.request("GET", _BASE + "/events", headers=self._headers() | last)
            answer = connection.getresponse()
            if answer.status != 200:
                self._good(answer.status, answer.read())
            fields: dict[str, str] = {}
            for line in answer:
                text = line.decode().rstrip("\r\n")
                name, _, said = text.partition(":")
                if text and name:
                    fields[name] = said.removeprefix(" ")
                elif not text and "data" in fields:
                    data = Fields(json.loads(fields["data"]))
                    yield ServiceEvent(fields.get("event", "message"), fields.get("id", ""), data)
                    fields = {}
        except (OSError, http.client.HTTPException) as error:
            raise self._unreached(error) from error
        finally:
            connection.close()

    def _draft(self, study: Study | str | os.PathLike[str], note: str, days: int) -> int:
        if not isinstance(study, Study):
            study = Study.load(study)
        body = {"title": study.name, "text": study.toml(), "note": note, "days": days}
        return int(self._send("POST", "/drafts", body).id)

    def _act(self, study: str, what: str, body: Mapping[str, Any]) -> Fields:
        proposal = self.study(study).proposal
        return self._send("POST", f"/studies/{_part(study)}/{what}", {"proposal": proposal, **body})

    def _get(self, path: str, asked: Mapping[str, str | None] | None = None) -> Fields:
        query = urlencode({name: said for name, said in (asked or {}).items() if said is not None})
        status, body = self._ask("GET", path + (f"?{query}" if query else ""))
        return Fields(self._good(status, body))

    def _send(self, method: str, path: str, body: Mapping[str, Any]) -> Fields:
        status, answer = self._ask(method, path, json.dumps(body).encode())
        return Fields(self._good(status, answer))

    def _ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        # What arrived before a connection broke is not done again.
        once = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
        further = once if body is not None else {}
        for left in reversed(range(_TRIES)):
            connection = None
            try:
                connection = self._connect(self._timeout)
                connection.request(method, _BASE + path, body=body, headers=self._headers() | further)
                answer = connection.getresponse()
                status, said = answer.status, answer.read()
                if status != 429 or left == 0:
                    return status, said
                wait = _wait(answer.headers.get("Retry-After"))
            except (OSError, http.client.HTTPException) as error:
                if left == 0 or isinstance(error, ssl.SSLCertVerificationError):
                    raise self._unreached(error) from error
                wait = 0.5
            finally:
                if connection is not None:
                    connection.close()
            time.sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        # A second connection would be another one than the one whose certificate was looked at.
        connection.auto_open = 0
        connection.connect()
        if self._pin is not None:
            shown = connection.sock.getpeercert(binary_form=True)
            if hashlib.sha256(shown or b"").digest() != self._pin:
                connection.close()
                message = f"{self._name} shows another certificate than the one that was named"
                raise PeerError(message, kind="peer", code=3)
        return connection

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token.said()}", "Host": self._name}

    def _good(self, status: int, body: bytes) -> dict[str, Any]:
        """The object of an answer; an error of a service as an exception."""
        try:
            value = json.loads(body)
        except ValueError:
            value = None
        if status < 300 and isinstance(value, dict):
            return value
        error = value.get("error") if isinstance(value, dict) else None
        if not isinstance(error, dict):
            message = f"{self._name} answered {status} without a word that is known here"
            raise PeerError(message, kind="peer", code=3)
        places = [Place(one["file"], one["line"], one["column"]) for one in error["places"]]
        made = _KINDS.get(error["kind"], FileError)
        raise made(error["message"], kind=error["kind"], code=error["code"], places=places)

    def _unreached(self, error: Exception) -> PeerError:
        hint = "see that the service runs, that the address is its own, and which certificate it has"
        return PeerError(f"{self._name} was not reached: {error}", kind="peer", code=3, hint=hint)


class _Secret:
    """A token, which no representation shows: tracebacks and debuggers have those of local names."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        # Files end with a line's end, and what sends headers would say the whole token in its error.
        self._text = text.strip()
        if not self._text or not all("!" <= letter <= "~" for letter in self._text):
            message = "the token is none: hand over one line of it, as *Your account* showed it"
            raise InputError(message, kind="input", code=2)

    def said(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "<token>"


def _trusting(certificate: str | None) -> ssl.SSLContext:
    """Whom to believe: a file in PEM, or the authorities of this machine."""
    try:
        return ssl.create_default_context(cafile=certificate)
    except OSError as error:
        why = error.strerror or str(error)
        message = (
            f"certificate={certificate!r} is neither a SHA-256 of 64 hex digits, as `tacit service run` "
            f"prints it, nor a file in PEM ({why})"
        )
        raise InputError(message, kind="input", code=2) from error


def _wait(said: str | None) -> float:
    """Seconds that a service asks to wait: a number, at most a minute. A date is none that ours says."""
    return min(float(said), _LONGEST) if said is not None and said.strip().isdigit() else 1.0


def _part(text: str) -> str:
    """A part of a path, which names nothing else."""
    return quote(text, safe="")
