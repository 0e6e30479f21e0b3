"""Reports and tables: what calls return."""

from __future__ import annotations

import copy
import html
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, overload

from . import _tacit
from ._errors import InputError
from ._files import read_text
from ._words import python_words

if TYPE_CHECKING:
    from fractions import Fraction

    import pandas
    import polars
    import pyarrow


class Fields(Mapping[str, Any]):
    """A JSON object whose fields are attributes, too: ``report.privacy.rho`` is ``report["privacy"]["rho"]``.

    Objects in it are Fields, and lists of objects are tables.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = dict(fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            known = ", ".join(self._fields)
            raise AttributeError(f"no field {name!r}; there are: {known}") from None

    def __getitem__(self, name: str) -> Any:
        return _wrapped(self._fields[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._fields]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._fields)})"

    def _repr_html_(self) -> str:
        told = ({"field": name, "value": of} for name, of in self._fields.items())
        return Table(list(told), ["field", "value"])._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """The JSON as dictionaries and lists of its own."""
        copied: dict[str, Any] = json.loads(json.dumps(self._fields))
        return copied


class Printed(Fields):
    """Fields that a command prints: ``text`` is what it prints, and ``print`` and a notebook show it."""

    def __init__(self, printed: tuple[str, str]) -> None:
        super().__init__(json.loads(printed[0]))
        self._text = python_words(printed[1])

    @property
    def text(self) -> str:
        """What the command prints, in the words of this package."""
        return self._text

    def _repr_html_(self) -> str:
        return preformatted(self._text)

    def __str__(self) -> str:
        return self._text


class PublicResult(Fields):
    """What may be passed on of a report: the JSON of ``tacit report --public``. A notebook shows its page."""

    def __init__(self, native: tuple[str, str]) -> None:
        super().__init__(json.loads(native[0]))
        self._html = native[1]

    @property
    def html(self) -> str:
        """The page that the command writes, whole."""
        return self._html

    def _repr_html_(self) -> str:
        return _framed(self._html)


def preformatted(text: str) -> str:
    """Text of a terminal, for a notebook."""
    return f"<pre>{html.escape(text)}</pre>"


def _framed(page: str) -> str:
    """A page of its own: its style is none of the notebook's."""
    return f'<iframe srcdoc="{html.escape(page)}" sandbox style="width:100%;height:40em;border:0"></iframe>'


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Fields(value)
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return Table(value)
    return value


