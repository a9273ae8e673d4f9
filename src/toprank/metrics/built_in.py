"""The metrics of this library, each with what is known of it: one entry per metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from toprank.metrics import (
    at_cut,
    at_k,
    curve_expansions,
    left_out_expansions,
    margins,
    place_sums,
    push,
    retrieval,
    risk,
    roc,
    thresholds,
    value,
)
from toprank.metrics.metric import (
    ENDLESS,
    LOWER,
    LOWER_AT_RANDOM,
    NEITHER,
    POSITIVE,
    REAL,
    SAME_AT_RANDOM,
    SHARE,
    TWO_NEW_ROWS,
    UPPER_AT_RANDOM,
    CurvePoint,
    Extreme,
    Hidden,
    Metric,
    Planned,
    Swaps,
)
from toprank.prices import Max, get_price

if TYPE_CHECKING:
    from toprank.prices import Price

_AT_K = {"k": 0.1}
_EXTREME_OF_SAMPLE = Extreme(
    advice="Use margin_error(theta=...), pnorm_risk(p=...) or positives_at_top instead."
)


def _risk_values(normalize: bool = False, log: bool = False, **_: object) -> tuple[float, float]:
    """Range of a risk of heights, or of its logarithm."""
    high = 1.0 if normalize else np.inf
    return (-np.inf, float(np.log(high))) if log else (0.0, high)


def _height(normalize: bool = False, log: bool = False) -> Extreme:
    """The height of the highest negative: the positives that are not above it."""

    def report(above: float, positives: float) -> float:
        height = 1 - above if normalize else (1 - above) * positives
        if not log:
            return height
        return float(np.log(height)) if height > 0 else -np.inf

    return Extreme(report)


def _positives_above(normalize: bool = True, negatives: int = 1) -> Extreme | None:
    if negatives != 1:
        return None
    return Extreme(lambda above, positives: above if normalize else above * positives)


def _curve_at_zero(fpr: float) -> Extreme | None:
    return Extreme(lambda above, positives: above) if fpr == 0 else None


def _infinite_power(
    p: float, normalize: bool = False, margin: float = 0.0, log: bool = False
) -> Extreme | None:
    if p != np.inf:
        return None
    if not margin:
        return _height(normalize, log)
    return Extreme(advice="Use a finite p.")


def _price_of_maximum(
    price: str | Price | tuple[object, ...] = "power", p: float = 1.0, **_: object
) -> Extreme | None:
    return _EXTREME_OF_SAMPLE if isinstance(get_price(price, p), Max) else None


BUILT_IN = (
    Metric(
        roc.auc,
        True,
        LOWER_AT_RANDOM,
        roc.auc_of,
        values=SHARE,
        estimand=ENDLESS,
        expansion=curve_expansions.auc_expansion,
        empty_ties=True,
        planned=Planned.RIGHT_PAIRS,
        hidden=Hidden.PAIRS,
        order_only=True,
    ),
    Metric(
        roc.partial_auc,
        True,
        LOWER_AT_RANDOM,
        roc.partial_auc_of,
        values=SHARE,
        estimand=ENDLESS,
        expansion=curve_expansions.partial_auc_expansion,
        swaps=Swaps(up_to=1000, of_orders=roc.partial_auc_of_orders),
        empty_ties=True,
        order_only=True,
    ),
    Metric(
        roc.misranking_error,
        False,
        UPPER_AT_RANDOM,
        roc.misranking_error_of,
        values=SHARE,
        estimand=ENDLESS,
        expansion=curve_expansions.misranking_error_expansion,
        empty_ties=True,
        planned=Planned.WRONG_PAIRS,
        order_only=True,
    ),
    Metric(
        roc.tpr_at_fpr,
        True,
        LOWER_AT_RANDOM,
        roc.tpr_at_fpr_of,
        settings={"fpr": 0.1},
        values=SHARE,
        estimand=ENDLESS,
        extreme=_curve_at_zero,
        cut=at_cut.tpr_cut,
        expansion=curve_expansions.tpr_at_fpr_expansion,
        order_only=True,
    ),
    Metric(
        thresholds.precision_at_recall,
        True,
        LOWER_AT_RANDOM,
        thresholds.precision_at_recall_of,
        settings={"recall": 0.5},
        values=SHARE,
        estimand=ENDLESS,
        expansion=curve_expansions.precision_at_recall_expansion,
        curve_point=CurvePoint.PRECISION,
        order_only=True,
    ),
    Metric(
        thresholds.recall_at_precision,
        True,
        LOWER_AT_RANDOM,
        thresholds.recall_at_precision_of,
        settings={"precision": 0.8},
        values=SHARE,
        estimand=ENDLESS,
        curve_point=CurvePoint.RECALL,
        order_only=True,
    ),
    Metric(
        risk.ranking_risk,
        False,
        NEITHER,
        risk.ranking_risk_of,
        values=SHARE,
        estimand=TWO_NEW_ROWS,
        kernel="ranking",
        order_only=True,
    ),
    Metric(
        push.pnorm_risk,
        False,
        NEITHER,
        push.pnorm_risk_of,
        settings={"p": 4.0},
        values=_risk_values,
        estimand=ENDLESS,
        extreme=_infinite_power,
        expansion=left_out_expansions.pnorm_risk_expansion,
        empty_ties=True,
        hidden=Hidden.HEIGHTS,
        order_only=lambda margin=0.0, **_: margin == 0,
    ),
    Metric(
        push.max_height,
        False,
        NEITHER,
        push.max_height_of,
        values=_risk_values,
        extreme=_height,
        order_only=True,
    ),
    Metric(
        push.push_risk,
        False,
        NEITHER,
        values=_risk_values,
        estimand=ENDLESS,
        extreme=_price_of_maximum,
        hidden=Hidden.HEIGHTS,
    ),
    Metric(
        at_k.positives_at_top,
        True,
        LOWER_AT_RANDOM,
        at_k.positives_at_top_of,
        values=lambda normalize=True, negatives=1: SHARE if normalize else POSITIVE,
        extreme=_positives_above,
        steadier={"negatives": 5},
        order_only=True,
    ),
    Metric(
        at_k.top_is_positive,
        True,
        LOWER,
        each_list=at_k.top_is_positive_each,
        values=SHARE,
        cut=at_cut.top_is_positive_cut,
        gains=at_cut.top_is_positive_gains,
        order_only=True,
    ),
    Metric(
        at_k.precision_at,
        True,
        LOWER,
        each_list=at_k.precision_at_each,
        settings=_AT_K,
        values=SHARE,
        cut=at_cut.precision_at_cut,
        gains=at_cut.precision_at_gains,
        planned=Planned.LABELS,
        hidden=Hidden.LABELS,
        order_only=True,
    ),
    Metric(
        at_k.recall_at,
        True,
        SAME_AT_RANDOM,
        each_list=at_k.recall_at_each,
        settings=_AT_K,
        values=SHARE,
        cut=at_cut.recall_at_cut,
        gains=at_cut.recall_at_gains,
        hidden=Hidden.NOTHING,
        order_only=True,
    ),
    Metric(
        at_k.lift_at,
        True,
        SAME_AT_RANDOM,
        each_list=at_k.lift_at_each,
        settings=_AT_K,
        values=POSITIVE,
        cut=at_cut.lift_at_cut,
        gains=at_cut.lift_at_gains,
        order_only=True,
    ),
    Metric(
        at_k.enrichment_factor,
        True,
        SAME_AT_RANDOM,
        each_list=at_k.enrichment_factor_each,
        settings=_AT_K,
        values=POSITIVE,
        cut=at_cut.enrichment_factor_cut,
        gains=at_cut.enrichment_factor_gains,
        order_only=True,
    ),
    Metric(
        at_k.ndcg_at,
        True,
        NEITHER,
        each_list=at_k.ndcg_at_each,
        settings=_AT_K,
        values=SHARE,
        cut=at_cut.ndcg_at_cut,
        gains=at_cut.ndcg_at_gains,
        order_only=True,
    ),
    Metric(
        retrieval.average_precision,
        True,
        LOWER_AT_RANDOM,
        retrieval.average_precision_of,
        values=SHARE,
        estimand=ENDLESS,
        expansion=left_out_expansions.average_precision_expansion,
        swaps=Swaps(up_to=4000, of_places=retrieval.precision_of_places),
        by_place=lambda found, places: found / places / found[-1],
        order_only=True,
    ),
    Metric(
        retrieval.bedroc,
        True,
        NEITHER,
        retrieval.bedroc_of,
        values=SHARE,
        estimand=ENDLESS,
        expansion=curve_expansions.bedroc_expansion,
        order_only=True,
    ),
    Metric(
        retrieval.dcg,
        True,
        LOWER,
        retrieval.dcg_of,
        values=POSITIVE,
        cut=place_sums.dcg_cut,
        moves=place_sums.dcg_moves,
        of_resample=retrieval.dcg_of_resample,
        swaps=Swaps(up_to=4000, of_places=retrieval.discount_of_places),
        by_place=lambda _, places: 1.0 / np.log1p(places),
        order_only=True,
    ),
    Metric(
        retrieval.aver,
        True,
        LOWER,
        retrieval.aver_of,
        values=POSITIVE,
        cut=place_sums.aver_cut,
        moves=place_sums.aver_moves,
        of_resample=retrieval.aver_of_resample,
        swaps=Swaps(up_to=4000, of_places=np.reciprocal),
        by_place=lambda _, places: 1.0 / places,
        order_only=True,
    ),
    Metric(
        margins.ranking_margin,
        True,
        NEITHER,
        margins.ranking_margin_of,
        values=REAL,
        extreme=lambda norm=1.0: _EXTREME_OF_SAMPLE,
        order_only=True,
    ),
    Metric(
        margins.margin_error,
        False,
        NEITHER,
        margins.margin_error_of,
        settings={"theta": 0.0},
        values=SHARE,
        estimand=ENDLESS,
        expansion=curve_expansions.margin_error_expansion,
        order_only=lambda theta: theta == 0,
    ),
    Metric(
        value.value_at,
        True,
        LOWER,
        settings=_AT_K,
        values=REAL,
        cut=at_cut.value_at_cut,
        gains=at_cut.value_at_gains,
        worth=value.worth_of_rows,
        pulls=value.pulls_of_rows,
        each_group=value.value_each,
        row_settings=("benefit", "cost"),
    ),
)

#: Metrics that have intervals, but no better direction.
UNDIRECTED = (Metric(margins.f_skew),)
