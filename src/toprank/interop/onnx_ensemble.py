"""Members of an ensemble as ONNX: prepared linear rankers and trees that lie in arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from toprank.interop.onnx_trees import add_plain_trees, category_numbers
from toprank.interop.tree_forms import forest_trees

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from toprank.interop.onnx_nodes import Nodes


def add_prepared_columns(graph: Nodes, ranker: BaseEstimator, X: str) -> str:
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


def add_forest(graph: Nodes, ranker: BaseEstimator, X: str) -> str:
    """Append the trees of a member that keeps them as arrays and return the name of their sums."""
    codes = _add_codes(graph, X, ranker._columns.categories, int(ranker.n_features_in_))
    sums = add_plain_trees(graph, forest_trees(ranker._forest), codes)
    return str(graph.add("Add", sums, graph.constant(np.array([float(ranker._base)]))))


def add_log_odds(graph: Nodes, ranker: BaseEstimator, share: str) -> str:
    """Append the log-odds of a forest's shares."""
    least = 0.1 * min(ranker._share, 1.0 - ranker._share)
    ends = (graph.constant(np.array(0.0)), graph.constant(np.array(1.0)))
    share = graph.add("Clip", share, *ends)
    up = graph.add("Log", graph.add("Add", share, graph.constant(np.array([least]))))
    rest = graph.add("Sub", graph.constant(np.array([1.0 + least])), share)
    return str(graph.add("Sub", up, graph.add("Log", rest)))


def _add_codes(graph: Nodes, X: str, categories: dict[int, np.ndarray], d: int) -> str:
    """Append the places of categories among the known ones, NaN for others, in their columns."""
    for column, known in categories.items():
        values = category_numbers(known, column)
        if not len(values):
            values = np.array([np.nan])  # equal to nothing
        x = graph.add("Gather", X, graph.constant(np.array([column], dtype=np.int64)), axis=1)
        same = graph.add("Cast", graph.add("Equal", x, graph.constant(values[None, :])),
                         to=graph.double)  # fmt: skip
        places = graph.constant(np.arange(1, len(values) + 1, dtype=np.float64)[:, None])
        place = graph.add("MatMul", same, places)  # from one on; zero where none is equal
        unknown = graph.add("Less", place, graph.constant(np.array(0.5)))
        code = graph.add("Sub", place, graph.constant(np.array(1.0)))
        code = graph.add("Where", unknown, graph.constant(np.array(np.nan)), code)
        here = np.zeros((1, d), dtype=bool)
        here[0, column] = True
        X = graph.add("Where", graph.constant(here), code, X)
    return X
