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


def given(data: Data | None, stop: _tacit.Stop) -> str | _tacit.Rows | None:
    """What a call is given: a path as it is, or the rows of a data frame, taken over."""
    if data is None:
        return None
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data)
    name = _name(data)
    rows = data
    try:
        if not hasattr(rows, "__arrow_c_stream__") and hasattr(rows, "to_arrow"):
            rows = rows.to_arrow()
        if not hasattr(rows, "__arrow_c_stream__") and _is_batches(rows):
            rows = _joined(rows)
        stream = rows.__arrow_c_stream__() if hasattr(rows, "__arrow_c_stream__") else None
    except (ValueError, TypeError, NotImplementedError) as error:
        # Of pyarrow: ArrowInvalid, ArrowTypeError, ArrowNotImplementedError.
        raise _no_columns(name, error) from error
    if stream is None:
        raise _no_rows(data, name)
    return _tacit.Rows(name, _bytes(rows), stream, stop)


def _no_columns(name: str, error: Exception) -> InputError:
    """A frame whose library cannot hand it over: a column of mixed types."""
    why = " ".join(str(one) for one in error.args) or type(error).__name__
    hint = 'give each column one type: df.astype({"COLUMN": "string"}) of pandas, or leave the column out'
    return InputError(f"{name}: {why}; {hint}", kind="input", code=2, hint=hint)


def _name(data: Any) -> str:
    """What messages call it: ``polars DataFrame``."""
    kind = type(data)
    return f"{kind.__module__.partition('.')[0].lstrip('_')} {kind.__qualname__}"


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
    try:
        import pyarrow as pa
    except ImportError:
        raise InputError(
            "several batches are put together by pyarrow, which is not installed: pip install pyarrow, or "
            "hand over one table",
            kind="input",
            code=2,
        ) from None
    found = list(batches)
    if not found or not all(hasattr(one, "__arrow_c_stream__") or hasattr(one, "schema") for one in found):
        return batches
    tables = [
        pa.Table.from_batches([one]) if isinstance(one, pa.RecordBatch) else pa.table(one) for one in found
    ]
    return pa.concat_tables(tables)


def _no_rows(data: Any, name: str) -> InputError:
    lazy = hasattr(data, "collect")
    hint = (
        "it is not computed yet: hand over .collect(), or write it with .sink_parquet() and name the file"
        if lazy
        else "hand over a path, or anything with the Arrow C stream: a frame of pandas or polars, a table of "
        "pyarrow, a relation of DuckDB"
    )
    return InputError(f"{name} has no rows to read; {hint}", kind="input", code=2, hint=hint)
