"""How good is the top of the list? Metrics of any ranker's scores.

Conventions, the same for every metric:

- Labels are any two classes; the larger is positive, or ``pos_label`` says which. Only
  `ranking_risk` takes real-valued labels.
- Ties between a positive and a negative count as a misrank in heights and ranks, and as one half
  in the ROC curve and in the ranking risk. Metrics at k, `top_is_positive` and `bedroc` are exact
  expectations over random orders of tied rows.
- ``sample_weight`` is a repetition count; a row of weight zero is absent.
- ``label_propensity`` is the probability that the row's label was seen. Weights are divided by
  it, for rows that are labelled only because someone looked.
- k is a count (int) or a fraction of the list (float in (0, 1]). With ``groups`` a metric at k is
  the mean over the groups that have a positive, and a group shorter than k is taken whole.
- Scores that lie on a GPU (torch tensors, CuPy arrays) are checked, sorted and summed there, and
  one number comes back. `push_risk`, `rank_risk`, `heights`, `reverse_heights`, `ranking_risk`,
  `value_at`, `best_k` and ``groups`` need scores on the host, and say so.
- Where negatives are merely unlabelled, ``METRICS[name].when_unlabelled`` says what the metric
  bounds (see `toprank.metrics.registry`), and `unlabelled_value` corrects those that can be.
- `register` adds a metric of your own, for all that takes a metric by name.
"""

from toprank.metrics.at_k import (
    enrichment_factor,
    lift_at,
    ndcg_at,
    positives_at_top,
    precision_at,
    recall_at,
    top_is_positive,
)
from toprank.metrics.hidden import unlabelled_value
from toprank.metrics.margins import (
    f_skew,
    margin_distribution,
    margin_error,
    max_margin,
    ranking_margin,
)
from toprank.metrics.metric import Metric
from toprank.metrics.push import (
    heights,
    max_height,
    pnorm_risk,
    push_risk,
    ranks,
    reverse_heights,
)
from toprank.metrics.rank_risk import rank_risk
from toprank.metrics.registry import METRICS, register, scorer, summary
from toprank.metrics.retrieval import aver, average_precision, bedroc, dcg
from toprank.metrics.risk import ranking_risk
from toprank.metrics.roc import auc, misranking_error, partial_auc, tpr_at_fpr
from toprank.metrics.thresholds import precision_at_recall, recall_at_precision, threshold_for
from toprank.metrics.value import best_k, value_at

__all__ = [
    "METRICS",
    "Metric",
    "auc",
    "aver",
    "average_precision",
    "bedroc",
    "best_k",
    "dcg",
    "enrichment_factor",
    "f_skew",
    "heights",
    "lift_at",
    "margin_distribution",
    "margin_error",
    "max_height",
    "max_margin",
    "misranking_error",
    "ndcg_at",
    "partial_auc",
    "pnorm_risk",
    "positives_at_top",
    "precision_at",
    "precision_at_recall",
    "push_risk",
    "rank_risk",
    "ranking_margin",
    "ranking_risk",
    "ranks",
    "recall_at",
    "recall_at_precision",
    "register",
    "reverse_heights",
    "scorer",
    "summary",
    "threshold_for",
    "top_is_positive",
    "tpr_at_fpr",
    "unlabelled_value",
    "value_at",
]
