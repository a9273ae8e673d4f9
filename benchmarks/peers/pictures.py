"""The picture of docs/evidence/when_it_helps.md: what p gains or loses, by hypothesis space."""

from __future__ import annotations

from pathlib import Path

from .tables import gap
from .when import COMPARED


def by_capacity(results: dict, sets: list[str], metrics: tuple[str, ...], path: Path) -> None:
    """One panel a metric and hypothesis space, one line a set: the difference to p = 1."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3 * len(metrics)), layout="constrained")
    panels = figure.subplots(len(metrics), len(COMPARED), sharey="row", squeeze=False)
    for row, metric in zip(panels, metrics, strict=True):
        for panel, (family, (plain, pushes)) in zip(row, COMPARED.items(), strict=True):
            for number, name in enumerate(sets):
                gaps = [
                    gap(results.get((name, push), {}), results.get((name, plain), {}), metric)
                    for push in pushes
                ]
                heights = [0.0, *(float("nan") if g is None else g.mean for g in gaps)]
                style = "-" if number < 10 else "--"  # colours repeat after ten
                panel.plot(range(len(heights)), heights, style, marker=".", label=name)
            panel.axhline(0, color="0.6", linewidth=0.8)
            labels = ["1", *(push.split("p=")[1].rstrip(")") for push in pushes)]
            panel.set(title=family, xlabel="p", xticks=range(len(labels)), xticklabels=labels)
        row[0].set_ylabel(f"{metric},\nless that of p = 1")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
