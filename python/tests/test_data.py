"""Data frames of all kinds are read as the file that says the same."""

import datetime
import subprocess
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import World, runs

import tacit


@pytest.fixture(scope="module")
def frame(world: World) -> pl.DataFrame:
    return pl.read_csv(world.files["media"])


def found(world: World, rows) -> dict:
    """What a check says of the media's rows, but for what it calls them."""
    check = world.parties(world.study().impressions("impressions"), "data")["media"].check(rows)
    inputs = check.inputs.to_dict()
    return {name: inputs[name] for name in inputs if name not in ("memory", "forms")}


FORMS = {
    "path": lambda frame: None,
    "polars": lambda frame: frame,
    "polars, categories": lambda frame: frame.with_columns(pl.col("arm").cast(pl.Categorical)),
    "polars, enum": lambda frame: frame.with_columns(pl.col("arm").cast(pl.Enum(["test", "control"]))),
    "polars, chunks": lambda frame: pl.concat([frame[:100], frame[100:]], rechunk=False),
    "polars, small integers": lambda frame: frame.with_columns(pl.col("impressions").cast(pl.UInt8)),
    "polars, decimal": lambda frame: frame.with_columns(pl.col("impressions").cast(pl.Decimal(10, 0))),
    "polars, nothing": lambda frame: frame.with_columns(nothing=pl.lit(None)),
    "pandas": lambda frame: frame.to_pandas(),
    "pandas, arrow": lambda frame: frame.to_pandas(use_pyarrow_extension_array=True),
    "pandas, categories": lambda frame: frame.to_pandas().astype({"arm": "category"}),
    "pandas, times": lambda frame: frame.to_pandas().assign(
        seen=lambda f: pd.to_datetime(f["seen"], unit="s", utc=True)
    ),
    "pandas, floats": lambda frame: frame.to_pandas().astype({"impressions": "float64", "seen": "float64"}),
    "pandas, sliced": lambda frame: pd.concat([frame.to_pandas()[:0], frame.to_pandas()]),
    "pyarrow": lambda frame: frame.to_arrow(),
    "pyarrow, text": lambda frame: frame.to_arrow().set_column(
        1, "arm", frame.to_arrow()["arm"].cast(pa.string())
    ),
    "pyarrow, dictionary": lambda frame: frame.to_arrow().set_column(
        1, "arm", frame.to_arrow()["arm"].cast(pa.string()).dictionary_encode()
    ),
    "pyarrow, reader": lambda frame: frame.to_arrow().to_reader(max_chunksize=97),
    "pyarrow, batches": lambda frame: frame.to_arrow().to_batches(max_chunksize=500),
    "pyarrow, generator": lambda frame: pa.RecordBatchReader.from_batches(
        frame.to_arrow().schema, (batch for batch in frame.to_arrow().to_batches(max_chunksize=500))
    ),
    "DuckDB": lambda frame: duckdb.from_arrow(frame.to_arrow()),
    "DuckDB, computed": lambda frame: duckdb.from_arrow(frame.to_arrow()).aggregate(
        "id, arm, seen, sum(impressions) AS impressions", "id, arm, seen"
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_those_of_the_file(world: World, frame, form):
    rows = FORMS[form](frame)
    of_file = found(world, world.files["media"])
    assert of_file["rows_read"] == len(frame)
    assert found(world, world.files["media"] if rows is None else rows) == of_file


def test_a_run_of_frames_is_that_of_files(world: World, frame, reports):
    """Other ledgers, so that the release is drawn anew; what is not noised is the same."""
    shop = pd.read_csv(world.files["shop"], dtype_backend="pyarrow")
    done = runs(world.parties(world.study(), "frames"), {"media": frame, "shop": shop})
    for name, report in done.items():
        before = reports[name].to_dict()
        after = report.to_dict()
        for field in ("study", "mode", "privacy"):
            assert after[field] == before[field], field
        assert after["inputs"]["rows_kept"] == before["inputs"]["rows_kept"]
    # The same rows, from files: the ledgers know them.
    again = runs(world.parties(world.study(), "frames"), world.files)
    assert again["media"].stored and again["media"].public == done["media"].public


def test_rows_outside_memory(world: World, frame, tmp_path):
    """A stream is dealt to the state in its only pass."""
    state = {name: str(tmp_path / name) for name in world.files}
    parties = world.parties(world.study(), "spooled", spool=True, state=state, memory="1G")
    rows = {"media": frame.to_arrow().to_reader(max_chunksize=500), "shop": pl.read_csv(world.files["shop"])}
    assert parties["media"].check(frame).inputs.rows_kept == len(frame)
    done = runs(parties, rows)
    assert all(isinstance(report, tacit.Report) for report in done.values()), done
    assert done["media"].public == done["shop"].public
    assert done["media"].inputs.rows_kept == len(frame)


def test_a_mistake_in_a_frame_has_its_place(world: World, frame):
    party = world.parties(world.study(), "mistakes")["media"]
    arms = frame["arm"].to_list()
    arms[6] = "treated"
    with pytest.raises(tacit.InputError) as caught:
        party.check(frame.with_columns(pl.Series("arm", arms)))
    assert caught.value.places == [tacit.Place("polars DataFrame", 7, "arm")]
    assert 'polars DataFrame, row 7, column "arm": "treated"' in str(caught.value)
    with pytest.raises(tacit.InputError, match='no column "arm"; it has: id, arms') as caught:
        party.check(frame.rename({"arm": "arms"}))
    assert (caught.value.party, caught.value.places) == ("media", [tacit.Place("polars DataFrame", 1, "arm")])
    with pytest.raises(tacit.InputError, match="Binary.* is not read") as caught:
        party.check(frame.with_columns(pl.col("arm").cast(pl.Binary)))
    assert caught.value.places == [tacit.Place("polars DataFrame", 1, "arm")]


def test_a_reader_gives_its_rows_once(world: World, frame):
    party = world.parties(world.study(), "once")["media"]
    reader = frame.to_arrow().to_reader()
    party.check(reader)
    with pytest.raises(tacit.InputError, match="gives its rows once"):
        party.check(reader)
    with pytest.raises(tacit.InputError, match="it has 0 rows"):
        party.check(frame[:0])


def test_what_has_no_rows_is_told(world: World, frame):
    party = world.parties(world.study(), "none")["media"]
    with pytest.raises(tacit.InputError, match=r"a polars LazyFrame; .*\.collect\(\)"):
        party.check(frame.lazy())
    for nothing in (7, object()):
        with pytest.raises(tacit.InputError, match=r"^data is no table .*anything with the Arrow C stream"):
            party.check(nothing)


def test_what_is_near_to_a_table_is_told_what_to_hand_over(world: World, frame):
    study = world.study()
    party = world.parties(study, "near")["media"]
    pandas = frame.to_pandas()
    near = [
        (pandas["id"], r"a pandas Series; .*\(df\), or series\.to_frame\(\)"),
        (pandas.index, r"a pandas .*Index; .*to_frame\(\)"),
        (frame["id"], r"a polars Series; .*series\.to_frame\(\)"),
        (frame.to_arrow()["id"], r"a pyarrow ChunkedArray; .*pyarrow\.table\("),
        (pandas.to_numpy(), r"a numpy ndarray; .*columns=\["),
        ({"id": [1]}, r"a dict; .*pandas\.DataFrame\(data\)"),
        ([{"id": 1}], r"a list; .*from_pylist"),
        ([], r"a list"),
    ]
    for nothing, said in near:
        for call in (party.check, party.run, party.match):
            with pytest.raises(tacit.InputError, match=rf"^data is no table of rows but {said}"):
                call(nothing)
    with pytest.raises(tacit.InputError, match=r"^data\['shop'\] is no table .*to_frame\(\)"):
        tacit.simulate(study, {"media": frame, "shop": pandas["id"]})


def test_a_frame_whose_library_lacks_another_names_it(world: World, frame, monkeypatch):
    pandas = frame.to_pandas()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(tacit.InputError, match=r"^pandas DataFrame: .*by pyarrow, .*: pip install pyarrow$"):
        world.parties(world.study(), "bare")["media"].check(pandas)


def test_a_failure_of_the_producer_is_an_error(world: World, frame):
    table = frame.to_arrow().combine_chunks()

    def rows():
        yield from table.to_batches(max_chunksize=500)[:2]
        raise ValueError("the source is gone")

    with pytest.raises(tacit.InputError, match=r"after row 1000: .*the source is gone"):
        world.parties(world.study(), "producer")["media"].check(
            pa.RecordBatchReader.from_batches(table.schema, rows())
        )


def test_nulls_and_dates(world: World):
    """A row without an opportunity is left out, whatever stands for nothing."""
    study = world.study().time(origin="2026-01-01", unit="day", span=365)
    ids = [f"p{i}" for i in range(3000)]
    day = datetime.date(2026, 3, 1)
    rows = {
        "id": ids,
        "arm": ["test", "control"] * 1500,
        "seen": [day if i % 3 else None for i in range(3000)],
    }
    party = world.parties(study, "dates")["media"]
    for made in (pl.DataFrame(rows), pa.table(rows), pl.DataFrame(rows).to_pandas()):
        assert party.check(made).inputs.rows_kept == 2000


def test_simulate_is_the_commands(world: World, frame, command, tmp_path):
    study = world.study()
    shown = tacit.simulate(study, {"media": frame, "shop": world.files["shop"]}, draws=100)
    path = study.save(tmp_path / "study.toml")
    data = [word for name, file in world.files.items() for word in ("--data", f"{name}={file}")]
    expected = command("simulate", path, *data, "--draws", 100)
    assert shown.runs.to_dicts() == expected["runs"] and shown.hash == expected["hash"]
    with pytest.raises(tacit.InputError, match="names no such party"):
        tacit.simulate(study, {"medium": frame})
    with pytest.raises(tacit.InputError, match="no file of shop"):
        tacit.simulate(study, {"media": frame})


PEOPLE = [f"p{i}" for i in range(50)]
PARTIES = {
    "media": "tacit1:00112233445566778899aabbccddeeff",
    "shop": "tacit1:ffeeddccbbaa99887766554433221100",
}


def counts(rows) -> list[int]:
    """People by arm without noise, of 50 in a frame of the media's."""
    columns = {"arm": tacit.u2["media"].labels("a", "b").missing(), "spent": tacit.u8["shop"]}
    asked = tacit.Ask("media", rho=2).by("arm").count()
    match = tacit.Match("pid", identifiers=["id"])
    study = tacit.Study.program("arms", columns, asked, parties=PARTIES, match=match)
    shop = pa.table({"id": PEOPLE, "spent": [1] * 50})
    shown = tacit.simulate(study, {"media": rows, "shop": shop}, draws=10).to_dict()
    exact = {answer["label"]: answer["exact"] for answer in answers(shown["runs"])}
    return [exact[f"rows, arm = {arm}"] for arm in "ab"]


def answers(of) -> list[dict]:
    """Everything in a report that has a label and an exact number."""
    if isinstance(of, dict):
        own = [of] if "label" in of and "exact" in of else []
        return own + answers(list(of.values()))
    return [one for part in of for one in answers(part)] if isinstance(of, list) else []


def as_text(cells: list[bytes]) -> pa.Array:
    """Bytes that say of themselves that they are text, as those of a file whose reader believes it."""
    return pa.array(cells, pa.binary()).view(pa.string())


@pytest.mark.parametrize("broken", ["id", "arm"])
@pytest.mark.parametrize("end", [b"\xf0", b"\xff\xfe"])
def test_text_that_is_none_is_refused(broken, end):
    cells = {"id": [one.encode() for one in PEOPLE], "arm": [b"a"] * 50}
    cells[broken][49] += end
    table = pa.table({name: as_text(of) for name, of in cells.items()})
    packed = table.set_column(1, "arm", table["arm"].dictionary_encode())
    for form, name, rows in (
        (table, "pyarrow Table", "1 to 50"),
        (packed, "pyarrow Table", "1 to 50"),
        (table.to_reader(max_chunksize=20), "pyarrow RecordBatchReader", "41 to 50"),
        (table.to_pandas(types_mapper=pd.ArrowDtype), "pandas DataFrame", "1 to 50"),
    ):
        with pytest.raises(tacit.InputError, match="this is no valid Arrow data") as caught:
            counts(form)
        assert f'{name}, column "{broken}", in rows {rows}: ' in str(caught.value)


def test_a_column_that_nobody_wants_is_not_looked_at():
    table = pa.table({"id": PEOPLE, "arm": ["a"] * 50, "note": as_text([b"\xf0"] * 50)})
    assert counts(table) == [50, 0]


def test_keys_beyond_their_dictionary_are_refused():
    keys = pa.array([0] * 49 + [7], pa.int8())
    arm = pa.DictionaryArray.from_arrays(keys, pa.array(["a"]), safe=False)
    with pytest.raises(tacit.InputError, match='column "arm", in rows 1 to 50: this is no valid Arrow data'):
        counts(pa.table({"id": PEOPLE, "arm": arm}))


def test_a_dictionary_of_nulls_alone_has_no_values():
    empty = pa.DictionaryArray.from_arrays(pa.array([None] * 50, pa.int8()), pa.array([], pa.string()))
    frames = (
        pa.table({"id": PEOPLE, "arm": empty}),
        pd.DataFrame({"id": PEOPLE, "arm": pd.Categorical([None] * 50)}),
    )
    for frame in frames:
        assert counts(frame) == [0, 0]
    then = pa.DictionaryArray.from_arrays(pa.array([0] * 30, pa.int8()), pa.array(["b"]))
    first = pa.table({"id": PEOPLE[:20], "arm": empty[:20]})
    assert counts(pa.concat_tables([first, pa.table({"id": PEOPLE[20:], "arm": then})])) == [0, 30]


def test_a_struct_that_is_null_as_a_whole_is_refused():
    columns = [pa.array(PEOPLE), pa.array(["a"] * 50)]
    mask = pa.array([i == 3 for i in range(50)])
    rows = pa.StructArray.from_arrays(columns, names=["id", "arm"], mask=mask)
    with pytest.raises(tacit.InputError, match="1 of the structs here are null as a whole"):
        counts(pa.chunked_array([rows]))
    assert counts(pa.chunked_array([rows[4:]])) == [46, 0]
    with pytest.raises(tacit.InputError, match=r"is one column: hand over the whole table"):
        counts(pa.chunked_array([PEOPLE]))


def test_times_without_a_zone_are_of_the_one_that_is_said(world: World, frame):
    walls = frame.to_pandas().assign(seen=lambda f: pd.to_datetime(f["seen"], unit="s"))
    party = world.parties(world.study(), "walls")["media"]
    with pytest.raises(tacit.InputError, match="is a date-time without offset: add zone"):
        party.check(walls)
    said = {"media": {"zone": "Z"}, "shop": {}}
    kept = world.parties(world.study(), "walls", settings=said)["media"].check(walls).inputs.rows_kept
    assert kept == len(frame)


def test_a_column_of_mixed_types_is_told_in_one_line(world: World):
    party = world.parties(world.study(), "mixed")["media"]
    frame = pd.DataFrame({"id": pd.Series(["a", 1], dtype="object"), "arm": ["test", "control"]})
    with pytest.raises(tacit.InputError, match=r"pandas DataFrame: .*column id .*astype") as caught:
        party.check(frame)
    assert "\n" not in str(caught.value)


def test_buffers_are_not_copied_first(world: World, tmp_path):
    """100 MB of a column that the study does not read, in one batch, take no memory a second time."""
    program = tmp_path / "child.py"
    program.write_text(
        f"""
import pyarrow, pyarrow.csv, tacit
table = pyarrow.csv.read_csv({str(world.files["media"])!r})
party = tacit.Party(tacit.Study({world.study().toml()!r}), as_="media", listen="127.0.0.1:0",
    identity={str(world.keys["media"].path)!r}, ledger={str(tmp_path / "ledger")!r}, lineage="x")
party.check(table)
wide = pyarrow.array([chr(97 + at % 26) * 25_000 for at in range(len(table))])
table = table.append_column("more", wide)
assert table.nbytes > 100_000_000 and len(table.to_batches()) == 1

def memory(of):
    with open("/proc/self/status") as told:
        return next(int(line.split()[1]) for line in told if line.startswith(of)) * 1024

# The peak from here on.
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
before = memory("VmRSS")
party.check(table)
print(memory("VmHWM") - before)
"""
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 50_000_000, done.stdout
