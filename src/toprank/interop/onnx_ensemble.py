"""Members of an ensemble as ONNX: prepared linear rankers and trees that lie in arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from toprank.interop.onnx_trees import AT_MOST, Leaf, Split, add_plain_trees


def add_prepared_columns(graph: Any, ranker: Any, X: str) -> str:
    """Append the columns of a `PreparedRanker` and return their name."""
    made, categories = ranker._made, ranker._columns.categories
    x = graph.add("Gather", X, graph.constant(made.plain.astype(np.int64)), axis=1)
    missing = graph.add("IsNaN", x)
    if made.low is not None:
        x = graph.add("Max", x, graph.constant(made.low))
        x = graph.add("Min", x, graph.constant(made.high))
    scaled = graph.add("Div", graph.add("Sub", x, graph.constant(made.centre)),
                       graph.constant(made.spread))  # fmt: skip
    parts = [graph.add("Where", missing, graph.constant(np.array(0.0)), scaled)]
    if len(made.gaps):
        marked = graph.add("Gather", missing, graph.constant(made.gaps.astype(np.int64)), axis=1)
        parts.append(graph.add("Cast", marked, to=graph.double))
    if len(made.coded):
        given = graph.add("Gather", X, graph.constant(made.coded.astype(np.int64)), axis=1)
        known = [
            float(np.asarray(categories[j], dtype=np.float64)[int(code)])
            for j, code in zip(made.coded.tolist(), made.codes.tolist(), strict=True)
        ]
        same = graph.add("Equal", given, graph.constant(np.array(known)))
        parts.append(graph.add("Cast", same, to=graph.double))
    return parts[0] if len(parts) == 1 else str(graph.add("Concat", *parts, axis=1))


def add_forest(graph: Any, ranker: Any, X: str) -> str:
    """Append the trees of a member that keeps them as arrays and return the name of their sums."""
    sums = add_plain_trees(graph, _trees_of(ranker._forest), X)
    return str(graph.add("Add", sums, graph.constant(np.array([float(ranker._base)]))))


def add_log_odds(graph: Any, ranker: Any, share: str) -> str:
    """Append the log-odds of a forest's shares."""
    least = 0.1 * min(ranker._share, 1.0 - ranker._share)
    ends = (graph.constant(np.array(0.0)), graph.constant(np.array(1.0)))
    share = graph.add("Clip", share, *ends)
    up = graph.add("Log", graph.add("Add", share, graph.constant(np.array([least]))))
    rest = graph.add("Sub", graph.constant(np.array([1.0 + least])), share)
    return str(graph.add("Sub", up, graph.add("Log", rest)))


def _trees_of(forest: Any) -> Iterator[Split | Leaf]:
    for root in forest.roots.tolist():
        yield _node(forest, root)


def _node(forest: Any, place: int) -> Split | Leaf:
    left, right = int(forest.left[place]), int(forest.right[place])
    if left < 0:
        return Leaf(float(forest.value[place]))
    column, threshold = int(forest.feature[place]), float(forest.threshold[place])
    yes, no = _node(forest, left), _node(forest, right)
    return Split(column, AT_MOST, threshold, (), True, yes, no)
