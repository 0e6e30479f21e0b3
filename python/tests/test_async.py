"""Events, progress and asyncio."""

import asyncio
import io
import json
import sys
import time

import pytest
from conftest import World

import tacit
from tacit._progress import Shown


def test_events_come_to_the_thread_that_called(world: World):
    import threading

    seen = {name: [] for name in world.files}
    parties = world.parties(world.study(), "events")

    def heard(event: tacit.Event) -> None:
        seen[threading.current_thread().name].append(event)

    def call(name):
        threading.current_thread().name = name
        return parties[name].run(world.files[name], progress=heard)

    from conftest import both

    done = both({name: lambda name=name: call(name) for name in parties})
    for name, events in seen.items():
        kinds = [event.kind for event in events]
        assert "connected" in kinds and kinds.index("connected") < kinds.index("stage-done"), kinds
        stages = [event.stage for event in events if event.kind == "stage-done"]
        assert stages == [stage.name for stage in done[name].stages], stages
        total = sum(event.bytes for event in events if event.kind == "stage-done")
        assert total == sum(sum(stage.bytes_sent) for stage in done[name].stages)


def test_what_a_listener_raises_ends_the_run(world: World):
    parties = world.parties(world.study(), "raises")

    def heard(event: tacit.Event) -> None:
        if event.kind == "connected":
            raise ZeroDivisionError("on purpose")

    from conftest import both

    done = both(
        {
            "media": lambda: parties["media"].run(world.files["media"], progress=heard),
            "shop": lambda: parties["shop"].run(world.files["shop"], progress=False),
        }
    )
    assert isinstance(done["media"], ZeroDivisionError) and isinstance(done["shop"], tacit.PeerError), done


def test_a_run_under_asyncio(world: World):
    parties = world.parties(world.study(), "async")

    async def main():
        events = []

        async def media():
            async for event in parties["media"].start(world.files["media"]):
                events.append(event)

        _, shop = await asyncio.gather(media(), parties["shop"].start(world.files["shop"]))
        return events, shop

    events, shop = asyncio.run(main())
    assert events[-1].kind == "report" and events[-1].report.public == shop.public
    assert "stage-done" in [event.kind for event in events]


def test_a_cancelled_task_ends_its_run(world: World):
    parties = world.parties(world.study(), "cancelled")

    async def main():
        media = asyncio.create_task(wait(parties["media"].start(world.files["media"])))
        shop = parties["shop"].start(world.files["shop"])
        async for event in shop:
            if event.kind == "connected":
                media.cancel()
                break
        with pytest.raises(asyncio.CancelledError):
            await media
        with pytest.raises(tacit.PeerError):
            await shop

    async def wait(run):
        return await run

    asyncio.run(main())


def test_errors_come_to_who_waits(world: World):
    party = world.parties(world.study(), "wrong")["media"]

    async def main():
        await party.start(world.files["shop"], workers=2, memory="64M")

    with pytest.raises(tacit.InputError, match="no column"):
        asyncio.run(main())


EVENTS = [
    tacit.Event("waiting", text="waiting for shop"),
    tacit.Event("progress", stage="match", rows=10, total=100),
    tacit.Event("progress", stage="match", rows=50, total=100),
    tacit.Event("stage-done", stage="match", rows=100, total=100, bytes=1234567, seconds=1.25),
]


def test_plain_lines_and_json(monkeypatch):
    def said(progress, style=None):
        out = io.StringIO()
        monkeypatch.setattr(sys, "stderr", out)
        monkeypatch.setenv("TACIT_PROGRESS", style) if style else monkeypatch.delenv(
            "TACIT_PROGRESS", raising=False
        )
        shown = Shown(progress)
        for event in EVENTS:
            shown.show(event)
        shown.end()
        return out.getvalue()

    assert said(True) == "  waiting for shop\n  match    done   100 rows   1.2 s   1,234,567 bytes\n"
    lines = [json.loads(line) for line in said(True, "json").splitlines()]
    assert lines[1] == {"kind": "progress", "stage": "match", "rows": 10, "total": 100}
    assert said(False) == said(True, "none") == ""


def test_a_terminal_has_one_line_that_moves(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    shown = Shown(True)
    for event in EVENTS:
        shown.show(event)
    shown.end()
    assert out.getvalue().count("\n") == 2 and "\r\x1b[2K  match: 50 %   50 of 100\r" in out.getvalue()


def test_a_notebook_has_one_output(monkeypatch):
    from IPython.core import displayhook, displaypub
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    assert displayhook and displaypub

    class ZMQInteractiveShell(InteractiveShell):
        """What a notebook's kernel is called."""

    shell = ZMQInteractiveShell()
    ZMQInteractiveShell._instance = InteractiveShell._instance = shell
    try:
        with capture_output() as captured:
            shown = Shown(True)
            for event in EVENTS:
                shown.show(event)
    finally:
        InteractiveShell.clear_instance()
        ZMQInteractiveShell.clear_instance()
    outputs = captured.outputs
    assert len({output.transient["display_id"] for output in outputs}) == 1 and len(outputs) >= 2
    assert [output.update for output in outputs] == [False] + [True] * (len(outputs) - 1)
    assert "1,234,567 bytes" in outputs[-1].data["text/html"]


def test_progress_is_a_choice_of_three(world: World):
    with pytest.raises(tacit.InputError, match="a function that is called"):
        world.parties(world.study(), "loud")["media"].run(world.files["media"], progress="loud")


def test_plain_lines_name_their_party_and_say_nothing_twice(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.delenv("TACIT_PROGRESS", raising=False)
    shown = Shown(True, "media")
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    for rows in (0, 0, 0, 0, 10):
        shown.show(tacit.Event("progress", stage="match", rows=rows, total=100))
        now += 5
    lines = out.getvalue().splitlines()
    assert lines == ["  media: match: 0 %   0 of 100", "  media: match: 10 %   10 of 100"]


def test_reports_of_several_are_awaited_by_their_own_call(world: World):
    parties = world.parties(world.study(), "several")

    async def main():
        shop = parties["shop"].start(world.files["shop"])
        return await asyncio.gather(one(parties["media"].start_all(world.files["media"])), one(shop))

    async def one(run):
        return await run

    media, shop = asyncio.run(main())
    assert [report.public for report in media] == [shop.public]
