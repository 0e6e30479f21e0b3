"""Plots of reports by matplotlib. The page's own pictures are in ``Report.html``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ._errors import InputError

_NORMAL = 1.959964
"""Deviations to either side of 95 %."""
_RATIOS = ("ratio", "odds-ratio")


class Row(NamedTuple):
    """A number with its intervals: two of a number needed to treat whose difference may be none."""

    name: str
    value: float | None
    intervals: Sequence[tuple[float | None, float | None]]
    """Ends; None where there is no bound."""


@dataclass
class Group:
    """Numbers of one axis."""

    name: str
    axis: str
    rows: list[Row]
    nothing: float | None
    """Where no difference is: 0, of ratios 1; None of what compares nothing."""


def plotted(report: Any, ax: Any, name: str | None) -> Any:
    """Each number with its interval, from top to bottom: axes of each group, one alone or a list."""
    groups = {group.name: group for group in _groups(report.to_dict()["view"])}
    if not groups:
        raise _wrong("this report has no number with an interval; report.numbers has what it shows")
    if name is not None and name not in groups:
        raise _wrong(f"this report has no group {name!r}; there are: {_named(groups)}")
    drawn = list(groups.values()) if name is None else [groups[name]]
    if ax is not None and len(drawn) > 1:
        raise _wrong(f"one ax takes one group of numbers, and there are: {_named(groups)}; say group=")
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise _wrong("plot needs the package matplotlib: pip install 'matplotlib>=3.8'") from error
    axes = [ax]
    if ax is None:
        heights = [1.2 + 0.4 * len(group.rows) for group in drawn]
        figure = plt.figure(figsize=(7, sum(heights)), layout="constrained")
        axes = list(figure.subplots(len(drawn), height_ratios=heights, squeeze=False)[:, 0])
    title = report["study"]["title"]
    for of, group in zip(axes, drawn, strict=True):
        _draw(of, group)
        of.set_title(f"{title}: {group.name}" if len(groups) > 1 else title)
    return axes[0] if len(drawn) == 1 else axes


def _wrong(text: str) -> InputError:
    return InputError(text, kind="input", code=2)


def _named(groups: dict[str, Group]) -> str:
    return ", ".join(map(repr, groups))


def _groups(view: dict[str, Any]) -> list[Group]:
    if "cells" in view:
        rows = [
            Row(cell["label"] or cell["family"], one["lift"], [tuple(one["interval"])])
            for cell in view["cells"]
            if (one := cell["estimate"]) is not None
        ]
        axis = f"difference, {view.get('unit') or 'events'} per person"
        axis = f"{axis}, with {view['confidence']:.0%} intervals"
        return [Group("estimates", axis, rows, nothing=0.0)] if rows else []
    return _of_derived(view.get("derived", [])) or _of_outputs(view.get("outputs", []))


def _of_derived(derived: list[dict[str, Any]]) -> list[Group]:
    """As the page has them: what stands before the first comma of a label names its group."""
    found: dict[str, Group] = {}
    for one in derived:
        intervals = [tuple(ends) for ends in one["intervals"]]
        bounded = any(end is not None for ends in intervals for end in ends)
        if one["value"] is None and not bounded:
            continue
        name, _, rest = one["label"].partition(", ")
        axis = f"{one['unit'] or one['statistic']}, with {one['level']:.0%} intervals"
        nothing = (1.0 if one["statistic"] in _RATIOS else 0.0) if "p_value" in one else None
        group = found.setdefault(name, Group(name, axis, [], nothing))
        group.rows.append(Row(rest or name, one["value"], intervals))
    return list(found.values())


def _of_outputs(outputs: list[dict[str, Any]]) -> list[Group]:
    """Noised values of one unit are a group. Their intervals are of noise alone."""
    found: dict[str, Group] = {}
    for one in outputs:
        if one.get("sigma") is None or one.get("key") is not None:
            continue
        scale = one.get("scale", 1)
        value, half = float(one["value"]) / scale, _NORMAL * float(one["sigma"]) / scale
        unit = one.get("unit") or "value"
        axis = f"{unit}, with 95% intervals of the noise alone"
        group = found.setdefault(unit, Group(unit, axis, [], nothing=None))
        group.rows.append(Row(one["label"], value, [(value - half, value + half)]))
    return list(found.values())


def _draw(ax: Any, group: Group) -> None:
    told = [end for row in group.rows for ends in row.intervals for end in ends if end is not None]
    told += [row.value for row in group.rows if row.value is not None]
    span = max(told) - min(told) or 1.0
    # An end without a bound is an arrow to beyond all that there is.
    edges = min(told) - span / 10, max(told) + span / 10
    for at, row in enumerate(group.rows):
        colour = f"C{at}"
        for low, high in row.intervals:
            ends = edges[0] if low is None else low, edges[1] if high is None else high
            ax.plot(ends, [at, at], color=colour)
            marks = "<" if low is None else "|", ">" if high is None else "|"
            for end, mark in zip(ends, marks, strict=True):
                ax.plot([end], [at], marker=mark, color=colour)
        if row.value is not None:
            ax.plot([row.value], [at], marker="o", color=colour)
    if group.nothing is not None:
        ax.axvline(group.nothing, linewidth=1, color="0.6")
    ax.set_yticks(range(len(group.rows)), [row.name for row in group.rows])
    ax.invert_yaxis()
    ax.set_xlabel(group.axis)
