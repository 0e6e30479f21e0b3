"""The reference is that of the sources."""

import sys
from pathlib import Path

import tacit

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import reference


def test_the_reference_is_current():
    assert reference.PAGE.read_text() == reference.page(), "run: python3 python/tools/reference.py"


def test_the_reference_has_everything():
    page = reference.page()
    for name in tacit.__all__:
        # Widths are named where their type is.
        if name not in ("__commit__", "__version__", "generate") and not isinstance(getattr(tacit, name), tacit.Type):
            assert f"### `tacit.{name}`" in page, name
    assert "### `tacit.generate.lift`" in page
