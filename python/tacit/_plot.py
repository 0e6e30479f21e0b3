"""Plots of reports by matplotlib. The page's own pictures are in ``Report.html``."""

from __future__ import annotations

from typing import Any


def plotted(report: Any, ax: Any) -> Any:
    """The estimate of each cell with its interval, from top to bottom."""
    import matplotlib.pyplot as plt

    view = report.to_dict()["view"]
    cells = [cell for cell in view.get("cells", []) if cell["estimate"] is not None]
    if not cells:
        raise ValueError("this report has no estimate to plot; report.numbers has what it shows")
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 1.2 + 0.4 * len(cells)), layout="constrained")
    names = [cell["label"] or cell["family"] for cell in cells]
    for at, cell in enumerate(cells):
        low, high = cell["estimate"]["interval"]
        lift = cell["estimate"]["lift"]
        ax.errorbar(lift, at, xerr=[[max(lift - low, 0)], [max(high - lift, 0)]], fmt="o", capsize=3)
    ax.axvline(0, linewidth=1, color="0.6")
    ax.set_yticks(range(len(cells)), names)
    ax.invert_yaxis()
    unit = view.get("unit") or "events"
    ax.set_xlabel(f"difference, {unit} per person, with {view['confidence']:.0%} intervals")
    ax.set_title(report["study"]["title"])
    return ax
