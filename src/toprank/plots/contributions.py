"""What each pair of a positive and a negative adds to the risk (Rudin 2009, Figures 1 and 4)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from toprank._arrays import TableLike
from toprank._numerics import FloatArray, softmax
from toprank._text import format_p
from toprank.losses import Loss, get_loss
from toprank.metrics._inputs import check_ranking
from toprank.metrics.push import check_margins
from toprank.pair_sums import pair_sum
from toprank.pairs import Sides, orient
from toprank.plots._display import escape_text, new_axes, ranking_score
from toprank.prices import Price, get_price
from toprank.rankers import IRPush

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


class PairContributionDisplay:
    r"""What each pair of a positive i and a negative k adds to the risk R_{g,l}.

    The negative k adds g(S_k), where S_k is the sum over the positives of l(f_i - f_k); the pair
    is given the part of it that its own loss has in S_k:

    .. math:: c_{ik} = g(S_k)\, \ell(f_i - f_k) / S_k

    (Rudin 2009, Section 3.3). For the IR Push the positive adds ln(1 + S_i) and shares it among
    the negatives (Figure 4). The picture is laid out as in the paper: the highest negative on the
    left, the highest positive at the bottom, larger contributions lighter. Contributions are
    given as shares of R, so that pictures of different p are on one scale.

    Long lists are drawn in cells of neighbouring rows. No pair is listed, except for a loss of
    your own.

    Parameters
    ----------
    contributions : array-like of shape (rows, columns)
        Share of R that falls to each cell; a cell is one pair where there are few.
    positive_edges, negative_edges : array-like of shape (rows + 1,), (columns + 1,)
        Where the cells begin and end, in ranks among the positives and among the negatives.
    title : str, optional
        Name of the risk, above the picture.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the picture is.
    figure_ : matplotlib Figure
        The figure of the axes.
    mesh_ : matplotlib QuadMesh
        The cells.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from toprank.plots import PairContributionDisplay
    >>> y, f = [1, 1, 0, 1, 0], [1.0, 0.8, 0.6, 0.4, 0.2]
    >>> for p in (1, 8):
    ...     display = PairContributionDisplay.from_predictions(y, f, p=p)
    ...     print(display.contributions.sum(axis=0).round(2))
    [0.6 0.4]
    [0.96 0.04]
    """

    def __init__(
        self,
        *,
        contributions: ArrayLike,
        positive_edges: ArrayLike,
        negative_edges: ArrayLike,
        title: str | None = None,
    ) -> None:
        self.contributions = contributions
        self.positive_edges = positive_edges
        self.negative_edges = negative_edges
        self.title = title

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: TableLike,
        y: ArrayLike,
        *,
        pos_label: object = None,
        **kwargs: object,
    ) -> Self:
        """Draw the contributions of the pairs under a fitted two-class classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted; its `decision_function` ranks the rows, or else its `predict_proba`. If it has
            parameters ``p``, ``price``, ``loss`` or ``end``, they are taken from it, unless given.
        X : array-like of shape (n, d)
            Features.
        y : array-like of shape (n,)
            Labels.
        pos_label : label, optional
            The positive class; by default `estimator.classes_[1]`.
        **kwargs
            As in `from_predictions`.

        Returns
        -------
        PairContributionDisplay
            The display, drawn.
        """
        scores, pos_label = ranking_score(estimator, X, pos_label)
        return cls.from_predictions(
            y, scores, pos_label=pos_label, **(_push_settings(estimator) | kwargs)
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        price: str | Price = "power",
        p: float = 1.0,
        loss: str | Loss = "exponential",
        end: str = "top",
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
        max_cells: int = 60,
        title: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the contributions of the pairs under scores.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels of two classes.
        y_score : array-like of shape (n,)
            Scores; higher is ranked nearer the top.
        price, p, loss
            The risk, as in `toprank.metrics.push_risk`; ``price="log1p"`` is the IR Push.
        end : {"top", "bottom"}, default="top"
            Which end of the list is priced.
        sample_weight : array-like of shape (n,), optional
            Repetition counts.
        pos_label : label, optional
            The positive class; by default the larger of the two labels.
        max_cells : int, default=60
            Cells along each axis, at the most.
        title : str, optional
            Name of the risk; by default made from the price and p.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        PairContributionDisplay
            The display, drawn.
        """
        if end not in ("top", "bottom"):
            raise ValueError(f"end={end!r}: one end of the list is drawn, 'top' or 'bottom'.")
        if max_cells < 1:
            raise ValueError(f"max_cells={max_cells!r}: expected at least one cell.")
        positive, scores, weight = check_ranking(y_true, y_score, sample_weight, pos_label)
        of_price, of_margin = get_price(price, p), get_loss(loss)
        check_margins(scores, of_margin)
        (sides,) = orient(positive, weight, end=end, outer=of_price.outer)
        shares, inner_edges, outer_edges = _cells(scores, sides, of_price, of_margin, max_cells)
        outer_is_negative = sides.sign > 0
        display = cls(
            contributions=shares if outer_is_negative else shares.T,
            positive_edges=inner_edges if outer_is_negative else outer_edges,
            negative_edges=outer_edges if outer_is_negative else inner_edges,
            title=_title(price, p, end) if title is None else title,
        )
        return display.plot(ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        title: str | None = None,
        colorbar: bool = True,
        **kwargs: object,
    ) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        title : str, optional
            What to write above it; by default the title of the display.
        colorbar : bool, default=True
            Whether to draw the scale of the colours.
        **kwargs
            For matplotlib's `pcolormesh`, such as `cmap`.

        Returns
        -------
        PairContributionDisplay
            The display itself.
        """
        ax = new_axes(ax, (5.6, 5.2))
        rows, columns = (np.asarray(e) for e in (self.positive_edges, self.negative_edges))
        pairs = np.outer(np.diff(rows), np.diff(columns))
        # a colour is the share of one pair, so that cells of unequal size can be compared
        per_pair = np.asarray(self.contributions, dtype=np.float64) / pairs
        look: dict[str, Any] = {"cmap": "cividis", "vmin": 0.0} | kwargs
        self.mesh_ = ax.pcolormesh(columns, rows, per_pair, **look)
        ax.set_xlabel("Negatives k, the highest scored on the left")
        ax.set_ylabel("Positives i, the highest scored at the bottom")
        _rank_ticks(ax.xaxis, columns)
        _rank_ticks(ax.yaxis, rows)
        text = self.title if title is None else title
        if text is not None:
            ax.set_title(str(escape_text(text)))
        if colorbar:
            ax.figure.colorbar(self.mesh_, ax=ax, label="Share of R of a pair (lighter is larger)")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _cells(
    scores: FloatArray, sides: Sides, price: Price, loss: Loss, most: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Share of R in each cell (inner, outer), and the edges of the cells in ranks."""
    inner, outer = sides.inner, sides.outer
    by_score = [np.argsort(-scores[rows], kind="stable") for rows in (inner, outer)]
    inner_edges, outer_edges = (_edges(len(order), most) for order in by_score)
    f, weight = sides.sign * scores[inner][by_score[0]], sides.inner_weight[by_score[0]]
    f_outer = sides.sign * scores[outer][by_score[1]]
    log_heights = np.array(
        [
            pair_sum(loss, f[first:last], f_outer).log_heights(weight[first:last])
            for first, last in pairwise(inner_edges)
        ]
    )
    total = np.logaddexp.reduce(log_heights, axis=0)
    share = _shares(price, total, sides.log_outer_weight[by_score[1]])
    # an outer row of height zero adds nothing
    parts = np.exp(log_heights - np.where(total > -np.inf, total, 0.0)) * share
    shares: FloatArray = np.add.reduceat(parts, outer_edges[:-1], axis=1)
    return shares, inner_edges + np.float64(0.5), outer_edges + np.float64(0.5)


