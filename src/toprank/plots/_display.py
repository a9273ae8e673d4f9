"""What the displays share: the score of an estimator, axes, lines and legends.

Lines are told apart by the colour-blind, and in black and white.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from toprank._arrays import TableLike
from toprank._extras import require
from toprank._text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D


def ranking_score(
    estimator: object, X: TableLike, pos_label: object = None
) -> tuple[np.ndarray, object]:
    """Scores of the rows, higher for the positive class, and the positive class.

    `decision_function` if there is one, since probabilities tie where they saturate at 0 or 1;
    `predict_proba` if not.
    """
    check_is_fitted(estimator)
    classes = list(getattr(estimator, "classes_", ()))
    if len(classes) != 2:
        raise ValueError(
            f"{type(estimator).__name__} is not a two-class classifier (classes: {classes}); "
            "pass its scores to from_predictions instead."
        )
    if pos_label is None:
        pos_label = classes[1]
    elif pos_label not in classes:
        raise ValueError(f"pos_label={pos_label!r} is not one of the classes {classes}.")
    column = classes.index(pos_label)
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X))
        return (scores if column == 1 else -scores), pos_label
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X))[:, column], pos_label
    raise ValueError(
        f"{type(estimator).__name__} has neither decision_function nor predict_proba; "
        "pass scores to from_predictions instead."
    )


# Okabe and Ito's palette without its yellow and sky blue, which are too pale for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00")
DASHES: tuple[str | tuple[int, tuple[float, ...]], ...] = (
    "-",
    (0, (6, 2)),
    (0, (6, 2, 1, 2)),
    (0, (1.5, 1.5)),
    (0, (3, 1.5, 1, 1.5, 1, 1.5)),
    (0, (10, 3)),
    (0, (3, 3)),
)
#: How a line of reference looks, below the curves.
REFERENCE: dict[str, Any] = {
    "color": "0.45",
    "linestyle": ":",
    "linewidth": 1.0,
    "zorder": 1,
}
_SHORT = {"c": "color", "ls": "linestyle", "lw": "linewidth"}
_BAND = "toprank-band"
#: matplotlib adds a margin to the range of what it draws, and chooses ticks beyond it.
_LARGEST = 1e300


def style(index: int) -> dict[str, Any]:
    """Colour and dashes of the curve of this number; they repeat together after 42 curves."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": DASHES[index % len(DASHES)],
        "linewidth": 1.8,
    }


def find_marked(ax: Axes, gid: str) -> list[Any]:
    """The lines and patches of the axes that a display has drawn under this mark."""
    return [artist for artist in (*ax.lines, *ax.patches) if artist.get_gid() == gid]


def new_axes(ax: Axes | None, size: tuple[float, float] = (6.4, 4.4)) -> Axes:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", "plots")
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def check_drawable(*values: object) -> None:
    """Raise ValueError for numbers that have no place on an axis."""
    for numbers in values:
        size = np.abs(np.asarray(numbers, dtype=np.float64))
        if not np.all(size <= _LARGEST):
            raise ValueError(
                f"A number as large as {np.max(size):g} cannot be drawn: expected numbers up to "
                f"{_LARGEST:g}. Scale them, or for margins pass norm=."
            )


def escape_text(text: object) -> str | None:
    """Return text that matplotlib shows as it is.

    Between two dollar signs it would set mathematics, and fail where there is none; what begins
    with an underscore it leaves out of legends.
    """
    if text is None:
        return None
    shown = visible(text).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def draw_curve(
    ax: Axes, gid: str, x: ArrayLike, y: ArrayLike, kwargs: Mapping[str, object]
) -> Line2D:
    """A curve in the next colour and dashes of its kind, unless the caller names others."""
    check_drawable(x, y)
    look = style(len(find_marked(ax, gid)))
    look |= {_SHORT.get(key, key): value for key, value in kwargs.items()}
    (line,) = ax.plot(x, y, gid=gid, **look)
    return line


def draw_band(
    ax: Axes, line: Line2D, x: ArrayLike, low: ArrayLike | None, high: ArrayLike | None
) -> PolyCollection | None:
    """A pale band in the colour of its curve; None where it has no ends.

    It is edged finely, so that it survives black and white.
    """
    if low is None or high is None:
        return None
    colour = line.get_color()
    edge = {"edgecolor": colour, "linewidth": 0.4, "linestyle": line.get_linestyle()}
    return ax.fill_between(x, low, high, facecolor=colour, alpha=0.16, gid=_BAND, zorder=1, **edge)


def show_legend(ax: Axes, **kwargs: object) -> None:
    """A legend, if anything on the axes has a name; lines of reference come last."""
    named = zip(*ax.get_legend_handles_labels(), strict=True)
    # a line of reference lies below the curves
    entries = sorted(named, key=lambda entry: -entry[0].get_zorder())
    if entries:
        handles, labels = zip(*entries, strict=True)
        ax.legend(handles, labels, **({"handlelength": 3.5} | kwargs))


def legend_label(name: str | None, detail: str | None) -> str | None:
    """The name of a curve in a legend, with a detail behind it; either may be missing."""
    name = escape_text(name)
    if name is None or detail is None:
        return detail if name is None else name
    return f"{name} ({detail})"
