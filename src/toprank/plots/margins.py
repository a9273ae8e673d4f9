"""The distribution of the margins of all pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from toprank._arrays import TableLike
from toprank._numerics import FloatArray
from toprank.inference import interval
from toprank.metrics import margin_distribution
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


_CURVE, _ZERO = "toprank-margins", "toprank-margins-zero"


class _Rows(TypedDict):
    """What is known of rows besides labels and scores."""

    sample_weight: ArrayLike | None
    pos_label: object


class MarginDisplay:
    r"""Share of the pairs whose margin is at most theta, against theta.

    The margin of a positive i and a negative k is (f_i - f_k) / norm. The share at 0 is the
    misranking error with ties counted as errors; the share at theta > 0 is the left part of the
    margin bound of Rudin & Schapire (2009, Theorem 2). A curve further to the right is better.

    Use `from_estimator` or `from_predictions` to make one; hand the `ax_` of one display to the
    next to draw several curves together.

    Parameters
    ----------
    thetas : array-like of shape (m,)
        Margins, ascending.
    shares : array-like of shape (m,)
        Share of the pairs with at most this margin.
    low, high : array-like of shape (m,), optional
        Ends of the band.
    level : float, optional
        Confidence level of the band.
    norm : float, default=1.0
        What the margins were divided by.
    n_positives, n_negatives : float, optional
        Sizes of the classes, shown in the legend.
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
    >>> from toprank.plots import MarginDisplay
    >>> display = MarginDisplay.from_predictions([0, 1, 0, 1], [0.0, 0.75, 0.5, 1.0], [0.25, 1.0])
    >>> display.shares
    array([0.25, 1.  ])
    """

    def __init__(
        self,
        *,
        thetas: ArrayLike,
        shares: ArrayLike,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        level: float | None = None,
        norm: float = 1.0,
        n_positives: float | None = None,
        n_negatives: float | None = None,
        name: str | None = None,
    ) -> None:
        self.thetas = thetas
        self.shares = shares
        self.low = low
        self.high = high
        self.level = level
        self.norm = norm
        self.n_positives = n_positives
        self.n_negatives = n_negatives
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        X: TableLike,
        y: ArrayLike,
        *,
        norm: float | None = None,
        pos_label: object = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the margins of a fitted two-class classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted; its `decision_function` ranks the rows, or else its `predict_proba`.
        X : array-like of shape (n, d)
            Features.
        y : array-like of shape (n,)
            Labels.
        norm : float, optional
            What to divide margins by; by default the sum of the absolute coefficients where the
            estimator has ``coef_``, so that rankers with the same weak rankers are on one scale,
            and 1 where it has none.
        pos_label : label, optional
            The positive class; by default `estimator.classes_[1]`.
        name : str, optional
            Name in the legend; by default the name of the estimator's class.
        **kwargs
            As in `from_predictions`.

        Returns
        -------
        MarginDisplay
            The display, drawn.
        """
        scores, pos_label = ranking_score(estimator, X, pos_label)
        name = type(estimator).__name__ if name is None else name
        norm = _coefficients(estimator) if norm is None else norm
        return cls.from_predictions(y, scores, norm=norm, pos_label=pos_label, name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        thetas: ArrayLike | None = None,
        *,
        norm: float = 1.0,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
        name: str | None = None,
        level: float | None = 0.95,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the margins of scores.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels of two classes.
        y_score : array-like of shape (n,)
            Scores; higher is ranked nearer the top.
        thetas : array-like, optional
            Margins at which to read the shares; by default 101, from the smallest to the largest.
        norm : float, default=1.0
            What to divide margins by.
        sample_weight : array-like of shape (n,), optional
            Repetition counts.
        pos_label : label, optional
            The positive class; by default the larger of the two labels.
        name : str, optional
            Name in the legend.
        level : float or None, default=0.95
            Confidence level of the band, point by point; None draws none. A class with a single
            row has none either.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        MarginDisplay
            The display, drawn.
        """
        options: _Rows = {"sample_weight": sample_weight, "pos_label": pos_label}
        at, shares = margin_distribution(y_true, y_score, thetas, norm=norm, **options)
        ranked = RankedList.of(y_true, y_score, **options)
        low = high = None
        if level is not None and min(ranked.positives, ranked.negatives) > 1:
            low, high = _margin_band(y_true, y_score, at * norm, level, options)
        display = cls(
            thetas=at,
            shares=shares,
            low=low,
            high=high,
            level=level,
            norm=norm,
            n_positives=ranked.positives,
            n_negatives=ranked.negatives,
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
        MarginDisplay
            The display itself.
        """
        ax = new_axes(ax)
        label = legend_label(self.name if name is None else name, self._size())
        self.line_ = draw_curve(ax, _CURVE, self.thetas, self.shares, {"label": label} | kwargs)
        self.band_ = draw_band(ax, self.line_, self.thetas, self.low, self.high)
        if not find_marked(ax, _ZERO):
            ax.axvline(0.0, gid=_ZERO, label="tie: misranked to the left", **REFERENCE)
        scaled = "" if self.norm == 1.0 else ", normalised"
        ax.set(xlabel=f"Margin $\\theta$ (score of the positive less the negative's{scaled})")
        ax.set(ylabel=r"Share of the pairs with margin $\leq \theta$", ylim=(-0.01, 1.01))
        ax.grid(alpha=0.25)
        show_legend(ax, loc="lower right")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _size(self) -> str | None:
        """The number of pairs behind the curve."""
        if self.n_positives is None or self.n_negatives is None:
            return None
        return f"{self.n_positives:,.10g} × {self.n_negatives:,.10g} pairs"


def _coefficients(estimator: object) -> float:
    """Sum of the absolute coefficients, or 1 where there are none."""
    total = float(np.sum(np.abs(getattr(estimator, "coef_", 0.0))))
    return total if total > 0 else 1.0


def _margin_band(
    y_true: ArrayLike, y_score: ArrayLike, margins: FloatArray, level: float, options: _Rows
) -> tuple[FloatArray, FloatArray]:
    """The interval of the margin error at each margin."""
    found = [
        interval("margin_error", y_true, y_score, theta=float(theta), level=level, **options)
        for theta in margins
    ]
    return np.array([one.low for one in found]), np.array([one.high for one in found])
