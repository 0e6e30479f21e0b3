"""Workers of a run as actors of a Ray cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from . import _tacit
from ._errors import FileError, InputError

_LOOK = 0.05
"""How often what is asked and what is done is looked at, in seconds."""
_LEAVING = 5.0
"""How long an actor may take to leave its coordinator before it is killed."""

_REACH = 10.0
"""How long the head of a cluster may take to be connected to, in seconds."""
_PATIENCE = 540
"""The most seconds that the first worker may be awaited: less than 600, by which a run ends at either side."""


@dataclass(frozen=True)
class Ray:
    """A launcher for ``Party.run``: this process coordinates, and workers are actors of a Ray cluster.

    The process must be on a machine of the cluster, or one that reaches all its machines, and they it.
    ``ray`` and the same tacit must be installed on all of them. Ray carries addresses, fingerprints and
    numbers; rows, shares and keys go between this process and its workers over TLS.
    """

    address: str
    """Of the cluster: ``10.0.0.5:6379``. It is always said: Ray would find any that is there."""
    workers: int
    """How many at once; the fewer of both sides counts. They come when the cluster has room for them."""
    threads: int = 1
    """Cores of a worker, which Ray reserves for it."""
    memory: int | None = None
    """Bytes of memory that Ray reserves for a worker; none: no care is taken."""
    host: str | None = None
    """Where workers reach this process; none: at the address of its node."""
    port: int = 0
    """The port that is opened for them; 0: any that is free."""
    patience: float = 300.0
    """How many seconds the first worker may take to come: up to 540, for runs of either party end after 600
    in which nothing happens."""

    def __post_init__(self) -> None:
        if self.address in ("", "auto", "local") or "://" in self.address:
            raise InputError(
                f"the address of a Ray cluster is {self.address!r}; name its head, as ray.init takes it: "
                "'10.0.0.5:6379'",
                kind="input",
                code=2,
            )
        if not 1 <= self.workers <= 256 or self.threads < 1:
            raise InputError("a launcher has 1 to 256 workers of at least one thread", kind="input", code=2)
        if self.memory is not None and (not isinstance(self.memory, int) or self.memory < 1):
            raise InputError(
                f"a launcher's memory is {self.memory!r}; Ray takes bytes, as a whole number: 2 * 2**30",
                kind="input",
                code=2,
            )
        if not 0 < self.patience <= _PATIENCE:
            raise InputError(
                f"a launcher's patience is more than 0 and at most {_PATIENCE} s: runs of either party end "
                f"after 600 s in which nothing happens; it is {self.patience:g}",
                kind="input",
                code=2,
            )

    @contextmanager
    def _open(self, party: str) -> Iterator[_tacit.Launcher]:
        """What a run asks for workers, while a thread carries it out."""
        try:
            import ray
        except ImportError as error:
            raise InputError(
                "tacit.Ray needs the package ray here and on the nodes: pip install 'ray>=2.40'",
                kind="input",
                code=2,
            ) from error
        own = _connect(ray, self.address, f"tacit-{party}")
        try:
            node = ray.get_runtime_context().get_node_id()
            handle = _tacit.Launcher(self.host or _hosts(ray)[node], self.port, self.threads)
            actors = _Actors(ray, handle, self)
            actors.start()
            try:
                yield handle
            finally:
                actors.end()
        finally:
            if own:
                ray.shutdown()


def _connect(ray: Any, address: str, namespace: str) -> bool:
    """Whether this process was in no cluster before. One that is in another one stays there."""
    if ray.is_initialized():
        there = ray.get_runtime_context().gcs_address
        if not _same(ray, there, address):
            raise InputError(
                f"this process is in the Ray cluster {there}, and the launcher's is {address}: call "
                "ray.shutdown(), or name the first one",
                kind="input",
                code=2,
            )
        return False
    _listens(address)
    try:
        ray.init(address=address, namespace=namespace, log_to_driver=False, logging_level="ERROR")
    except Exception as error:
        text = (
            f"the Ray cluster {address} cannot be joined: {_reason(error)}. Something listens there: see that "
            "RAY_AUTH_MODE and the token of this process are the cluster's, and its Ray of the same version"
        )
        raise FileError(text, kind="file", code=1) from error
    return True


def _listens(address: str) -> None:
    """Ray itself tries for minutes to reach a head that is not there."""
    import socket

    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH).close()
    except (OSError, ValueError) as error:
        raise FileError(
            f"no head of a Ray cluster can be reached at {address}: {error}; its address is what `ray start "
            "--head` prints, with the port (6379 unless said)",
            kind="file",
            code=1,
        ) from error


def _same(ray: Any, there: str, said: str) -> bool:
    """Whether two addresses are one: Ray knows a loopback as the address of the machine."""
    here = {ray.util.get_node_ip_address()}
    (one, _, port), (other, _, other_port) = there.rpartition(":"), said.rpartition(":")
    return port == other_port and bool(_addresses(one, here) & _addresses(other, here))


def _addresses(host: str, here: set[str]) -> set[str]:
    import socket

    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host.strip("[]"), None)}
    except OSError:
        return {host}
    return found | here if any(address.startswith("127.") or address == "::1" for address in found) else found


def _hosts(ray: Any) -> dict[str, str]:
    return {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes()}


def _build(version: str, commit: str | None) -> str:
    return f"{version} ({commit or 'of no known commit'})"


def _reason(error: BaseException) -> str:
    """What a worker said itself, without what Ray says around it."""
    cause = getattr(error, "cause", None)
    said = str(cause if isinstance(cause, BaseException) else error)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return " ".join(lines[:6])[:600] or type(error).__name__


@dataclass
class _Called:
    """A worker that the run has asked for."""

    actor: Any
    summons: str
    ref: Any
    since: float
    again: bool = False
    """Whether it has worked before: it may have ended since."""
    there: bool = False
    """Whether it works, and has not only been asked for."""
    leaves: float | None = None
    """When it is killed, where nobody waits for it any more."""


class _Actors(threading.Thread):
    """Carries out what a run asks of its launcher.

    Actors that have done what one crew of a run had for them are taken for the next one. Ray's own word that
    one is gone says why; that it is gone the run finds out by its connection.
    """

    def __init__(self, ray: Any, handle: _tacit.Launcher, launcher: Ray) -> None:
        super().__init__(name="tacit ray", daemon=True)
        self._ray, self._handle, self._launcher = ray, handle, launcher
        self._called: dict[int, _Called] = {}
        self._idle: list[Any] = []
        self._ended = threading.Event()
        self._came = False
        # Why nobody is called any more: none came within all patience.
        self._gave_up: str | None = None

    def end(self) -> None:
        """Kills all actors."""
        self._ended.set()
        self.join()
        for actor in [*self._idle, *(called.actor for called in self._called.values())]:
            self._kill(actor)

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                self._round()
            except Exception as error:
                # Of the cluster, not of one actor: the run hears of it, and calls for others or ends.
                for number in list(self._called):
                    self._kill(self._called.pop(number).actor)
                    self._handle.is_gone(number, f"the Ray cluster does not answer: {_reason(error)}")

    def _round(self) -> None:
        asked = self._handle.next(_LOOK)
        while asked is not None:
            self._take(*asked[:2])
            asked = self._handle.next(0)
        refs = {called.ref: number for number, called in self._called.items()}
        if refs:
            done, _ = self._ray.wait(list(refs), num_returns=len(refs), timeout=0)
            for ref in done:
                self._done(refs[ref])
        self._look()

    def _take(self, number: int, summons: str | None) -> None:
        if summons is None:
            self._leave(number)
            return
        if self._gave_up is not None:
            # The run calls some times more and ends; each call would have all patience again.
            self._handle.is_gone(number, self._gave_up)
            return
        try:
            again = bool(self._idle)
            actor = self._idle.pop() if again else self._new()
            self._called[number] = _Called(actor, summons, actor.begin.remote(), time.monotonic(), again)
        except Exception as error:
            self._handle.is_gone(number, f"no actor can be started: {_reason(error)}")

    def _new(self) -> Any:
        from ._ray_actor import ACTOR

        launcher = self._launcher
        return ACTOR.options(num_cpus=launcher.threads, memory=launcher.memory).remote()

    def _leave(self, number: int) -> None:
        """Nobody waits for it: one that works comes back, and one that never came is not awaited."""
        called = self._called.get(number)
        if called is None:
            return
        if called.there:
            called.actor.stop.remote()
            called.leaves = time.monotonic() + _LEAVING
        else:
            self._kill(self._called.pop(number).actor)

    def _done(self, number: int) -> None:
        called = self._called[number]
        try:
            what = self._ray.get(called.ref)
            if called.there:
                del self._called[number]
                self._idle.append(called.actor)
                if called.leaves is None:
                    self._handle.is_gone(number, "its actor ended by itself")
                return
            self._begun(number, called, what)
        except Exception as error:
            self._called.pop(number, None)
            self._kill(called.actor)
            if called.leaves is not None:
                return
            if called.again and not called.there:
                # Its node went while it had nothing to do, which is nobody's failure.
                self._take(number, called.summons)
            else:
                self._handle.is_gone(number, _reason(error))

    def _begun(self, number: int, called: _Called, here: Any) -> None:
        host = _hosts(self._ray).get(here.node)
        if host is None:
            raise RuntimeError("its node is gone")
        own = (_tacit.__version__, _tacit.__commit__)
        if (here.version, here.commit) != own:
            raise RuntimeError(
                f"the node {host} has tacit {_build(here.version, here.commit)}, and this process "
                f"{_build(*own)}: install one of them everywhere"
            )
        self._came, self._gave_up = True, None
        self._handle.has_key(number, here.key, host)
        called.there, called.ref = True, called.actor.work.remote(called.summons)

    def _look(self) -> None:
        now = time.monotonic()
        for number, called in list(self._called.items()):
            if called.leaves is not None and now > called.leaves:
                self._kill(self._called.pop(number).actor)
            elif not self._came and now - called.since > self._launcher.patience:
                self._kill(self._called.pop(number).actor)
                self._gave_up = self._gave_up or self._nobody()
                self._handle.is_gone(number, self._gave_up)

    def _nobody(self) -> str:
        launcher, free = self._launcher, self._ray.available_resources().get("CPU", 0)
        return (
            f"no actor came within {launcher.patience:.0f} s: one of {launcher.threads} cores was asked for, "
            f"and the cluster has {free:.0f} free"
        )

    def _kill(self, actor: Any) -> None:
        # One that is dead already stays so.
        try:
            self._ray.kill(actor, no_restart=True)
        except Exception:
            pass