def _edges(n: int, most: int) -> NDArray[np.intp]:
    """Where the cells of n rows begin, and n; one row per cell where there are few."""
    return np.round(np.linspace(0, n, min(n, most) + 1)).astype(np.intp)


def _shares(price: Price, log_s: FloatArray, log_weight: FloatArray) -> FloatArray:
    """Share of each outer row in the risk: w g(S) over its sum."""
    with np.errstate(over="ignore", invalid="ignore"):
        risk, share = price.log_risk(log_s, log_weight), _unchecked_shares(price, log_s, log_weight)
    if risk == np.inf or not np.all(np.isfinite(share)):
        raise ValueError(
            "The risk of these scores is beyond the range of floats, so that it has no shares: "
            "divide the scores by a constant, or take a gentler price."
        )
    return share


def _unchecked_shares(price: Price, log_s: FloatArray, log_weight: FloatArray) -> FloatArray:
    if price.homogeneous:  # the slope of the log form is this share, for the maximum too
        return price.with_form(root=False).value_slope(log_s, log_weight)[1]
    zero = np.zeros(1)
    logs = np.array([price.log_risk(log_s[o : o + 1], zero) for o in range(len(log_s))])
    return softmax(log_weight + logs)


def _push_settings(estimator: object) -> dict[str, Any]:
    """The risk that an estimator of the library minimises."""
    if isinstance(estimator, Pipeline):
        return _push_settings(estimator[-1])
    if isinstance(estimator, IRPush):
        return {"price": "log1p"}
    known = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    found = {key: known[key] for key in ("price", "p", "loss", "end") if key in known}
    chosen = getattr(estimator, "p_", None)  # by cross-validation
    return found if chosen is None else found | {"p": chosen}


def _title(price: object, p: float, end: str) -> str | None:
    where = "" if end == "top" else ", at the bottom"
    if price == "power":
        return f"p = {format_p(p)}{where}"
    names = {"identity": "p = 1", "log1p": "IR Push", "max": "p = ∞", "exponential": "g = exp"}
    return names[price] + where if isinstance(price, str) and price in names else None


def _rank_ticks(axis: Axis, edges: FloatArray) -> None:
    """A tick at every rank where they fit, else at a few."""
    last = round(float(edges[-1]) - 0.5)
    if last <= 20:
        axis.set_ticks(np.arange(1, last + 1))
    else:
        axis.set_ticks([1, *(round(last * part) for part in (0.25, 0.5, 0.75, 1.0))])
