"""What to expect of a measurement that is only planned: widths of intervals, and variances."""

from __future__ import annotations

from math import floor

import numpy as np
from scipy.special import logit, ndtri
from scipy.stats import binom

from toprank.inference.auc_models import auc_difference_variance
from toprank.inference.designs import check_area, check_fraction, check_share
from toprank.inference.shares import check_level, clopper_pearson
from toprank.metrics._inputs import is_number


def logit_half_width(area: float, error: float, level: float) -> float:
    """Half of expit(logit A + r) - expit(logit A - r), which keeps its digits however small r."""
    reach, place = normal_quantile(level) * error / (area * (1 - area)), float(logit(area))
    ends = np.exp(np.array([-2 * reach, place - reach, -place - reach]))
    return float(-np.expm1(-2 * reach) / (1 + np.sum(ends))) / 2


def planned_trials(
    value: float, k: int, fraction: float | None, local_precision: float | None
) -> int:
    """Independent trials with the variance of the precision of k rows."""
    if fraction is not None:
        check_fraction(fraction)
    if local_precision is None:
        return k
    gap = value - check_share("local_precision", local_precision)
    own, moving = value * (1 - value), (1 - (fraction or 0.0)) * gap**2
    share = own / (own + moving) if own > 0 else float(gap == 0)
    return max(1, floor(k * share + 1e-9))


def clopper_pearson_half_width(value: float, trials: int, level: float) -> float:
    """Half the length of the exact binomial interval, averaged over the number of positives."""
    first, last = max(0, int(binom.ppf(1e-10, trials, value))), int(binom.isf(1e-10, trials, value))
    # the length is smooth in the hits, so some thousand of them stand for all
    hits = np.arange(first, last + 1, 1 + (last - first) // 4000)
    with np.errstate(over="ignore"):  # of a subnormal value older SciPy warns, and is right
        chance = binom.pmf(hits, trials, value)
    low, high = clopper_pearson(hits / trials, float(trials), level)
    return float(np.dot(chance, high - low) / np.sum(chance)) / 2


def area_difference_variance(
    metric: str,
    value: float,
    difference: float,
    correlation: float,
    positives: int,
    negatives: int,
    spread: float,
) -> float:
    """Variance of the difference of two areas, or errors, of binormal scores."""
    if not (is_number(correlation) and -1 <= correlation <= 1):
        raise ValueError(f"correlation={correlation!r}: expected a number from -1 to 1.")
    check_area(metric, value + difference)
    # errors differ as the areas do: to exchange the classes changes nothing
    return auc_difference_variance(
        value, difference, float(correlation), positives, negatives, float(spread)
    )


def precision_difference_variance(value: float, difference: float, k: int, overlap: float) -> float:
    """Variance of the difference of two precisions at k, whose lists share some rows."""
    if not (is_number(overlap) and 0 <= overlap < 1):
        raise ValueError(f"overlap={overlap!r}: expected a share in [0, 1).")
    middle = value + check_share("value + difference", value + difference)
    apart = abs(difference) / (2 * (1 - overlap))
    shares = np.array([middle / 2 - apart, middle / 2 + apart])
    if np.any(shares < -1e-12) or np.any(shares > 1 + 1e-12):
        raise ValueError(
            f"A difference of {difference:g} cannot come from a share of {1 - overlap:g} of the "
            "rows: expected a smaller difference or overlap."
        )
    shares = np.clip(shares, 0.0, 1.0)
    return float(np.sum(shares * (1 - shares))) * (1 - overlap) / k


def normal_quantile(level: float) -> float:
    """How many standard errors an interval of this level reaches to either side."""
    return float(-ndtri((1 - check_level(level)) / 2))
