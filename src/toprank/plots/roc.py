"""The ROC curve, whole and where the top of the list is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import auc, roc_curve

from toprank._arrays import TableLike
from toprank._extras import require
from toprank.inference import Band, roc_band
from toprank.metrics._inputs import check_ranking
from toprank.plots._display import (
    REFERENCE,
    draw_band,
    draw_curve,
    escape_text,
    find_marked,
    legend_label,
    ranking_score,
    show_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D

VIEWS = ("zoom", "full", "both")
#: Where a band is read: cubes, so that most of them are at the top of the list.
_RATES = np.linspace(0, 1, 401) ** 3
_CURVE, _CHANCE, _WINDOW = "toprank-roc", "toprank-chance", "toprank-window"


class TopRocDisplay:
    """ROC curve with the top of the list enlarged.

    A ROC curve plots the share of positives found, TPR(t) = P(f >= t | positive), against the
    share of negatives let through, FPR(t) = P(f >= t | negative). The top of the list is its
    left edge, which the whole picture hides and the view "zoom" shows: 0 <= FPR <= `max_fpr`.

    Use `from_estimator` or `from_predictions` to make one; hand the `ax_` of one display to the
    next to draw several curves together. Each gets its own colour and dashes.

    Parameters
    ----------
    fpr : ndarray
        False positive rates, not decreasing.
    tpr : ndarray
        True positive rates, of the same length.
    roc_auc : float, optional
        Area under the curve, shown in the legend.
    name : str, optional
        Name of the curve in the legend.
    pos_label : label, optional
        The positive class, shown in the labels of the axes.
    band : Band, optional
        Band around the curve, from `toprank.inference.roc_band`.

    Attributes
    ----------
    ax_ : matplotlib Axes, or ndarray of two
        Where the curve is; for the view "both" the axes of the whole curve, then the zoomed.
    figure_ : matplotlib Figure
        The figure of the axes.
    line_ : matplotlib Line2D, or list of two
        The curve on each of the axes.
    band_ : matplotlib PolyCollection, list of two, or None
        The band on each of the axes, if there is one.
    chance_level_ : matplotlib Line2D, list of two, or None
        The diagonal on each of the axes, if it was asked for.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from toprank.plots import TopRocDisplay
    >>> y = [0, 0, 0, 1, 0, 1, 1, 1]
    >>> display = TopRocDisplay.from_predictions(y, [1, 2, 3, 4, 5, 6, 7, 8], max_fpr=0.25)
    >>> display.roc_auc
    0.9375
    >>> other = TopRocDisplay.from_predictions(y, [1, 2, 3, 4, 8, 5, 6, 7], ax=display.ax_)
    >>> len(other.ax_[1].lines)
    2
    """

    def __init__(
        self,
        *,
        fpr: ArrayLike,
        tpr: ArrayLike,
        roc_auc: float | None = None,
        name: str | None = None,
        pos_label: object = None,
        band: Band | None = None,
    ) -> None:
        self.fpr = fpr
        self.tpr = tpr
        self.roc_auc = roc_auc
        self.name = name
        self.pos_label = pos_label
        self.band = band

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        X: TableLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
        name: str | None = None,
        ax: object = None,
        view: str | None = None,
        max_fpr: float = 0.05,
        level: float | None = 0.95,
        plot_chance_level: bool = False,
        **kwargs: object,
    ) -> Self:
        """Draw the ROC curve of a fitted two-class classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted; its `decision_function` ranks the rows, or else its `predict_proba`.
        X : array-like of shape (n, d)
            Features.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Repetition counts.
        pos_label : label, optional
            The positive class; by default `estimator.classes_[1]`.
        name : str, optional
            Name in the legend; by default the name of the estimator's class.
        level : float or None, default=0.95
            Confidence level of the band around the curve, point by point; None draws none.
        ax, view, max_fpr, plot_chance_level, **kwargs
            As in `plot`.

        Returns
        -------
        TopRocDisplay
            The display, drawn.
        """
        scores, pos_label = ranking_score(estimator, X, pos_label)
        return cls.from_predictions(
            y,
            scores,
            sample_weight=sample_weight,
            pos_label=pos_label,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            view=view,
            max_fpr=max_fpr,
            level=level,
            plot_chance_level=plot_chance_level,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
        name: str | None = None,
        ax: object = None,
        view: str | None = None,
        max_fpr: float = 0.05,
        level: float | None = 0.95,
        plot_chance_level: bool = False,
        **kwargs: Any,
    ) -> Self:
        """Draw the ROC curve of scores.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels of two classes.
        y_score : array-like of shape (n,)
            Scores; higher is ranked nearer the top.
        sample_weight : array-like of shape (n,), optional
            Repetition counts.
        pos_label : label, optional
            The positive class; by default the larger of the two labels.
        name : str, optional
            Name in the legend.
        level : float or None, default=0.95
            Confidence level of the band around the curve, point by point; None draws none.
        ax, view, max_fpr, plot_chance_level, **kwargs
            As in `plot`.

        Returns
        -------
        TopRocDisplay
            The display, drawn.
        """
        positive, scores, weight = check_ranking(y_true, y_score, sample_weight, pos_label)
        # only their order counts, and differences of huge scores are no numbers
        order = np.unique(scores, return_inverse=True)[1]
        fpr, tpr, _ = roc_curve(positive, order, sample_weight=weight)
        band = None
        if level is not None:
            band = roc_band(positive, scores, level, fpr=_RATES, sample_weight=weight)
        area = float(auc(fpr, tpr))
        display = cls(fpr=fpr, tpr=tpr, roc_auc=area, name=name, pos_label=pos_label, band=band)
        return display.plot(
            ax, view=view, max_fpr=max_fpr, plot_chance_level=plot_chance_level, **kwargs
        )

    def plot(
        self,
        ax: object = None,
        *,
        name: str | None = None,
        view: str | None = None,
        max_fpr: float = 0.05,
        plot_chance_level: bool = False,
        **kwargs: object,
    ) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, or a pair of them, optional
            Where to draw; by default a new figure. A pair is for the view "both": the whole
            curve goes to the first, the zoomed one to the second.
        name : str, optional
            Name in the legend; by default that of the display.
        view : {"zoom", "full", "both"}, optional
            What to show; by default "zoom" on single axes and "both" otherwise.
        max_fpr : float, default=0.05
            Largest false positive rate of the zoomed view, in (0, 1].
        plot_chance_level : bool, default=False
            Also draw the diagonal, the curve of a random order.
        **kwargs
            For matplotlib's `plot`, such as `color` and `linestyle`. They replace the colour
            and dashes that follow from the number of curves already on the axes.

        Returns
        -------
        TopRocDisplay
            The display itself.
        """
        if not 0 < max_fpr <= 1:
            raise ValueError(f"max_fpr={max_fpr!r} is not a rate: expected 0 < max_fpr <= 1.")
        views, axes = _panels(ax, view)
        area = None if self.roc_auc is None else f"AUC = {self.roc_auc:.3f}"
        look = {"label": legend_label(self.name if name is None else name, area)} | kwargs
        lines = [draw_curve(one, _CURVE, self.fpr, self.tpr, look) for one in axes]
        bands = [self._draw_band(one, line) for one, line in zip(axes, lines, strict=True)]
        chances = [_draw_chance(one) for one in axes] if plot_chance_level else None
        for one, its_view in zip(axes, views, strict=True):
            _frame_roc(one, its_view, max_fpr, self.pos_label)
        if len(axes) == 2:
            _mark_window(axes[0], max_fpr)
        show_legend(axes[-1], loc="lower right")
        several = len(axes) > 1
        self.ax_ = np.array(axes, dtype=object) if several else axes[0]
        self.figure_ = axes[0].figure
        self.line_ = lines if several else lines[0]
        self.band_ = None if self.band is None else (bands if several else bands[0])
        self.chance_level_ = chances if several or chances is None else chances[0]
        return self

    def _draw_band(self, ax: Axes, line: Line2D) -> PolyCollection | None:
        band = self.band
        return None if band is None else draw_band(ax, line, band.x, band.low, band.high)


