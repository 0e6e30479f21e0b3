"""Types: of the calls, of the package, and of the binary below it."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import tacit

HERE = Path(__file__).parent
HOME = Path(tacit.__file__).parents[1]


def fine(*words: object, **how: object) -> str:
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, **how)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_calls_are_typed_and_run(tmp_path):
    settings = (
        "--config-file",
        HERE.parent / "pyproject.toml",
        "--strict",
        "--cache-dir",
        tmp_path / "cache",
    )
    fine("-m", "mypy", *settings, HERE / "calls.py", cwd=HERE)
    assert "True" in fine(HERE / "calls.py", tmp_path)


def test_the_package_is_typed(tmp_path):
    installed = Path(tacit.__file__).parent
    settings = (
        "--config-file",
        HERE.parent / "pyproject.toml",
        "--strict",
        "--cache-dir",
        tmp_path / "cache",
    )
    fine("-m", "mypy", *settings, "-p", "tacit", cwd=tmp_path)
    assert (installed / "py.typed").exists()


def test_the_stub_says_what_the_binary_has(tmp_path):
    settings = ("--mypy-config-file", HERE.parent / "pyproject.toml")
    fine("-m", "mypy.stubtest", *settings, "tacit._tacit", cwd=tmp_path)


def test_the_wheel_has_the_licences_of_what_it_links():
    texts = [file for file in metadata.files("tacit") or [] if file.match("*.dist-info/licenses/COPYRIGHT")]
    assert len(texts) == 1
    text = texts[0].read_text()
    assert all(name in text for name in ("pyo3", "arrow-array", "rustls", "Apache License", "MIT"))


def test_an_extra_brings_all_that_its_frames_need():
    """A frame of pandas hands its rows over by pyarrow, which pandas does not require."""
    brought = [one for one in metadata.requires("tacit") or [] if "extra == 'pandas'" in one.replace('"', "'")]
    assert {re.split(r"[<>=;\s]", one)[0] for one in brought} == {"pandas", "pyarrow"}


def test_the_tests_need_the_wheel_and_an_extra():
    """What the pinned list of tools has is what `pip install "tacit-*.whl[test]"` brings, and nothing else."""
    pinned = re.findall(r"^([\w-]+)==", (HERE / "requirements.txt").read_text(), re.M)
    brought = [one for one in metadata.requires("tacit") or [] if "extra == 'test'" in one.replace('"', "'")]
    assert {re.split(r"[<>=;\s]", one)[0] for one in brought} == set(pinned)


def test_without_a_command_there_is_one_error(tmp_path):
    environment = {**os.environ, "TACIT_COMMAND": str(tmp_path / "none")}
    words = [sys.executable, "-m", "pytest", str(HERE / "test_sql.py"), "-p", "no:cacheprovider"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    told = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line.upper()]
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and len(told) == 1, done.stdout + done.stderr
    assert "`make build`" in told[0] and str(tmp_path / "none") in told[0]


def test_the_driver_of_a_cluster_is_typed(tmp_path):
    """It is run nowhere but there: a word that `tacit.Ray` does not have would be found by nobody else."""
    driver = HERE.parents[1] / "docs/deploy/kuberay/driver.py"
    settings = ("--config-file", HERE.parent / "pyproject.toml", "--strict", "--cache-dir", tmp_path / "cache")
    fine("-m", "mypy", *settings, driver, cwd=tmp_path)
    wrong = tmp_path / "driver.py"
    wrong.write_text(driver.read_text().replace("workers=int(", "worker=int("))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *map(str, settings), str(wrong)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and '"worker"' in done.stdout, done.stdout


def test_an_import_brings_nothing_heavy():
    """Of the standard library and of what data frames and queries bring: each is imported where it is used."""
    heavy = ["asyncio", "ssl", "socket", "tempfile", "subprocess"]
    heavy += ["pandas", "polars", "pyarrow", "sqlglot", "ray"]
    program = f"import sys, tacit; print([name for name in {heavy} if name in sys.modules])"
    # Without what an environment imports by itself.
    assert fine("-I", "-S", "-c", f"import sys; sys.path.append({str(HOME)!r}); {program}").strip() == "[]"


def test_everything_public_is_documented():
    missing = []
    for name in tacit.__all__:
        of = getattr(tacit, name)
        if isinstance(of, type):
            own = {part: one for part, one in vars(of).items() if not part.startswith("_")}
            called = {
                part
                for part, one in own.items()
                if callable(one) or isinstance(one, (property, staticmethod))
            }
            missing += [f"{name}.{part}" for part in called if not getattr(of, part).__doc__]
        if name not in ("__commit__", "__version__") and not of.__doc__:
            missing.append(name)
    assert not missing


def test_calls_say_what_they_raise():
    calls = {
        tacit.Ask: "TraceError",
        tacit.Release: "TraceError",
        tacit.Service: "TacitError",
        tacit.LiftStudy: "InputError",
    }
    for of, error in calls.items():
        assert error in of.__doc__ or "InputError" in of.__doc__, of
    for of in (tacit.Ask, tacit.Release, tacit.Service):
        own = {name: one.__doc__ for name, one in vars(of).items() if name[0] != "_" and callable(one)}
        assert len(own) >= 4 and not [name for name, text in own.items() if calls[of] not in text], of
    for name in ("check", "run", "run_all", "match", "start", "start_all", "load"):
        assert "Raises" in getattr(tacit.Party, name).__doc__, name
