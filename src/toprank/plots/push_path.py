"""A metric against p: what pushing harder buys on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from toprank._numerics import FloatArray
from toprank._text import format_p
from toprank.inference import interval
from toprank.plots._display import (
    check_drawable,
    escape_text,
    find_marked,
    new_axes,
    show_legend,
    style,
)
from toprank.tuning import PChoice, Scoring

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from toprank.tuning.push_cv import PNormPushCV

_PATH, _BASELINE, _CHOSEN = "toprank-path", "toprank-path-baseline", "toprank-path-chosen"


class PushPathDisplay:
    """A metric of the top of the list against p, with the baseline that does not push.

    Make one with `from_estimator` (a fitted `PNormPushCV`), `from_choice` (what `choose_p`
    returns) or `from_predictions` (scores of several p on the same rows); hand the `ax_` of one
    display to the next to draw several paths together.

    Parameters
    ----------
    ps : array-like of shape (m,)
        Values of p, ascending.
    values : array-like of shape (m,)
        The metric at each p.
    low, high : array-like of shape (m,), optional
        Ends of an error bar or interval at each p.
    metric : str, optional
        What the metric is called, on the axis.
    baseline : tuple of (value, low, high), optional
        The metric without a push, and its interval.
    baseline_name : str
        Its name in the legend.
    chosen : float, optional
        The p that was chosen, which gets a ring.
    name : str, optional
        Name of the path in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the path is.
    figure_ : matplotlib Figure
        The figure of the axes.
    line_ : matplotlib Line2D
        The path.
    baseline_ : matplotlib Line2D or None
        The level of the baseline.
    chosen_ : matplotlib Line2D or None
        The ring around the choice.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from toprank import PNormPushCV
    >>> from toprank.datasets import load_magic
    >>> from toprank.plots import PushPathDisplay
    >>> X, y = load_magic(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> ranker = PNormPushCV(ps=(1, 4, 16), scoring_kwargs={"k": 0.01}).fit(X[::5], y[::5])
    >>> display = PushPathDisplay.from_estimator(ranker)
    >>> display.ax_.get_xlabel()
    'p: how hard the push is'
    """

    def __init__(
        self,
        *,
        ps: ArrayLike,
        values: ArrayLike,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        metric: str | None = None,
        baseline: tuple[float, float, float] | None = None,
        baseline_name: str = "logistic regression",
        chosen: float | None = None,
        name: str | None = None,
    ) -> None:
        self.ps = ps
        self.values = values
        self.low = low
        self.high = high
        self.metric = metric
        self.baseline = baseline
        self.baseline_name = baseline_name
        self.chosen = chosen
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: PNormPushCV, *, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw the path of a fitted `PNormPushCV`: mean and standard error over its folds.

        Parameters
        ----------
        estimator : PNormPushCV
            Fitted; anything with a ``choice_`` will do.
        name : str, optional
            Name in the legend; by default the name of the estimator's class.
        **kwargs
            For `plot`.

        Returns
        -------
        PushPathDisplay
            The display, drawn.
        """
        check_is_fitted(estimator, "choice_")
        name = type(estimator).__name__ if name is None else name
        return cls.from_choice(estimator.choice_, name=name, **kwargs)

    @classmethod
    def from_choice(cls, choice: PChoice, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw what `toprank.tuning.choose_p` found: mean and standard error over the folds.

        Parameters
        ----------
        choice : PChoice
            The choice; the best alpha of each p is drawn.
        name : str, optional
            Name in the legend.
        **kwargs
            For `plot`.

        Returns
        -------
        PushPathDisplay
            The display, drawn.
        """
        pushed = [i for i in choice.per_p if choice.candidates[i].p is not None]
        if not pushed:
            raise ValueError("The choice has no p to draw a path along.")
        without = [i for i in choice.per_p if not choice.candidates[i].pushes]
        mean, error = choice.mean, choice.standard_error
        display = cls(
            ps=np.array([choice.candidates[i].p for i in pushed], dtype=np.float64),
            values=mean[pushed],
            low=(mean - error)[pushed],
            high=(mean + error)[pushed],
            metric=choice.metric,
            baseline=(
                (mean[without[0]], (mean - error)[without[0]], (mean + error)[without[0]])
                if without
                else None
            ),
            baseline_name=choice.candidates[without[0]].name if without else "",
            chosen=choice.p,
            name=name,
        )
        return display.plot(**kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        scores: Mapping[float, ArrayLike],
        *,
        metric: str = "precision_at",
        metric_kwargs: Mapping[str, Any] | None = None,
        baseline: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        level: float = 0.95,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a metric, with its confidence interval, of scores of several p on the same rows.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels of rows that were not trained on.
        scores : mapping from p to array-like of shape (n,)
            The scores of each p.
        metric : str, default="precision_at"
            A metric of `toprank.metrics`.
        metric_kwargs : mapping, optional
            Its parameters, such as ``{"k": 0.01}``.
        baseline : array-like of shape (n,), optional
            Scores of a ranker that does not push.
        sample_weight : array-like of shape (n,), optional
            Repetition counts.
        level : float, default=0.95
            Confidence level.
        name : str, optional
            Name in the legend.
        **kwargs
            For `plot`.

        Returns
        -------
        PushPathDisplay
            The display, drawn.
        """
        if not scores:
            raise ValueError("scores is empty: expected scores for at least one p.")
        measured = Scoring(metric, metric_kwargs)
        options = {"level": level, "sample_weight": sample_weight, **measured.kwargs}
        found = {p: interval(metric, y_true, scores[p], **options) for p in sorted(scores)}
        without = None
        if baseline is not None:
            of = interval(metric, y_true, baseline, **options)
            without = (of.estimate, of.low, of.high)
        display = cls(
            ps=list(found),
            values=[one.estimate for one in found.values()],
            low=[one.low for one in found.values()],
            high=[one.high for one in found.values()],
            metric=measured.label,
            baseline=without,
            baseline_name="baseline",
            name=name,
        )
        return display.plot(**kwargs)

    def plot(self, ax: Axes | None = None, *, name: str | None = None, **kwargs: object) -> Self:
        """Draw the path.

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
        PushPathDisplay
            The display itself.
        """
        ax = new_axes(ax)
        place = _tick_places(self.ps)
        values = np.asarray(self.values, dtype=np.float64)
        check_drawable(
            values, *(ends for ends in (self.low, self.high, self.baseline) if ends is not None)
        )
        look = style(len(find_marked(ax, _PATH))) | {"marker": "o", "markersize": 5}
        look |= {"label": escape_text(self.name if name is None else name)} | kwargs
        (self.line_,) = ax.plot(place, values, gid=_PATH, **look)
        colour = self.line_.get_color()
        if self.low is not None and self.high is not None:
            ax.vlines(place, self.low, self.high, color=colour, linewidth=1.0, alpha=0.8)
        self.baseline_ = self._draw_baseline(ax)
        self.chosen_ = self._draw_choice(ax, place, values, colour)
        _frame_path(ax, np.asarray(self.ps, dtype=np.float64), place, self.metric)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_baseline(self, ax: Axes) -> Line2D | None:
        if self.baseline is None:
            return None
        value, low, high = self.baseline
        shade = style(3 + len(find_marked(ax, _BASELINE)))
        look: dict[str, Any] = {"linestyle": (0, (1.5, 1.5)), "linewidth": 1.4}
        label = f"{escape_text(self.baseline_name)} (no push)" if self.baseline_name else "no push"
        ax.axhspan(low, high, color=shade["color"], alpha=0.08, zorder=0, linewidth=0)
        return ax.axhline(value, gid=_BASELINE, label=label, zorder=1, color=shade["color"], **look)

    def _draw_choice(
        self, ax: Axes, place: FloatArray, values: FloatArray, colour: object
    ) -> Line2D | None:
        if self.chosen is None:
            return None
        at = list(np.asarray(self.ps, dtype=np.float64)).index(float(self.chosen))
        look: dict[str, Any] = {"markersize": 13, "markerfacecolor": "none", "markeredgewidth": 1.8}
        label = f"chosen: p = {format_p(self.chosen)}"
        (ring,) = ax.plot(
            place[at], values[at], "o", color=colour, gid=_CHOSEN, label=label, **look
        )
        return ring


def _tick_places(ps: ArrayLike) -> FloatArray:
    """Where each p stands: at its logarithm, infinity two octaves after the largest finite one."""
    powers = np.asarray(ps, dtype=np.float64)
    if powers.ndim != 1 or len(powers) == 0 or not np.all(powers > 0):
        raise ValueError(f"ps={ps!r}: expected one or more positive numbers.")
    finite = np.isfinite(powers)
    last = float(np.log2(np.max(powers, where=finite, initial=1.0)))
    return np.where(finite, np.log2(np.where(finite, powers, 1.0)), last + 2.0)


def _frame_path(ax: Axes, ps: FloatArray, place: FloatArray, metric: str | None) -> None:
    known = dict(zip(ax.get_xticks(), (t.get_text() for t in ax.get_xticklabels()), strict=True))
    if len(find_marked(ax, _PATH)) == 1:
        known = {}
    known |= {x: format_p(p) for x, p in zip(place, ps, strict=True)}
    ticks = sorted(known)
    ax.set_xticks(ticks, [known[x] for x in ticks])
    ax.set_xlim(ticks[0] - 0.4, ticks[-1] + 0.4)
    ax.set_xlabel("p: how hard the push is")
    if metric is not None:
        ax.set_ylabel(f"{escape_text(metric)}, held out")
    ax.grid(alpha=0.25)
    above: dict[str, object] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    show_legend(ax, handlelength=3.0, ncols=3, frameon=False, **above)
