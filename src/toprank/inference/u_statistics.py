r"""U-statistics of degree two and their Hoeffding decomposition.

.. math:: U_n = \frac{1}{n(n-1)} \sum_{i \ne j} q(Z_i, Z_j) = \theta + 2 T_n + W_n

where T_n is the mean of h(Z_i) = E[q(Z_i, Z) | Z_i] - theta and W_n is a U-statistic whose kernel
q - theta - h - h is degenerate (Clémençon, Lugosi & Vayatis 2006, Appendix 1). T_n is the leading
term: W_n has a variance of order 1/n^2. In the sample the decomposition is an analysis of
variance of the pairs: a common value, a main effect for each row, and what the rows do not explain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from toprank._arrays import AnyArray
from toprank._numerics import FloatArray
from toprank.inference.hoeffding import (
    Kernel,
    Moments,
    effects_of_rows,
    moments_of,
    moments_of_ranking,
    spread_between_groups,
    variance_components,
)
from toprank.inference.shares import agreement_interval, check_level, on_logit
from toprank.metrics.risk import check_real_ranking, weight_of_rows
from toprank.pairs import check_groups

#: Skewness of the influences over the root of the rows beyond which the normal limit is far.
_SKEWED = 0.3
#: So few rows need not show a long tail that the kernel has.
_FEW_ROWS = 50
_TAIL_NOT_SEEN = (
    "{} rows need not show a long tail of the kernel: where it has one, an interval covers less "
    "than it says. Take 50 rows or more, or give support=(smallest, largest)"
)


@dataclass(frozen=True, eq=False)
class UStatistic:
    """A U-statistic of degree two with the parts of its Hoeffding decomposition.

    Attributes
    ----------
    value : float
        The statistic, the mean of the kernel over the ordered pairs of different rows.
    projection : ndarray of shape (n,)
        Mean of the kernel over the pairs of each row: an estimate of E[q(z, Z)] at that row. Its
        mean is `value`. An absent row, of weight zero, has `value` here, so no influence.
    zeta_1 : float
        Unbiased estimate of Var(E[q(z, Z)]), the variance of the projection. It can be negative,
        where the kernel is degenerate or the sample small.
    zeta_2 : float
        Unbiased estimate of Var(q(Z, Z')), the variance of the kernel.
    variance : float
        Estimated variance of `value`: Hoeffding's formula, 4 zeta_1/n + 2 (zeta_2 - 2 zeta_1) /
        (n (n - 1)), whose first term is left out where `zeta_1` is negative (the conservative
        choice); or, with groups, the sum of squares of the groups' summed influences.
    freedom : float
        Degrees of freedom of `variance`, from the fourth moment of the projection: few, where a
        few rows account for most of it.
    rows : float
        Number of rows, or their weight.
    groups : int or None
        Number of groups that count as independent, if not the rows.
    support : tuple of two floats or None
        Smallest and largest value the kernel can take, if known.
    lowest : float
        Smallest value of the kernel over the pairs of the sample.
    """

    value: float
    projection: FloatArray
    zeta_1: float
    zeta_2: float
    variance: float
    freedom: float
    rows: float
    groups: int | None
    support: tuple[float, float] | None
    lowest: float
    _kernel: Kernel
    _data: AnyArray
    _weight: FloatArray

    @property
    def standard_error(self) -> float:
        """Square root of the variance."""
        return float(np.sqrt(self.variance))

    @property
    def influence(self) -> FloatArray:
        """First-order influence of each row on the value: twice the centred projection."""
        return 2 * (self.projection - self.value)

    @property
    def linear_variance(self) -> float:
        """Unbiased estimate of the variance of 2 T_n, the sum of independent terms."""
        return 4 * self.zeta_1 / self.rows

    @property
    def remainder_variance(self) -> float:
        """Unbiased estimate of the variance of W_n, the degenerate remainder."""
        return 2 * (self.zeta_2 - 2 * self.zeta_1) / (self.rows * (self.rows - 1))

    @property
    def skewness(self) -> float:
        """Skewness of the influences of the rows; zero where they have no spread."""
        pulls, share = self.projection - self.value, self._weight / self.rows
        spread = float(np.dot(share, pulls**2))
        return float(np.dot(share, (pulls / np.sqrt(spread)) ** 3)) if spread > 0 else 0.0

    @property
    def few_rows_decide(self) -> bool:
        """Whether the influences are so skewed that the normal limit is far."""
        return abs(self.skewness) > _SKEWED * float(np.sqrt(len(self.projection)))

    @property
    def note(self) -> str:
        """What to know of the interval: that a few rows may carry most of its error; or nothing.

        The error of the normal limit is of the order of the skewness of the influences over the
        root of the number of rows, and of few rows the skewness is not known well. A kernel with a
        `support` has its interval on a scale that takes the skewness off.
        """
        skewness, count = self.skewness, len(self.projection)
        if self.support is not None:
            return ""
        if not self.few_rows_decide:
            return "" if count >= _FEW_ROWS else _TAIL_NOT_SEEN.format(count)
        end = "upper" if skewness > 0 else "lower"
        said = f"an interval covers less than it says, and its {end} end is too near"
        if self._on_log_scale and skewness > 0:
            said = "the upper end allows for that, but a tail as long as a lognormal one needs more"
        return (
            f"a few rows carry most of the error (skewness {skewness:.2g} of the influences of "
            f"{count} rows): {said}. Take more rows, a bounded kernel with its support, or a scale "
            "of the data with shorter tails, such as their logarithm"
        )

    def remainder(self, i: ArrayLike, j: ArrayLike) -> FloatArray:
        r"""The degenerate kernel of W_n at pairs of rows: what the two rows do not explain.

        .. math:: \hat h(i, j) = q(Z_i, Z_j) - U_n - \hat h_i - \hat h_j

        with the least-squares effects of the rows, so that its sum over the pairs of any one row
        is zero, and so is the sample's W_n.

        Parameters
        ----------
        i, j : int or array-like of ints
            Row numbers, of shapes that broadcast; no row may meet itself.

        Returns
        -------
        ndarray
            One number per pair.
        """
        first, second = np.broadcast_arrays(np.asarray(i, dtype=np.intp), j)
        if np.any(first == second):
            raise ValueError("i and j name the same row: expected two different rows.")
        effect = effects_of_rows(self.projection, self.value, self.rows)
        kernel = np.asarray(self._kernel(self._data[first], self._data[second]), dtype=np.float64)
        return np.asarray(kernel - self.value - effect[first] - effect[second])

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        r"""Confidence interval for theta, the expected value of the kernel.

        Student's t around the value, with `freedom`. Where no pair is below zero, as with the
        variance of a sample, on the scale of log(U), by leaving out each row in turn, and longer
        above and shorter below where the influences are skewed. With a support (a, b), on the scale
        of log((U - a) / (b - U)), so that it stays inside. Where every pair has the same value, as
        in a perfect ranking, the variance is zero, and the interval comes from the
        floor(n / 2) independent pairs there are: a share of more than
        1 - ((1 - level) / 2)^(1 / floor(n / 2)) with other values would have shown one. The normal
        limit needs a kernel that is not degenerate, and so `zeta_1` clearly above zero.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level.

        Returns
        -------
        low, high : float
            The ends of the interval.
        """
        check_level(level)
        if self.support is not None:
            low, high = self.support
            ends = self._shares(level, low, high)
            return low + (high - low) * ends[0], low + (high - low) * ends[1]
        if self.variance == 0:
            raise ValueError(
                f"Every pair has the same value, {self.value:g}, so the sample does not show its "
                "error. Give support=(smallest, largest), the values the kernel can take, for an "
                "interval from the number of independent pairs."
            )
        reach = float(student.isf((1 - level) / 2, self.freedom))
        if self._on_log_scale:
            error, skew = self._spread_of_log()
            below, above = np.exp(-reach * error / skew), np.exp(min(300.0, reach * error * skew))
            return float(self.value * below), float(self.value * above)
        return self.value - reach * self.standard_error, self.value + reach * self.standard_error

    @property
    def _on_log_scale(self) -> bool:
        """Whether the sample shows a positive kernel, whose logarithm is nearer to normal."""
        positive = self.lowest >= -1e-12 * self.value and self.value > 0
        return positive and self.support is None and self.groups is None

    def _spread_of_log(self) -> tuple[float, float]:
        """Jackknife error of the statistic's logarithm, and how much further up than down it goes.

        The first term of the skewness in the law of a studentised mean (Hall 1992) is of the order
        of the skewness of the influences over the root of the rows.
        """
        n = self.rows
        left = (n - 2 * self.projection / self.value) / (n - 2)
        logs = np.log(np.maximum(left, 1 / n))
        centre = np.dot(self._weight, logs) / n
        variance = (n - 1) / n * float(np.dot(self._weight, (logs - centre) ** 2))
        return float(np.sqrt(variance)), 1 + max(0.0, self.skewness) / float(np.sqrt(n))

    def _shares(self, level: float, low: float, high: float) -> tuple[float, float]:
        """Ends of the interval as shares of the support."""
        below, above = (self.value - low) / (high - low), (high - self.value) / (high - low)
        # fractional weights may miss an end of the support by rounding error
        if self.variance == 0 or min(below, above) <= 1e-14:
            independent = self.rows if self.groups is None else self.groups
            return agreement_interval(below, independent // 2, level)
        # the logit of a share has the derivative 1 / (below above)
        error = self.standard_error / (high - low) / (below * above)
        return on_logit(float(np.log(below / above)), error, self.freedom, level)

    def __str__(self) -> str:
        counted = f"{self.rows:g} rows" + (f" in {self.groups} groups" if self.groups else "")
        parts = [
            ("value", self.value),
            ("standard error", self.standard_error),
            ("zeta_1, variance of the projection", self.zeta_1),
            ("zeta_2, variance of the kernel", self.zeta_2),
            ("variance of the linear part", self.linear_variance),
            ("variance of the remainder", self.remainder_variance),
        ]
        lines = [f"{name:<34}  {number:>12.6g}" for name, number in parts]
        if self.note:
            lines.append(f"Note: {self.note}.")
        return "\n".join([f"U-statistic of degree two, {counted}", *lines])

    __repr__ = __str__


def u_statistic(
    kernel: str | Kernel,
    Z: ArrayLike,
    *,
    symmetrize: bool = False,
    support: tuple[float, float] | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> UStatistic:
    r"""U-statistic of degree two, with its Hoeffding decomposition and variance.

    .. math::
        U_n = \frac{1}{n(n-1)} \sum_{i \ne j} q(Z_i, Z_j), \qquad
        \mathrm{Var}(U_n) = \frac{4(n-2)\,\zeta_1 + 2\,\zeta_2}{n(n-1)}

    with zeta_1 = Var(E[q(Z, Z') | Z]) and zeta_2 = Var(q(Z, Z')).

    Parameters
    ----------
    kernel : "ranking" or callable
        "ranking" is `ranking_kernel`, whose U-statistic is `toprank.metrics.ranking_risk`, in
        O(n log n). A callable ``kernel(a, b)`` is given two arrays of rows that broadcast
        against each other, of shapes (m, 1) and (1, m') or, where Z has d columns, (m, 1, d) and
        (1, m', d), and returns an (m, m') array. All pairs are evaluated, block by block:
        O(n^2) time, O(n) memory.
    Z : array-like of shape (n,) or (n, d)
        The sample; for "ranking", two columns: label and score.
    symmetrize : bool, default=False
        Replace q(a, b) by (q(a, b) + q(b, a)) / 2. Without it the kernel has to be symmetric,
        which is checked within each block: on every pair, if all rows fit into one.
    support : tuple of two floats, optional
        Smallest and largest value of the kernel, for intervals that stay inside. "ranking" has
        (0, 1).
    groups : array-like of shape (n,), optional
        Rows of the same group may depend on each other. The variance then comes from the sums of
        the projection within groups; `zeta_1` and `zeta_2` still take rows as independent.
    sample_weight : array-like of shape (n,), optional
        Repetition counts. Copies of a row are rows of their own, which form pairs with each
        other; for weights that are not counts of independent rows, such as inverse
        propensities, use ``groups=np.arange(n)`` too.

    Returns
    -------
    UStatistic
        ``.value .projection .zeta_1 .zeta_2 .variance .standard_error .interval(level)``.

    Examples
    --------
    The sample variance is a U-statistic.

    >>> import numpy as np
    >>> from toprank.inference.u_statistics import u_statistic
    >>> x = np.array([1.0, 2.0, 4.0, 7.0, 11.0])
    >>> result = u_statistic(lambda a, b: (a - b) ** 2 / 2, x)
    >>> result.value, float(np.var(x, ddof=1))
    (16.5, 16.5)
    >>> y, score = [1.5, 2.0, 3.5, 9.0, 9.5], [0.1, 0.3, 0.2, 0.4, 0.5]
    >>> risk = u_statistic("ranking", np.column_stack([y, score]))
    >>> risk.value, risk.projection
    (0.1, array([0.  , 0.25, 0.25, 0.  , 0.  ]))
    """
    data = _check_data(Z)
    weight = weight_of_rows(sample_weight, len(data))
    codes = check_groups(groups, len(data))
    total = float(np.sum(weight))
    if total <= 3:
        raise ValueError(
            f"Z has {total:g} row(s), expected at least 4: the variance is estimated from pairs "
            "of pairs without a common row."
        )
    function: Kernel = ranking_kernel
    if kernel == "ranking" or kernel is ranking_kernel:
        support = (0.0, 1.0)
        moments = _moments_of_ranking(*_check_ranked_rows(data, weight))
    else:
        function = _check_kernel(kernel, symmetrize)
        present = weight > 0
        moments = _with_absent_rows(
            moments_of(function, data[present], weight[present], total), present
        )
    zeta_1, zeta_2, spread = variance_components(moments, weight, total)
    count = None
    if codes is not None:
        count, spread = spread_between_groups(moments, weight, codes, total)
    return UStatistic(
        *(moments.mean, moments.by_row, zeta_1, zeta_2, spread.variance, spread.freedom),
        *(total, count, _check_support(support, moments.mean), moments.lowest),
        *(function, data, weight),
    )


def ranking_kernel(a: ArrayLike, b: ArrayLike) -> FloatArray:
    r"""Whether two rows (label, score) are in the wrong order; one half if their scores tie.

    .. math:: q = 1[(y - y')(s - s') < 0] + \tfrac12\, 1[s = s',\ y \ne y']
    """
    a, b = np.asarray(a), np.asarray(b)
    higher, lower = a[..., 0] > b[..., 0], a[..., 0] < b[..., 0]
    above, below = a[..., 1] > b[..., 1], a[..., 1] < b[..., 1]
    tied = (higher | lower) & ~(above | below)
    return np.asarray((higher & below) | (lower & above)) + 0.5 * tied


def ranking_projection(
    y_real: ArrayLike, y_score: ArrayLike, weight: ArrayLike | None = None
) -> tuple[float, FloatArray]:
    """The ranking risk and, for each row, the mean of `ranking_kernel` over its pairs.

    The weighted mean of the rows' means is the risk; an absent row, of weight zero, has the risk
    itself. O(n log n).
    """
    moments = _moments_of_ranking(*check_real_ranking(y_real, y_score, weight))
    return moments.mean, moments.by_row


def _moments_of_ranking(labels: FloatArray, scores: FloatArray, weight: FloatArray) -> Moments:
    present = weight > 0
    kept = labels[present], scores[present], weight[present]
    return _with_absent_rows(moments_of_ranking(*kept, float(np.sum(weight))), present)


def _with_absent_rows(moments: Moments, present: NDArray[np.bool_]) -> Moments:
    """The moments with a place for every row; an absent row gets the mean, so no influence."""
    by_row = np.full(len(present), moments.mean)
    by_row[present] = moments.by_row
    return moments._replace(by_row=by_row)


def _check_data(Z: ArrayLike) -> AnyArray:
    data = np.asarray(Z)
    if data.ndim == 0:
        raise ValueError("Z is one number, expected one row per observation.")
    if data.dtype.kind in "fc" and not np.all(np.isfinite(data)):
        raise ValueError("Z contains NaN or infinity; leave such rows out.")
    return data


def _check_ranked_rows(
    data: AnyArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    if data.ndim != 2 or data.shape[1] != 2:
        raise ValueError(f"Z has shape {data.shape}, expected (n, 2): the label and the score.")
    return check_real_ranking(data[:, 0], data[:, 1], weight)


def _check_kernel(kernel: str | Kernel, symmetrize: bool) -> Kernel:
    if not callable(kernel):
        raise ValueError(f"Unknown kernel {kernel!r}: expected 'ranking' or a function of rows.")
    if not symmetrize:
        return kernel
    return lambda a, b: (np.asarray(kernel(a, b)) + np.asarray(kernel(b, a))) / 2.0


def _check_support(support: tuple[float, float] | None, value: float) -> tuple[float, float] | None:
    if support is None:
        return None
    low, high = (float(end) for end in support)
    if not low <= value <= high or not low < high:
        raise ValueError(
            f"support=({low:g}, {high:g}) does not hold the statistic, {value:g}: expected the "
            "smallest and the largest value the kernel can take."
        )
    return low, high
