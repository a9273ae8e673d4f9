"""Rows and pairs: the door that checks them, which rows face which, relations between rows."""

from toprank._arrays import IntArray
from toprank._columns import to_numpy
from toprank._numerics import LARGEST_SIZE
from toprank.pairs.door import (
    check_entries,
    check_related_rows,
    check_rows,
    check_table,
    is_frame,
    read_any_table,
    read_table,
    refuse_huge,
    relate,
)
from toprank.pairs.labels import (
    check_grades,
    check_labels,
    distinct_labels,
    split_classes,
    two_classes,
)
from toprank.pairs.relations import (
    Explicit,
    Graded,
    Pairs,
    Relation,
    check_pairs,
    relation_of,
)
from toprank.pairs.row_columns import (
    check_counts,
    check_groups,
    check_scores,
    check_span,
    check_times,
    check_weights,
    group_labels,
    repetition_counts,
    weigh_classes,
)
from toprank.pairs.rows import RelatedRows, Rows
from toprank.pairs.sides import BALANCES, ENDS, End, Sides, orient
from toprank.pairs.unlabelled import split_unlabelled

__all__ = [
    "BALANCES",
    "ENDS",
    "LARGEST_SIZE",
    "End",
    "Explicit",
    "Graded",
    "IntArray",
    "Pairs",
    "RelatedRows",
    "Relation",
    "Rows",
    "Sides",
    "check_counts",
    "check_entries",
    "check_grades",
    "check_groups",
    "check_labels",
    "check_pairs",
    "check_related_rows",
    "check_rows",
    "check_scores",
    "check_span",
    "check_table",
    "check_times",
    "check_weights",
    "distinct_labels",
    "group_labels",
    "is_frame",
    "orient",
    "read_any_table",
    "read_table",
    "refuse_huge",
    "relate",
    "relation_of",
    "repetition_counts",
    "split_classes",
    "split_unlabelled",
    "to_numpy",
    "two_classes",
    "weigh_classes",
]
