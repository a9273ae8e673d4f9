"""How sure is it? Intervals, paired comparisons and bands for every metric of a ranking."""

from toprank.inference.bands import Band, lift_band, precision_recall_band, roc_band
from toprank.inference.hidden_share import hidden_share
from toprank.inference.intervals import interval
from toprank.inference.order_m import OrderedUStatistic, permutation_risk, u_statistic_of_order
from toprank.inference.paired import compare
from toprank.inference.periods import PeriodInterval, period_interval
from toprank.inference.planning import (
    comparison_power,
    comparison_size,
    expected_half_width,
    sample_size,
)
from toprank.inference.result import Comparison, Comparisons, Interval
from toprank.inference.top_groups import GroupAtTop, TopGroups, top_groups
from toprank.inference.u_statistics import UStatistic, u_statistic
from toprank.inference.unlabelled import unlabelled_interval

__all__ = [
    "Band",
    "Comparison",
    "Comparisons",
    "GroupAtTop",
    "Interval",
    "OrderedUStatistic",
    "PeriodInterval",
    "TopGroups",
    "UStatistic",
    "compare",
    "comparison_power",
    "comparison_size",
    "expected_half_width",
    "hidden_share",
    "interval",
    "lift_band",
    "period_interval",
    "permutation_risk",
    "precision_recall_band",
    "roc_band",
    "sample_size",
    "top_groups",
    "u_statistic",
    "u_statistic_of_order",
    "unlabelled_interval",
]