class Table(Sequence[Fields]):
    """Rows with named columns. pandas, polars, pyarrow and DuckDB read it by the Arrow C stream."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> None:
        self._rows = [dict(row) for row in rows]
        found = dict.fromkeys(name for row in self._rows for name in row)
        self.columns: list[str] = list(columns) if columns is not None else list(found)
        """Names of the columns, in their order."""

    @overload
    def __getitem__(self, at: int) -> Fields: ...
    @overload
    def __getitem__(self, at: slice) -> Table: ...
    def __getitem__(self, at: int | slice) -> Fields | Table:
        return Table(self._rows[at], self.columns) if isinstance(at, slice) else Fields(self._rows[at])

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and (self._rows, self.columns) == (other._rows, other.columns)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        cell = "".join
        head = cell(f"<th>{html.escape(name)}</th>" for name in self.columns)
        shown = (
            cell(f"<td>{html.escape(_cell(row.get(name)))}</td>" for name in self.columns)
            for row in self._rows
        )
        return f"<table><tr>{head}</tr>{cell(f'<tr>{row}</tr>' for row in shown)}</table>"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._batches().__arrow_c_stream__(requested_schema)

    def _batches(self) -> _tacit.Batches:
        rows = self._rows
        for name in self.columns:
            if _as_text([row.get(name) for row in rows]):
                rows = [row if row.get(name) is None else {**row, name: str(row[name])} for row in rows]
        return _tacit.Batches.of_rows(self.columns, json.dumps(rows, default=float))

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return copy.deepcopy(self._rows)

    def to_arrow(self) -> pyarrow.Table:
        """As a table of pyarrow, which must be installed."""
        table: pyarrow.Table = _to_arrow(self._batches())
        return table

    def to_pandas(self) -> pandas.DataFrame:
        """As a frame of pandas, which must be installed."""
        frame: pandas.DataFrame = _to_pandas(self._batches())
        return frame

    def to_polars(self) -> polars.DataFrame:
        """As a frame of polars, which must be installed."""
        frame: polars.DataFrame = _to_polars(self._batches())
        return frame


class Output(Fields):
    """A revealed value of a program. It is in parts of its unit: 14928 of 1/100 EUR is 149.28 EUR."""

    @property
    def label(self) -> str:
        """The program's label."""
        return str(self._fields["label"])

    @property
    def value(self) -> Union[int, Fraction]:
        """The value, exactly: it may have 128 bits."""
        value: Union[int, Fraction] = self._fields["value"]
        return value

    @property
    def sigma(self) -> float | None:
        """Standard deviation of the noise added to it; None where none was added to it itself."""
        sigma: float | None = self._fields.get("sigma")
        return sigma

    @property
    def unit(self) -> str:
        """The unit of the columns that it is made of; empty where none says one, and of products and
        quotients."""
        return str(self._fields.get("unit", ""))

    @property
    def scale(self) -> int:
        """How many parts make one unit: ``value`` and ``sigma`` are in parts, ``value / scale`` in units."""
        return int(self._fields.get("scale", 1))

    def __repr__(self) -> str:
        parts = f"1/{self.scale}" if self.scale > 1 else ""
        counted = " ".join(word for word in (parts, self.unit) if word)
        of = f" of {counted}" if counted else ""
        noise = "" if self.sigma is None else f", sigma={self.sigma:g}"
        return f"Output({self.label!r}, value={self.value}{of}{noise})"


class Outputs(Table):
    """Revealed values of a program, a row each, with values and noise as numbers."""

    @overload
    def __getitem__(self, at: int) -> Output: ...
    @overload
    def __getitem__(self, at: slice) -> Outputs: ...
    def __getitem__(self, at: int | slice) -> Output | Outputs:
        return Outputs(self._rows[at], self.columns) if isinstance(at, slice) else Output(self._rows[at])

    def __iter__(self) -> Iterator[Output]:
        return (Output(row) for row in self._rows)


def _output(row: Mapping[str, Any]) -> dict[str, Any]:
    """An output of a report, whose JSON has numbers as text, for they have more digits than a double."""
    from fractions import Fraction

    value, sigma = Fraction(row["value"]), row.get("sigma")
    whole = value.numerator if value.denominator == 1 else value
    counted = {"unit": row.get("unit", ""), "scale": row.get("scale", 1)}
    return {**row, "value": whole, **({} if sigma is None else {"sigma": float(sigma)}), **counted}


def _as_text(cells: Sequence[Any]) -> bool:
    """Whether a column has a whole number that its type would round: no double has it, and no 64 bits do."""
    whole = [cell for cell in cells if isinstance(cell, int)]
    if not any(abs(cell) > 2**53 for cell in whole):
        return False
    others = any(cell is not None and not isinstance(cell, int) for cell in cells)
    return others or any(not -(2**63) <= cell < 2**63 for cell in whole)


def _cell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)


def _to_arrow(rows: Any) -> Any:
    import pyarrow as pa

    return pa.table(rows)


def _to_pandas(rows: Any) -> Any:
    import pandas as pd

    if hasattr(pd.DataFrame, "from_arrow"):
        return pd.DataFrame.from_arrow(rows)
    return _to_arrow(rows).to_pandas()


def _to_polars(rows: Any) -> Any:
    import polars as pl

    return pl.DataFrame(rows)


