r"""Metrics of positive-unlabelled data: what they would be if the hidden positives were known.

Some positives have a label, the other rows have none: they are negatives and hidden positives. If
the labelled positives are a random part of all positives ("selected completely at random", Elkan &
Noto 2008), what is counted against the unlabelled rows is counted against a mixture, and a share
of hidden positives takes it apart. For the 0-1 loss the order that is best against the mixture is
best against the negatives, whatever the price: how high positives stand among each other has the
same law in every order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank._numerics import FloatArray, is_number
from toprank.losses import Loss, get_loss
from toprank.metrics.metric import Hidden, Metric
from toprank.metrics.push import check_margins
from toprank.metrics.registry import METRICS, as_metric
from toprank.pair_sums import pair_sum
from toprank.pairs import check_scores, split_unlabelled
from toprank.prices import Exponential, Max, Power, Price, get_price

#: Labelled positives that heights among each other need.
_FEWEST = 3


@dataclass(frozen=True)
class OpenLabels:
    """Rows of which some are known to be positive, and some have no label.

    Attributes
    ----------
    positive, unlabelled : ndarray of bool
        Rows that are neither are known to be negative.
    scores : ndarray of shape (n,)
    """

    positive: NDArray[np.bool_]
    unlabelled: NDArray[np.bool_]
    scores: FloatArray

    @classmethod
    def read(
        cls, y: ArrayLike, s: ArrayLike, unlabelled: object = None, pos_label: object = None
    ) -> OpenLabels:
        """Read labels and scores; ValueError says what is wrong."""
        positive, open_rows = split_unlabelled(y, unlabelled, pos_label)
        return cls(positive, open_rows, check_scores(s, len(positive), "s"))

    @cached_property
    def n_positive(self) -> int:
        """Rows that are known to be positive."""
        return int(np.count_nonzero(self.positive))

    @cached_property
    def n_others(self) -> int:
        """Rows that are not known to be positive."""
        return len(self.positive) - self.n_positive

    def share_of_others(self, hidden: float) -> float:
        """The share of hidden positives among all rows that are not known to be positive."""
        return hidden * float(np.count_nonzero(self.unlabelled)) / self.n_others


def unlabelled_value(
    metric: str,
    y_true: ArrayLike,
    y_score: ArrayLike,
    hidden: float,
    *,
    unlabelled: object = None,
    pos_label: object = None,
    **metric_kwargs: object,
) -> float:
    r"""A metric of positive-unlabelled data, corrected for the hidden positives.

    With :math:`\alpha` the share of hidden positives among the rows that are not known to be
    positive, and if labelled positives are a random part of all:

    - `auc`: :math:`(A' - \alpha / 2) / (1 - \alpha)`, with A' that against those rows.
    - `precision_at`: :math:`q' (n_L + \alpha n_U) / n_L`, with q' the share of known positives.
    - `recall_at`: that of the known positives.
    - `pnorm_risk`, normalised, and `push_risk`: the mean price of the heights of those rows is
      :math:`(1 - \alpha) R_- + \alpha R_+`, and :math:`R_+` is that of the known positives, each
      among the others. Any loss; the prices "identity", "power" and your own. Not "max" and
      "exponential", which the highest row decides, and that may be a hidden positive; nor
      "log1p", whose logarithm has the hidden positives inside.

    Parameters
    ----------
    metric : {"auc", "precision_at", "recall_at", "pnorm_risk", "push_risk"}
    y_true, y_score : array-like of shape (n,)
        Labels and scores.
    hidden : float
        Share of positives among the unlabelled rows, in [0, 1);
        `toprank.inference.hidden_share` estimates it.
    unlabelled : value or array-like of bool of shape (n,), optional
        The label of rows whose label is not known (NaN for missing labels), or which rows those
        are. By default all rows that are not positive.
    pos_label : label, optional
        The positive class; by default the larger label.
    **metric_kwargs
        Parameters of the metric: ``k``; ``p``; ``price``, ``p``, ``loss``.

    Returns
    -------
    float
        It may be out of the range of the metric where `hidden` does not go with the rows.

    Examples
    --------
    >>> from toprank.metrics import auc, unlabelled_value
    >>> y, s = [1, 1, 0, 0, 0, 0, 0, 0], [8, 5, 7, 6, 4, 3, 2, 1]
    >>> round(auc(y, s), 3), round(unlabelled_value("auc", y, s, 0.2), 3)
    (0.833, 0.917)
    """
    known = hidden_metric(metric)
    (share,) = {*check_hidden(hidden)} if np.ndim(hidden) == 0 else (None,)
    if share is None:
        raise ValueError(f"hidden={hidden!r}: expected one share; intervals take a range.")
    rows = OpenLabels.read(y_true, y_score, unlabelled, pos_label)
    if known.hidden is Hidden.HEIGHTS:
        return HiddenHeights.of(known, rows, metric_kwargs).value(rows.share_of_others(share))
    naive = known.function(rows.positive, rows.scores, **metric_kwargs)
    return correct_value(known, float(naive), rows, share)


def hidden_metric(metric: str | Callable[..., float]) -> Metric:
    """The metric by its name; ValueError where there is no correction for hidden positives."""
    known = as_metric(metric)
    if known.hidden is None:
        names = sorted(name for name, one in METRICS.items() if one.hidden is not None)
        raise ValueError(
            f"There is no correction of {known.name!r} for hidden positives: expected one of "
            f"{names}."
        )
    return known


def check_hidden(hidden: Any) -> tuple[float, float]:
    """The least and the largest share of hidden positives."""
    ends = (hidden, hidden) if np.ndim(hidden) == 0 else tuple(hidden)
    if len(ends) != 2 or not all(is_number(one) and 0 <= one < 1 for one in ends):
        raise ValueError(
            f"hidden={hidden!r}: expected a share of positives among the unlabelled rows, in "
            "[0, 1), or the least and the largest it may be."
        )
    return float(min(ends)), float(max(ends))


def correct_value(metric: Metric, naive: float, rows: OpenLabels, hidden: float) -> float:
    """A share of pairs or of labels with the hidden positives known, from that without."""
    share = rows.share_of_others(hidden)
    if metric.hidden is Hidden.PAIRS:
        return (naive - share / 2) / (1 - share)
    if metric.hidden is Hidden.LABELS:
        return naive * (rows.n_positive + share * rows.n_others) / rows.n_positive
    return naive


def count_positives(n: int) -> str:
    """Return the beginning of a sentence that says how many positives are labelled.

    Examples
    --------
    >>> count_positives(1), count_positives(3)
    ('There is 1 labelled positive', 'There are 3 labelled positives')
    """
    return "There is 1 labelled positive" if n == 1 else f"There are {n} labelled positives"


class HiddenHeights:
    """Prices of heights: of all rows not known to be positive, and of the known positives.

    Parameters
    ----------
    price, loss : Price, Loss
    known, others : ndarray
        Scores of the known positives, and of the other rows.
    normalize : bool
        Whether heights are shares of the positives and the value is the p-th root of their mean
        price; else the value is the sum over the negatives of a table whose hidden positives are
        known.
    """

    def __init__(
        self, price: Price, loss: Loss, known: FloatArray, others: FloatArray, normalize: bool
    ) -> None:
        self.price, self.normalize = price, normalize
        self._sizes = len(known), len(others)
        self._of_others = pair_sum(loss, known, others)
        self._of_known = pair_sum(loss, known, known)
        self._own = float(loss.value(np.zeros(1))[0])

    @classmethod
    def of(cls, metric: Metric, rows: OpenLabels, settings: Mapping[str, object]) -> HiddenHeights:
        """Those of `pnorm_risk` or `push_risk`, by its parameters."""
        if rows.n_positive < _FEWEST:
            raise ValueError(f"{count_positives(rows.n_positive)}; expected at least {_FEWEST}.")
        normalize = metric.name == "pnorm_risk"
        price, loss = (_of_counts if normalize else _of_settings)(metric.name, dict(settings))
        check_margins(rows.scores, loss)
        # in order, which sums of many rows are quicker for
        known, others = np.sort(rows.scores[rows.positive]), np.sort(rows.scores[~rows.positive])
        return cls(price, loss, known, others, normalize)

    def value(self, share: float) -> float:
        """The corrected value for a share of hidden positives among the others."""
        return self.counted(*map(np.ones, self._sizes))(share)

    def counted(self, of_known: FloatArray, of_others: FloatArray) -> Callable[[float], float]:
        """From a share to the value, where rows count so many times: heights are summed once."""
        known, others = self._sizes
        among, height = self._of_known.log_heights(of_known), self._of_others.log_heights(of_known)
        with np.errstate(divide="ignore"):
            alone = np.log(self._own) - among  # a positive is not above itself
            rest = np.log1p(-np.exp(np.minimum(alone, 0.0)))
            weights = np.log(of_others / others), np.log(of_known / known)
        among = np.where(among > -np.inf, among + rest, -np.inf) - np.log(known - 1)
        height = height - np.log(known)

        def value(share: float) -> float:
            grow = 0.0 if self.normalize else float(np.log(known + share * others))
            of_rows, of_positives = (
                self.price.log_risk(logs + grow, weight)
                for logs, weight in zip((height, among), weights, strict=True)
            )
            if of_rows == -np.inf:
                return 0.0
            with np.errstate(over="ignore"):
                left = max(0.0, 1 - share * float(np.exp(of_positives - of_rows)))
                mean = left * float(np.exp(of_rows)) if left else 0.0
            if not self.normalize:
                return mean * others
            assert isinstance(self.price, Power)
            return float((mean / (1 - share)) ** (1 / self.price.p))

        return value


def _of_counts(name: str, settings: dict[str, Any]) -> tuple[Price, Loss]:
    p = settings.pop("p", None)
    if settings.pop("normalize", True) is not True or settings:
        raise ValueError(f"{name} of unlabelled rows takes p, and is normalised.")
    if not (is_number(p) and 1 <= p < np.inf):
        raise ValueError(f"p={p!r}: expected a finite number >= 1.")
    return Power(float(p)), get_loss("zero_one")


def _of_settings(name: str, settings: dict[str, Any]) -> tuple[Price, Loss]:
    price = get_price(settings.pop("price", "power"), settings.pop("p", 1.0))
    loss = get_loss(settings.pop("loss", "exponential"))
    if settings.pop("end", "top") != "top" or settings:
        raise ValueError(
            f"{name} of unlabelled rows takes price, p and loss, for the top of the list."
        )
    if isinstance(price, Max | Exponential) or price.outer != "losers":
        raise ValueError(
            f"There is no correction of {name} with the price {price.name!r} for hidden positives: "
            "expected 'identity', 'power' or a price of your own, summed over negatives."
        )
    return price, loss
