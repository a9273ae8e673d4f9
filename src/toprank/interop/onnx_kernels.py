"""Kernel rankers as ONNX: K(x, landmarks) times the dual coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from toprank._numerics import FloatArray

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from toprank.interop.onnx_nodes import Nodes


def add_expansion(graph: Nodes, ranker: BaseEstimator, X: str) -> str:
    """Append a `PairRanker` with a kernel and return the name of its scores.

    ValueError, with the reason, for a kernel that is a function of Python.
    """
    kernel, points = ranker._kernel, ranker.landmarks_
    points = points.toarray() if hasattr(points, "toarray") else np.asarray(points)
    if kernel.name not in _KERNELS:
        raise ValueError(
            f"The kernel {kernel.name!r} cannot be written as ONNX: expected one of "
            f"{', '.join(_KERNELS)}."
        )
    if kernel.centre is not None:
        X = graph.add("Sub", X, graph.constant(kernel.centre))
        points = points - kernel.centre
    gram = _KERNELS[kernel.name](graph, X, points.astype(np.float64), kernel.parameters)
    dual = np.asarray(ranker.dual_coef_, dtype=np.float64).reshape(-1, 1)
    scores = graph.add("MatMul", gram, graph.constant(dual))
    return str(graph.add("Add", scores, graph.constant(np.array([float(ranker.intercept_)]))))


def _add_linear(graph: Nodes, X: str, points: FloatArray, parameters: Mapping[str, object]) -> str:
    return str(graph.add("MatMul", X, graph.constant(np.ascontiguousarray(points.T))))


def _add_poly(graph: Nodes, X: str, points: FloatArray, parameters: dict[str, float]) -> str:
    products = _add_linear(graph, X, points, parameters)
    inside = graph.add("Mul", products, graph.constant(np.array(float(parameters["gamma"]))))
    inside = graph.add("Add", inside, graph.constant(np.array(float(parameters["coef0"]))))
    return str(graph.add("Pow", inside, graph.constant(np.array(float(parameters["degree"])))))


def _add_rbf(graph: Nodes, X: str, points: FloatArray, parameters: dict[str, float]) -> str:
    twice = _add_linear(graph, X, 2.0 * points, parameters)
    columns = graph.constant(np.array([1], dtype=np.int64))
    squares = graph.add("ReduceSum", graph.add("Mul", X, X), columns, keepdims=1)
    apart = graph.add("Sub", squares, twice)
    apart = graph.add("Add", apart, graph.constant(np.sum(points**2, axis=1)[None, :]))
    apart = graph.add("Max", apart, graph.constant(np.array(0.0)))  # rounding
    return _add_decay(graph, apart, parameters)


def _add_laplacian(graph: Nodes, X: str, points: FloatArray, parameters: dict[str, float]) -> str:
    rows = graph.add("Unsqueeze", X, graph.constant(np.array([1], dtype=np.int64)))
    apart = graph.add("Abs", graph.add("Sub", rows, graph.constant(points[None, :, :])))
    columns = graph.constant(np.array([2], dtype=np.int64))
    return _add_decay(graph, graph.add("ReduceSum", apart, columns, keepdims=0), parameters)


def _add_decay(graph: Nodes, apart: str, parameters: dict[str, float]) -> str:
    rate = graph.constant(np.array(-float(parameters["gamma"])))
    return str(graph.add("Exp", graph.add("Mul", apart, rate)))


def _add_cosine(graph: Nodes, X: str, points: FloatArray, parameters: Mapping[str, object]) -> str:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    products = _add_linear(graph, X, points / np.where(lengths > 0, lengths, 1.0), parameters)
    columns = graph.constant(np.array([1], dtype=np.int64))
    size = graph.add("Sqrt", graph.add("ReduceSum", graph.add("Mul", X, X), columns, keepdims=1))
    none = graph.add("Equal", size, graph.constant(np.array(0.0)))
    size = graph.add("Where", none, graph.constant(np.array(1.0)), size)
    return str(graph.add("Div", products, size))


_KERNELS = {
    "cosine": _add_cosine,
    "laplacian": _add_laplacian,
    "linear": _add_linear,
    "poly": _add_poly,
    "rbf": _add_rbf,
}