class Report(Fields):
    """What one party gets: the JSON of ``tacit run --json``, its fields as attributes (``docs/cli.md``).

    It shows itself in a notebook as the page that the command writes.
    """

    def __init__(self, native: _tacit.Report) -> None:
        super().__init__(json.loads(native.json()))
        self._native = native

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Report:
        """The report of a ``report.json``. Raises InputError, also where it holds several: see Reports."""
        reports = Reports.load(path)
        if len(reports) != 1:
            text = f"{os.fspath(path)} holds {len(reports)} reports: use tacit.Reports.load"
            raise InputError(text, kind="input", code=2)
        return reports[0]

    @property
    def estimate(self) -> Any:
        """Of a lift study the estimate over everybody, in units of value per person: ``lift``, ``interval``,
        ``standard_error``, ``p_value``; None where it was not shown."""
        return self._overall.get("estimate")

    @property
    def interval(self) -> Any:
        """The interval of the estimate, its two ends in units of value per person; None without one."""
        estimate = self.estimate
        return None if estimate is None else tuple(estimate["interval"])

    @property
    def counts(self) -> Table:
        """Released numbers of a lift study, of all its cells: family, label, quantity, arm, value, sigma."""
        cells = self._fields["view"].get("cells", [])
        return Table(
            [
                {"family": cell["family"], "label": cell["label"], **count}
                for cell in cells
                for count in cell["counts"]
            ],
            ["family", "label", "quantity", "arm", "value", "sigma", "derived"],
        )

    @property
    def outputs(self) -> Outputs:
        """Revealed values of a program: label, value, sigma and how it came about, and in which unit and how
        many parts of it (``scale``) value and sigma are."""
        return Outputs([_output(row) for row in self._fields["view"].get("outputs", [])])

    @property
    def numbers(self) -> Table:
        """Every number of the report, a row each: what ``tacit report --csv`` writes."""
        columns, rows = self._native.numbers()
        return Table(json.loads(rows), columns)

    @property
    def public_result(self) -> PublicResult:
        """What may be passed on: the same at all parties. Raises InputError where nothing is public."""
        return PublicResult(self._native.public())

    @property
    def text(self) -> str:
        """What ``tacit run`` prints."""
        return self._native.text()

    @property
    def html(self) -> str:
        """The page that ``tacit run`` writes, whole."""
        return self._native.html()

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes ``report.json`` and ``report.html`` into a folder, made if need be. Raises FileError."""
        self._native.save(folder)
        return Path(folder)

    def plot(self, ax: Any = None, *, group: str | None = None) -> Any:
        """Axes of matplotlib, which must be installed, with numbers and their intervals: estimates of a lift
        study's cells, what a program derives, or its noised outputs with what noise alone leaves.

        Numbers of a program are in groups as on its page (what labels have before their first comma; of
        outputs the unit). ``group`` names one of several; without it the axes of all are returned as a list.
        Raises InputError where there is no such number or group, or no matplotlib.
        """
        from ._plot import plotted

        return plotted(self, ax, group)

    @property
    def _overall(self) -> Any:
        cells = self._fields["view"].get("cells", [])
        return Fields(cells[0]) if cells else {}

    def _repr_html_(self) -> str:
        return _framed(self.html)

    def __repr__(self) -> str:
        return f"Report({self['study']['name']!r}, party={self['party']!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _report_of, (self._native.json(),)


class Reports(Sequence[Report]):
    """Several reports: of the publisher, one with each advertiser."""

    def __init__(self, reports: Sequence[Report]) -> None:
        self._reports = list(reports)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Reports:
        """All reports of a ``report.json``. Raises InputError where it is none."""
        text = read_text(path)
        return Reports([Report(one) for one in _tacit.Report.all_of(text)])

    @overload
    def __getitem__(self, at: int) -> Report: ...
    @overload
    def __getitem__(self, at: slice) -> Reports: ...
    def __getitem__(self, at: int | slice) -> Report | Reports:
        return Reports(self._reports[at]) if isinstance(at, slice) else self._reports[at]

    def __len__(self) -> int:
        return len(self._reports)

    def _repr_html_(self) -> str:
        return "".join(report._repr_html_() for report in self._reports)

    def __repr__(self) -> str:
        return f"Reports({self._reports!r})"


def _report_of(text: str) -> Report:
    return Report(_tacit.Report.all_of(text)[0])
