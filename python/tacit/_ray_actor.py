"""What runs on the nodes of a Ray cluster: an actor that is a worker of one run after the other."""

from __future__ import annotations

import os
from typing import NamedTuple

import ray

from . import _tacit


class Here(NamedTuple):
    """A worker that is there."""

    key: str
    """The fingerprint of its key, which is made for one coordinator."""
    version: str
    commit: str | None
    node: str
    """The id of its node."""
    process: int


class Worker:
    """Everything but these calls goes between the worker and its coordinator, over TLS. Ray sees no row."""

    def __init__(self) -> None:
        self._worker: _tacit.Worker | None = None

    @ray.method(concurrency_group="control")
    def begin(self) -> Here:
        """Makes a key."""
        self._worker = _tacit.Worker()
        node = ray.get_runtime_context().get_node_id()
        return Here(self._worker.key, _tacit.__version__, _tacit.__commit__, node, os.getpid())

    @ray.method(concurrency_group="work")
    def work(self, summons: str) -> None:
        """Works for the coordinator that the summons names, without the interpreter, until it is done."""
        if self._worker is None:
            raise RuntimeError("a worker has a key before it works")
        self._worker.work(summons)

    @ray.method(concurrency_group="control")
    def stop(self) -> None:
        """Has ``work`` return."""
        if self._worker is not None:
            self._worker.stop()


# Ray's own retries would make an attempt at a unit twice: its coordinator starts another worker instead.
ACTOR = ray.remote(
    max_restarts=0,
    max_task_retries=0,
    concurrency_groups={"work": 1, "control": 1},
    scheduling_strategy="SPREAD",
)(Worker)
