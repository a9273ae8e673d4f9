"""Rows and pairs: the door that checks them, which rows face which, relations between rows."""

from toprank.pairs.door import check_span, check_weights, distinct_labels, repetition_counts
from toprank.pairs.relations import (
    Explicit,
    Graded,
    IntArray,
    Pairs,
    Relation,
    check_pairs,
    relation_of,
)
from toprank.pairs.sides import ENDS, End, Sides, orient

__all__ = [
    "ENDS",
    "End",
    "Explicit",
    "Graded",
    "IntArray",
    "Pairs",
    "Relation",
    "Sides",
    "check_pairs",
    "check_span",
    "check_weights",
    "distinct_labels",
    "orient",
    "relation_of",
    "repetition_counts",
]
