"""Blocks of Python in the documentation run as they stand, each page from top to bottom.

Only what a test has no second side for is stood in: a run gives the report of another one, and a service
answers what its methods allow.
Everything before that is the package's own: studies, settings, rows, launchers.
"""

import ast
import asyncio
import inspect
import re
from pathlib import Path
from unittest import mock

import pytest

import tacit
from tacit._data import given
from tacit._report import Reports

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"python.md": 9, "ray.md": 1}
"""How many blocks a page has at least."""


def blocks(page: Path) -> list[tuple[int, str]]:
    """The line before each block, and its text."""
    text = page.read_text()
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text[: one.start(1)].count("\n"), one[1]) for one in found]


def execute(block: str, page: Path, line: int, names: dict) -> None:
    """Errors name the line of the page. As in a notebook, a block may wait."""
    tree = ast.parse(block, str(page))
    ast.increment_lineno(tree, line)
    done = eval(compile(tree, str(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(done):
        asyncio.run(done)


def files() -> None:
    """What a reader has by the time that a page needs it."""
    rows = (f"p{i}@x,{1_700_000_000 + i},{['test', 'control'][i % 2]}\n" for i in range(4000))
    Path("members.csv").write_text("email,seen,arm\n" + "".join(rows))
    key = tacit.keygen("media.key")
    study = (
        tacit.Study.lift("spring", title="Spring campaign")
        .publisher("media", key=key)
        .advertiser("shop", key="tacit1:b07e66d2915c4fa3a2d8017b34ce9f50")
        .match("pid", identifiers=["email"])
        .opportunity("seen")
        .arm("arm", test="test", control="control")
        .events("bought", value="amount", unit="cent", max_events=4)
        .clamp(10_000)
        .release(rho="0.1")
    )
    study.save("study.toml")
    Path("media.toml").write_text(
        'study = "study.toml"\nas = "media"\nidentity = "media.key"\nlisten = "127.0.0.1:7000"\n'
        'data = "members.csv"\nledger = "media.ledger"\nlineage = "members"\n'
    )


@pytest.mark.parametrize("name", PAGES)
def test_the_blocks_of_a_page_run(name, tmp_path, monkeypatch, reports, capsys):
    ran = []

    def run(self, data, progress, said, stop, launcher):
        given(data, stop)
        ran.append(launcher)
        if callable(progress):
            progress(tacit.Event("stage", stage="match", rows=200, bytes=1))
        return Reports([reports["media"]])

    service = mock.create_autospec(tacit.Service)
    service.return_value.propose.return_value = "ab" * 32
    service.return_value.report.return_value = reports["media"]
    event = tacit.ServiceEvent("study", "1", tacit.Fields({"state": "open"}))
    service.return_value.events.return_value = [event]
    monkeypatch.setattr(tacit.Party, "_run", run)
    monkeypatch.setattr(tacit, "Service", service)
    monkeypatch.setenv("TACIT_TOKEN", "tacit_0")
    monkeypatch.chdir(tmp_path)
    files()
    if name == "python.md":
        # Its blocks make these.
        Path("media.key").unlink()
        Path("study.toml").unlink()
    names: dict = {}
    found = blocks(DOCS / name)
    assert len(found) >= PAGES[name]
    for line, block in found:
        execute(block, DOCS / name, line, names)
    assert ran and capsys.readouterr().out.count("\n") >= (20 if name == "python.md" else 0)