def _panels(ax: object, view: str | None) -> tuple[tuple[str, ...], list[Axes]]:
    """The view of each of the axes, and the axes, made if there are none."""
    axes = [] if ax is None else list(np.ravel(np.asarray(ax, dtype=object)))
    if view is None:
        view = "zoom" if len(axes) == 1 else "both"
    if view not in VIEWS:
        raise ValueError(f"view={view!r} is unknown: expected one of {list(VIEWS)}.")
    views = ("full", "zoom") if view == "both" else (view,)
    if not axes:
        pyplot = require("matplotlib.pyplot", "plots")
        size = (5.5 * len(views), 4.8)
        _, made = pyplot.subplots(1, len(views), figsize=size, layout="constrained", squeeze=False)
        axes = list(made[0])
    if len(axes) != len(views):
        raise ValueError(f"view={view!r} needs {len(views)} axes, got {len(axes)}.")
    return views, axes


def _draw_chance(ax: Axes) -> Line2D:
    """The diagonal, drawn once on each axes."""
    if drawn := find_marked(ax, _CHANCE):
        return drawn[0]
    label = "random order (AUC = 0.5)"
    (line,) = ax.plot((0, 1), (0, 1), gid=_CHANCE, label=label, **REFERENCE)
    return line


def _frame_roc(ax: Axes, view: str, max_fpr: float, pos_label: object) -> None:
    """Limits and labels of the axes; the zoomed view is as high as its highest curve."""
    whose = "" if pos_label is None else f", class {escape_text(pos_label)}"
    ax.set_xlabel("False positive rate (share of negatives let through)")
    ax.set_ylabel(f"True positive rate (share of positives found{whose})")
    if view == "full":
        ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        return
    highest = max(float(np.interp(max_fpr, *line.get_data())) for line in find_marked(ax, _CURVE))
    ax.set(xlim=(-0.01 * max_fpr, max_fpr), ylim=(0.0, min(1.01, max(1.05 * highest, 1e-3))))
    ax.grid(alpha=0.25)


def _mark_window(ax: Axes, max_fpr: float) -> None:
    """Shade, on the whole curve, the part that the other axes enlarge."""
    for drawn in find_marked(ax, _WINDOW):
        drawn.remove()
    ax.axvspan(0, max_fpr, color="0.85", zorder=0, gid=_WINDOW)
