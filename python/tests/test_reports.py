"""What calls return: reports, tables, matches."""

import html
import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib
import matplotlib.pyplot
import pytest
from built import command_path
from conftest import World, both, free_address

import tacit
from tacit._plot import _draw, _groups
from tacit._report import _output
from tacit._words import python_words

matplotlib.use("Agg")
EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_report_is_its_json(reports, command, tmp_path):
    report = reports["media"]
    folder = report.save(tmp_path / "out")
    assert json.loads((folder / "report.json").read_text()) == report.to_dict()
    assert command("report", folder / "report.json") == report.to_dict()
    assert report.estimate.lift == report["view"]["cells"][0]["estimate"]["lift"]
    with pytest.raises(AttributeError, match="there are: format, study"):
        _ = report.estimates
    assert pickle.loads(pickle.dumps(report)).to_dict() == report.to_dict()
    assert "estimate" not in report and set(report.to_dict()) == set(report)
    assert report.text.startswith(report.study.title) or report.study.name in report.text


def test_numbers_and_counts(reports, command, tmp_path):
    report = reports["media"]
    path = report.save(tmp_path) / "report.json"
    command("report", path, "--csv", tmp_path / "numbers.csv")
    lines = (tmp_path / "numbers.csv").read_text().splitlines()
    assert report.numbers.columns == lines[0].split(",") and len(report.numbers) == len(lines) - 1
    frame = report.numbers.to_pandas()
    assert list(frame.columns) == report.numbers.columns
    assert report.estimate.lift in list(frame[frame["kind"] == "estimate"]["value"])
    counts = report.counts.to_polars()
    assert counts.height == len(report.counts) == sum(len(cell.counts) for cell in report.view.cells)
    assert report.counts.to_arrow().num_rows == counts.height
    assert report.counts[0].family == "overall" and len(report.counts[:2]) == 2


def test_a_notebook_shows_the_commands_page(reports):
    report = reports["shop"]
    shown = report._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and html.escape(report.html) in shown
    assert "<svg" in report.html and "sandbox" in shown
    assert report.counts._repr_html_().count("<tr>") == len(report.counts) + 1


def test_a_plot_has_the_interval(reports):
    report = reports["media"]
    axes = report.plot()
    (point,) = (line for line in axes.lines if len(line.get_xdata()) == 1 and line.get_marker() == "o")
    assert point.get_xdata()[0] == report.estimate.lift
    assert [label.get_text() for label in axes.get_yticklabels()] == ["overall"]
    _, own = matplotlib.pyplot.subplots()
    assert report.plot(ax=own) is own
    matplotlib.pyplot.close("all")


def test_a_plot_says_what_is_missing(reports, monkeypatch):
    report = reports["media"]
    exact = {"label": "all", "value": "7", "sigma": None}
    for outputs in ([], [exact]):
        view = {"kind": "program", "outputs": outputs, "lists": [], "derived": []}
        monkeypatch.setattr(report, "to_dict", lambda view=view: {"view": view})
        with pytest.raises(tacit.InputError, match=r"no number with an interval; report.numbers has") as caught:
            report.plot()
        assert (caught.value.kind, caught.value.code) == ("input", 2)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(tacit.InputError, match="pip install 'matplotlib>=3.8'"):
        report.plot()


def test_open_ends_are_arrows():
    """Of a number needed to treat whose difference may be none, both intervals have one."""
    one = {"label": "needed", "statistic": "x", "unit": "", "value": 20.0, "level": 0.95}
    one["intervals"] = [[None, -30.0], [10.0, None]]
    (group,) = _groups({"kind": "program", "derived": [one], "outputs": []})
    _, axes = matplotlib.pyplot.subplots()
    _draw(axes, group)
    marks = {line.get_marker(): line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 1}
    assert marks["<"] < -30 and marks[">"] > 20 and marks["o"] == 20
    unknown = {**one, "value": None, "intervals": [[None, None]]}
    assert _groups({"kind": "program", "derived": [unknown], "outputs": []}) == []
    matplotlib.pyplot.close("all")


def test_what_is_public_is_passed_on(reports):
    public = [report.public_result.to_dict() for report in reports.values()]
    assert public[0] == public[1] and "inputs" not in public[0]


def test_tables_keep_types():
    rows = [
        {"n": 1, "x": 0.5, "s": "a", "b": True, "o": None},
        {"n": None, "x": 2, "s": "ü", "b": False, "o": [1]},
    ]
    table = tacit.Table(rows)
    frame = table.to_polars()
    assert frame.columns == ["n", "x", "s", "b", "o"] and frame["n"].to_list() == [1, None]
    assert frame["x"].to_list() == [0.5, 2.0] and frame["s"].to_list() == ["a", "ü"]
    assert frame["o"].to_list() == [None, "[1]"] and table.to_arrow()["b"].to_pylist() == [True, False]
    assert len(tacit.Table([]).to_polars()) == 0 and table.to_dicts() == rows


