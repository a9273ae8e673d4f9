"""Lift: how many times more positives the top of the list holds than a random order would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from toprank._arrays import FloatArray, TableLike
from toprank.inference import lift_band
from toprank.metrics.order import RankedList
from toprank.plots._display import (
    REFERENCE,
    draw_band,
    draw_curve,
    find_marked,
    legend_label,
    new_axes,
    ranking_score,
    show_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CURVE, _CHANCE, _CEILING = "toprank-lift", "toprank-lift-chance", "toprank-lift-ceiling"


class LiftDisplay:
    """Lift of the top of the list against how much of it is taken, with its band.

    The lift at a fraction t of the list is the share of positives in its first t, divided by
    their share in the whole list: 1 is a random order. No order can pass the smaller of 1 / t and
    1 / prevalence, which is drawn as a thin ceiling. The axis of t is logarithmic, because the
    top of the list is what matters.

    Use `from_estimator` or `from_predictions` to make one; hand the `ax_` of one display to the
    next to draw several curves together.

    Parameters
    ----------
    top : array-like of shape (m,)
        Fractions of the list, ascending, in (0, 1].
    lift : array-like of shape (m,)
        The lift at each.
    low, high : array-like of shape (m,), optional
        Ends of the band.
    level : float, optional
        Confidence level of the band.
    prevalence : float, optional
        Share of positives in the whole list; it sets the ceiling.
    n_rows, n_positives : float, optional
        Size of the sample, shown in the legend.
    name : str, optional
        Name of the curve in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the curve is.
    figure_ : matplotlib Figure
        The figure of the axes.
    line_ : matplotlib Line2D
        The curve.
    band_ : matplotlib PolyCollection or None
        The band around it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from toprank.plots import LiftDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], [900, 100])
    >>> display = LiftDisplay.from_predictions(y, rng.normal(size=1000) + 2 * y, name="good")
    >>> display.ax_.get_legend().get_texts()[0].get_text()
    'good (n = 1,000, 100 positive)'
    """

    def __init__(
        self,
        *,
        top: ArrayLike,
        lift: ArrayLike,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        level: float | None = None,
        prevalence: float | None = None,
        n_rows: float | None = None,
        n_positives: float | None = None,
        name: str | None = None,
    ) -> None:
        self.top = top
        self.lift = lift
        self.low = low
        self.high = high
        self.level = level
        self.prevalence = prevalence
        self.n_rows = n_rows
        self.n_positives = n_positives
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        X: TableLike,
        y: ArrayLike,
        *,
        pos_label: object = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the lift of a fitted two-class classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted; its `decision_function` ranks the rows, or else its `predict_proba`.
        X : array-like of shape (n, d)
            Features.
        y : array-like of shape (n,)
            Labels.
        pos_label : label, optional
            The positive class; by default `estimator.classes_[1]`.
        name : str, optional
            Name in the legend; by default the name of the estimator's class.
        **kwargs
            As in `from_predictions`.

        Returns
        -------
        LiftDisplay
            The display, drawn.
        """
        scores, pos_label = ranking_score(estimator, X, pos_label)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, scores, pos_label=pos_label, name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
        name: str | None = None,
        level: float | None = 0.95,
        kind: str = "pointwise",
        top: ArrayLike | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the lift of scores.

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
            Confidence level of the band; None draws none.
        kind : {"pointwise", "simultaneous"}, default="pointwise"
            What the band covers with that confidence: each point, or the whole curve.
        top : array-like, optional
            Fractions of the list; by default 201, from ten rows to the whole list.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        LiftDisplay
            The display, drawn.
        """
        ranked = RankedList.of(y_true, y_score, sample_weight=sample_weight, pos_label=pos_label)
        if top is None:
            first = max(min(10 / ranked.total, 0.1), min(1 / ranked.total, 1.0))
            top = np.geomspace(first, 1.0, 201)
        at = 0.95 if level is None else level
        band = lift_band(
            y_true, y_score, at, kind, top=top, sample_weight=sample_weight, pos_label=pos_label
        )
        display = cls(
            top=band.x,
            lift=band.estimate,
            low=None if level is None else band.low,
            high=None if level is None else band.high,
            level=level,
            prevalence=ranked.positives / ranked.total,
            n_rows=ranked.total,
            n_positives=ranked.positives,
            name=name,
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, name: str | None = None, **kwargs: object) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        name : str, optional
            Name in the legend; by default that of the display.
        **kwargs
            For matplotlib's `plot`, such as `color` and `linestyle`.

        Returns
        -------
        LiftDisplay
            The display itself.
        """
        ax = new_axes(ax)
        label = legend_label(self.name if name is None else name, self._size())
        self.line_ = draw_curve(ax, _CURVE, self.top, self.lift, {"label": label} | kwargs)
        self.band_ = draw_band(ax, self.line_, self.top, self.low, self.high)
        _bounds(ax, self.prevalence, np.asarray(self.top, dtype=np.float64))
        _frame_lift(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _size(self) -> str | None:
        """The size of the sample behind the curve."""
        if self.n_rows is None:
            return None
        rows = f"n = {self.n_rows:,.10g}"
        positives = "" if self.n_positives is None else f", {self.n_positives:,.10g} positive"
        return rows + positives


def _bounds(ax: Axes, prevalence: float | None, top: FloatArray) -> None:
    """The lift of a random order and of a perfect one, drawn once on each axes."""
    if not find_marked(ax, _CHANCE):
        ax.axhline(1.0, gid=_CHANCE, label="random order", **REFERENCE)
    if prevalence is None or find_marked(ax, _CEILING):
        return
    look = REFERENCE | {"linestyle": "-", "linewidth": 0.7}
    ceiling = 1 / np.maximum(top, prevalence)
    ax.plot(top, ceiling, gid=_CEILING, label="perfect order", **look)


def _frame_lift(ax: Axes) -> None:
    ax.set_xscale("log")
    smallest = min(float(np.min(line.get_xdata())) for line in find_marked(ax, _CURVE))
    ax.set(xlim=(min(smallest, 0.5), 1.0), xlabel="Share of the list taken from the top")
    ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
    ax.set_ylabel("Lift (times the positives of a random order)")
    highest = max(float(line.get_ydata().max()) for line in find_marked(ax, _CURVE))
    ceilings = [float(line.get_ydata().max()) for line in find_marked(ax, _CEILING)]
    ax.set_ylim(0.0, 1.06 * max(1.0, highest, *ceilings))
    ax.grid(alpha=0.25)
    show_legend(ax, loc="best")
