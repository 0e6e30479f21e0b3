"""Progress: a line in a terminal, one output in a notebook, plain lines elsewhere, JSON where asked for."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from ._errors import InputError
from ._report import preformatted
from ._words import python_words

Listener = Callable[
    [str, "str | None", "str | None", "int | None", "int | None", "int | None", "float | None", "int | None"],
    None,
]

_EVERY = 2.0
"""Seconds between two plain lines of one stage."""


@dataclass(frozen=True)
class Event:
    """What happens in a run."""

    kind: str
    """``waiting``, ``connected``, ``settled``, ``warning``, ``note``, ``stored``, ``stage``, ``progress``,
    ``units``, ``stage-done``; the last one of a run is ``report``."""
    text: str | None = None
    """A line for people; of ``connected`` the peers' names."""
    stage: str | None = None
    """The stage, or the step as a path: ``match``, ``compute/0/rows``."""
    rows: int | None = None
    """Rows done; of ``units`` units that both parties hold."""
    total: int | None = None
    """Rows, or units, in all."""
    bytes: int | None = None
    """Bytes that all parties sent in a stage that is over."""
    seconds: float | None = None
    """Wall seconds of a stage that is over."""
    retries: int | None = None
    """Attempts at units that failed and were made again."""
    report: Any = None
    """Of the last event the report, the reports, or the match."""

    def line(self) -> str | None:
        """For people; None where there is nothing to say."""
        if self.kind == "connected":
            return f"{self.text} there, keys proven"
        if self.kind == "stored":
            return "this study has run on this data before: its stored answer, no new charge"
        if self.kind == "stage-done":
            sent = f"{self.bytes:,} bytes" if self.bytes else "nothing sent"
            return f"{self.stage:8} done   {self.rows:,} rows   {self.seconds:.1f} s   {sent}"
        if self.kind == "progress" and self.total:
            percent = 100 * (self.rows or 0) // self.total
            return f"{self.stage}: {percent} %   {self.rows:,} of {self.total:,}"
        if self.kind == "warning":
            return f"warning: {self.text}"
        return self.text


class Shown:
    """Shows events as they come."""

    def __init__(self, progress: bool | Callable[[Event], None] | None, party: str | None = None) -> None:
        if not callable(progress) and progress not in (True, False, None):
            text = f"progress={progress!r}: True, False, or a function that is called with every event"
            raise InputError(text, kind="input", code=2)
        self._party = party
        self._own = progress if callable(progress) else None
        self._style = "none" if progress is False else _style()
        self._said: dict[str, float] = {}
        self._last: dict[str, str] = {}
        self._lines: list[str] = []
        self._open = False
        self._display: Any = None

    def listener(self) -> Listener:
        """What a call of ``_tacit`` is given."""

        def listen(kind: str, text: str | None, *fields: Any) -> None:
            self.show(Event(kind, text and python_words(text), *fields))

        return listen

    def show(self, event: Event) -> None:
        if self._own is not None:
            self._own(event)
            return
        if self._style == "none":
            return
        if self._style == "json":
            fields = {name: value for name, value in asdict(event).items() if value is not None}
            print(json.dumps(fields), file=sys.stderr, flush=True)
            return
        line = event.line()
        if line is None:
            return
        passing = event.kind in ("progress", "units")
        if self._style == "notebook":
            self._widget(line, passing)
        elif self._style == "terminal":
            self._over(line, passing)
        elif self._due(event, line):
            # Parties of one process share its output.
            name = f"{self._party}: " if self._party else ""
            print(f"  {name}{line}", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leaves the terminal on a line of its own."""
        if self._open:
            print(file=sys.stderr, flush=True)
            self._open = False

    def _due(self, event: Event, line: str) -> bool:
        """Whether a plain line is due: it is a new one, or said long ago."""
        name = str(event.stage) if event.kind == "progress" else line
        every = _EVERY if event.kind == "progress" else 30.0
        now = time.monotonic()
        first = name not in self._said
        # Where nothing moves, the same line is said as seldom as others.
        if event.kind == "progress" and self._last.get(name) == line:
            every = 30.0
        if first and event.kind == "progress":
            self._said[name] = now
            return False
        if not first and now - self._said[name] < every:
            return False
        self._said[name], self._last[name] = now, line
        return True

    def _over(self, line: str, passing: bool) -> None:
        if not passing and line in self._said:
            return
        self._said[line] = 0.0
        print(f"\r\x1b[2K  {line}", end="" if passing else "\n", file=sys.stderr, flush=True)
        self._open = passing

    def _widget(self, line: str, passing: bool) -> None:
        if line in self._lines:
            return
        last = [line] if passing else []
        if not passing:
            self._lines.append(line)
        import IPython.display as notebook

        show: Any = notebook
        shown = show.HTML(preformatted("\n".join(self._lines + last)))
        if self._display is None:
            self._display = show.display(shown, display_id=True)
        else:
            self._display.update(shown)


def _style() -> str:
    if os.environ.get("TACIT_PROGRESS") in ("json", "none"):
        return os.environ["TACIT_PROGRESS"]
    kernel = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if kernel is not None and type(kernel).__name__ == "ZMQInteractiveShell":
        return "notebook"
    return "terminal" if sys.stderr is not None and sys.stderr.isatty() else "plain"