def test_a_match_gives_rows(world: World, tmp_path, monkeypatch):
    # Rows that are handed over pass through no file: there is no folder for one.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    study = tacit.Study(
        f"""
format = "tacit-study/1"
name = "pair"
kind = "match"
title = "Who is in both"
[party.media]
key = "{world.keys["media"]}"
[party.shop]
key = "{world.keys["shop"]}"
[match]
protocol = "pid"
identifiers = [{{ name = "id" }}]
duplicates = "error"
"""
    )
    ids = {
        "media": [f"m{i}" for i in range(40)] + ["x", "y"],
        "shop": ["x", "y"] + [f"s{i}" for i in range(30)],
    }
    address = free_address()
    meet = {"media": {"listen": address}, "shop": {"peer": address}}
    parties = {
        name: tacit.Party(
            study,
            as_=name,
            identity=world.keys[name].path,
            ledger=tmp_path / f"{name}.ledger",
            lineage=name,
            deadline="60s",
            allow_kinds=["match"],
            **meet[name],
        )
        for name in meet
    }
    import polars as pl

    calls = {
        name: lambda name=name: parties[name].match(
            pl.DataFrame({"id": ids[name]}),
            progress=False,
            out=tmp_path / "own.parquet" if name == "media" else None,
        )
        for name in parties
    }
    done = both(calls)
    assert all(isinstance(match, tacit.MatchResult) for match in done.values()), done
    frames = {name: match.to_polars() for name, match in done.items()}
    assert frames["media"].columns == ["row", "identifier", "position"]
    places = {
        name: dict(frame.select("identifier", "position").iter_rows()) for name, frame in frames.items()
    }
    for shared in ("x", "y"):
        assert places["media"][shared] == places["shop"][shared]
    alone = {name: {places[name][one] for one in ids[name] if one not in ("x", "y")} for name in ids}
    assert not alone["media"] & alone["shop"]
    # Made-up rows hide how many there are.
    assert done["media"].rows == done["shop"].rows >= 72
    assert frames["media"].equals(pl.read_parquet(tmp_path / "own.parquet")) and "file" not in done["shop"]
    assert len(done["shop"].to_pandas()) == done["shop"].to_arrow().num_rows >= 32
    with pytest.raises(tacit.InputError, match="never replaces a file"):
        parties["media"].match(
            pl.DataFrame({"id": ids["media"]}), out=tmp_path / "own.parquet", progress=False
        )


def test_made_up_data(tmp_path, world: World):
    made = tacit.generate.columns(tacit.Study.load(EXAMPLES / "program.toml"), tmp_path, rows=50)
    assert [party.party for party in made.parties] == ["clinic", "works"]
    assert all(len(open(party.file).readlines()) > 1 for party in made.parties)
    polio = tacit.generate.polio(tmp_path / "polio")
    assert polio.publisher.rows > 100_000 and polio.truth.overall.test.rows > 0
    with pytest.raises(tacit.InputError, match="lift"):
        tacit.generate.columns(world.study(), tmp_path)


def test_outputs_are_numbers():
    rows = [
        {"label": "people", "value": str(2**100 + 1), "sigma": "12.5", "noised": True},
        {"label": "exact", "value": "-7"},
    ]
    outputs = tacit.Outputs([_output(row) for row in rows])
    people, exact = outputs
    assert (people.value - 1, people.sigma, exact.value, exact.sigma) == (2**100, 12.5, -7, None)
    assert [one.label for one in outputs[1:]] == ["exact"] and outputs.to_dicts()[0]["value"] == 2**100 + 1
    assert outputs[1:].to_pandas()["value"].sum() == -7
    assert str(2**100 + 1) in outputs._repr_html_()
    assert (exact.unit, exact.scale, repr(exact)) == ("", 1, "Output('exact', value=-7)")
    # No type of a column holds these, and none of them is rounded without a word.
    wide = ["1267650600228229401496703205377", "-7"], ["9007199254740993", "1/3"], ["-9223372036854775809"]
    for values in wide:
        table = tacit.Outputs([_output({"label": "x", "value": value}) for value in values])
        for column in (table.to_pandas()["value"], table.to_polars()["value"]):
            assert [*column] == values
    for values, right in ((["4", "1/2", str(2**53)], [4.0, 0.5, 2.0**53]), ([str(2**63 - 1)], [2**63 - 1])):
        table = tacit.Outputs([_output({"label": "x", "value": value}) for value in values])
        assert [*table.to_polars()["value"]] == right


def test_what_calls_return_shows_itself(world: World, reports, command, tmp_path):
    study = world.study()
    path = study.save(tmp_path / "study.toml")
    plan, check = study.plan(rows=5000), study.check(rows=(5000, 4000))
    found = tacit.simulate(study, world.files, draws=100)
    assert plan.text.strip() == printed("plan", path, "--rows", 5000)
    data = [f"--data={name}={file}" for name, file in world.files.items()]
    assert found.text.strip() == printed("simulate", path, "--draws", 100, *data)
    told = printed("check", path, "--rows", "5000,4000")
    assert check.text.partition("Check your data")[0] == told.partition("Check your data")[0]
    assert "party.check(data)" in check.text and "PARTY_FILE" not in check.text
    for one in (plan, check, found, world.parties(study, "shows")["media"].check(world.files["media"])):
        assert one._repr_html_() == f"<pre>{html.escape(one.text)}</pre>" and str(one) == one.text
    assert len(found.hash) == 64 and found.hash == study.hash
    media = reports["media"]
    assert "<td>lift</td>" in media.estimate._repr_html_()
    assert "<svg" in media.public_result.html and "srcdoc" in media.public_result._repr_html_()


def printed(*words: object) -> str:
    """What the command prints; what it advises, in the words of the package."""
    program = command_path()
    how = {**os.environ, "COLUMNS": "110"}
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, env=how)
    return python_words(done.stdout.strip())


def test_a_report_that_is_not_there():
    with pytest.raises(tacit.InputError, match="nothing.json cannot be read"):
        tacit.Report.load("nothing.json")
