"""Rows of data frames, for a call that reads them once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Protocol, Union

from . import _tacit
from ._errors import InputError


class ArrowStream(Protocol):
    """Anything with the Arrow C stream: frames of pandas, polars, tables of pyarrow, relations of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


Data = Union[str, "os.PathLike[str]", ArrowStream, Iterable[ArrowStream]]
"""A path, a folder, a pattern, a URL; or rows: anything with the Arrow C stream or ``to_arrow()``."""


def given(data: Data | None, stop: _tacit.Stop, argument: str = "data") -> str | _tacit.Rows | None:
    """What a call is given: a path as it is, or the rows of a data frame, taken over. ``argument`` is what
    the caller calls it."""
    if data is None:
        return None
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data)
    name = _name(data)
    rows = data
    try:
        if not hasattr(rows, "__arrow_c_stream__") and hasattr(rows, "to_arrow"):
            rows = rows.to_arrow()
        if name == "polars DataFrame":
            rows = _with_types(rows)
        if not hasattr(rows, "__arrow_c_stream__") and _is_batches(rows):
            rows = _joined(rows)
        stream = rows.__arrow_c_stream__() if hasattr(rows, "__arrow_c_stream__") else None
    except ImportError as error:
        raise _no_library(name, error) from error
    except (ValueError, TypeError, NotImplementedError) as error:
        # Of pyarrow: ArrowInvalid, ArrowTypeError, ArrowNotImplementedError.
        raise _no_columns(name, error) from error
    if stream is None:
        raise _no_rows(data, name, argument)
    try:
        return _tacit.Rows(name, _bytes(rows), stream, stop)
    except InputError as error:
        # One column has a stream, too, of numbers where that of a table is of structs.
        if "rows are structs of columns" not in str(error):
            raise
        raise _no_rows(data, name, argument) from None


def _with_types(frame: Any) -> Any:
    """A frame of polars whose columns of nothing are text: as they are they have a buffer, and Arrow's none."""
    import polars as pl

    empty = [name for name, kind in frame.schema.items() if kind == pl.Null]
    return frame.with_columns(pl.col(empty).cast(pl.String)) if empty else frame


def _no_library(name: str, error: ImportError) -> InputError:
    """A frame that another library hands over, which is not installed."""
    library = (error.name or "pyarrow").partition(".")[0]
    why = f"its rows are handed over by {library}, which is not installed"
    return InputError(f"{name}: {why}: pip install {library}", kind="input", code=2, hint=f"pip install {library}")


def _no_columns(name: str, error: Exception) -> InputError:
    """A frame whose library cannot hand it over: a column of mixed types."""
    why = " ".join(str(one) for one in error.args) or type(error).__name__
    hint = 'give each column one type: df.astype({"COLUMN": "string"}) of pandas, or leave the column out'
    return InputError(f"{name}: {why}; {hint}", kind="input", code=2, hint=hint)


def _name(data: Any) -> str:
    """What messages call it: ``polars DataFrame``."""
    kind = type(data)
    library = kind.__module__.partition(".")[0].lstrip("_")
    return kind.__qualname__ if library == "builtins" else f"{library} {kind.__qualname__}"


def _bytes(rows: Any) -> int | None:
    """About how many bytes it has, where it says so without reading itself."""
    for name in ("nbytes", "estimated_size"):
        size = getattr(rows, name, None)
        try:
            size = size() if callable(size) else size
        except Exception:
            continue
        if isinstance(size, int):
            return size
    usage = getattr(rows, "memory_usage", None)
    return int(usage(index=False).sum()) if callable(usage) else None


def _is_batches(rows: Any) -> bool:
    """A list of batches, or an iterator of them; but a table of names by column is none."""
    return isinstance(rows, Iterable) and not isinstance(rows, (dict, bytes))


def _joined(batches: Iterable[Any]) -> Any:
    found = list(batches)
    if not found or not all(hasattr(one, "__arrow_c_stream__") or hasattr(one, "schema") for one in found):
        return batches
    try:
        import pyarrow as pa
    except ImportError:
        raise InputError(
            "several batches are put together by pyarrow, which is not installed: pip install pyarrow, or "
            "hand over one table",
            kind="input",
            code=2,
        ) from None
    tables = [
        pa.Table.from_batches([one]) if isinstance(one, pa.RecordBatch) else pa.table(one) for one in found
    ]
    return pa.concat_tables(tables)


_TABLE = (
    "hand over a path, or anything with the Arrow C stream: a frame of pandas or polars, a table of pyarrow, "
    "a relation of DuckDB"
)
_LAZY = "it is not computed yet: hand over .collect(), or write it with .sink_parquet() and name the file"
_SERIES = "it is one column: hand over the whole frame (df), or series.to_frame() where it is all there is"
_ARRAY = 'it is one column: hand over the whole table, or pyarrow.table({"NAME": array})'
_DICTIONARY = "hand over a table of it: pandas.DataFrame(data), polars.DataFrame(data) or pyarrow.table(data)"
_UNNAMED = "its columns have no names: hand over pandas.DataFrame(array, columns=[..])"
_LIST = "hand over a table of it: pandas.DataFrame(rows), or of dictionaries pyarrow.Table.from_pylist(rows)"


def _instead(data: Any) -> str | None:
    """What to do with something that is near to a table, and none."""
    kind = type(data)
    if hasattr(data, "collect"):
        return _LAZY
    if hasattr(data, "to_frame"):
        return _SERIES
    if isinstance(data, dict):
        return _DICTIONARY
    if kind.__module__.partition(".")[0] == "pyarrow" and "Array" in kind.__qualname__:
        return _ARRAY
    if hasattr(data, "__array__"):
        return _UNNAMED
    return _LIST if isinstance(data, (list, tuple)) else None


def _no_rows(data: Any, name: str, argument: str) -> InputError:
    hint = _instead(data) or _TABLE
    text = f"{argument} is no table of rows but a {name}; {hint}"
    return InputError(text, kind="input", code=2, hint=hint)
