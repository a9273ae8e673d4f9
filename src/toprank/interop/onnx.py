"""Rankers as ONNX models that score as they do.

Linear rankers and sums of stumps become plain arithmetic in double precision, trees a
``TreeEnsemble`` of ``ai.onnx.ml``: in double precision for LightGBM, whose thresholds are doubles,
and in single precision for XGBoost, which computes so itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from toprank._arrays import AnyArray
from toprank._extras import require
from toprank._files import replace_file
from toprank._numerics import FloatArray
from toprank._version import __version__
from toprank.interop.additive import is_additive
from toprank.interop.onnx_ensemble import add_forest, add_log_odds, add_prepared_columns
from toprank.interop.onnx_kernels import add_expansion
from toprank.interop.onnx_trees import add_trees
from toprank.interop.pipelines import is_pipeline, scaling

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

#: The versions of the operators used: those of ONNX 1.17 (October 2024).
_OPSETS = {"": 21, "ai.onnx.ml": 5}
_IR_VERSION = 10
SCORE = "score"


class Graph:
    """An ONNX graph under construction: constants, nodes, inputs.

    Parameters
    ----------
    inputs : collection of str
        The names that inputs will have; nothing else is called so.
    """

    def __init__(self, inputs: Collection[str] = ()) -> None:
        self._taken = frozenset(inputs)
        self.onnx = require("onnx", "onnx")
        self.double = self.onnx.TensorProto.DOUBLE
        self.float = self.onnx.TensorProto.FLOAT
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._inputs: list[ValueInfoProto] = []

    def _free(self, name: str) -> str:
        """The name, or one like it that no input has."""
        while name in self._taken:
            name += "_"
        return name

    def input(self, name: str, element: int, width: int) -> str:
        """Declare an input of shape (rows, width) and return its name."""
        info = self.onnx.helper.make_tensor_value_info(name, element, ["rows", width])
        self._inputs.append(info)
        return name

    def constant(self, values: object) -> str:
        """Keep an array and return its name."""
        name = self._free(f"constant_{len(self._constants)}")
        array = np.asarray(values)
        self._constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: object) -> str:
        """Append a node of one output and return that output's name."""
        name = self._free(f"{operator.lower()}_{len(self._nodes)}")
        node = self.onnx.helper.make_node(
            operator, list(inputs), [name], domain=domain, **attributes
        )
        self._nodes.append(node)
        return name

    def finish(self, scores: str) -> ModelProto:
        """Return the model whose output ``score``, of shape (rows,), is a column of scores.

        Where an input is called so, the output is ``score_``.
        """
        helper, name = self.onnx.helper, self._free(SCORE)
        flat = self.constant(np.array([-1], dtype=np.int64))
        self._nodes.append(helper.make_node("Reshape", [scores, flat], [name]))
        out = helper.make_tensor_value_info(name, self.double, ["rows"])
        graph = helper.make_graph(self._nodes, "toprank", self._inputs, [out], self._constants)
        opsets = [helper.make_opsetid(domain, number) for domain, number in _OPSETS.items()]
        model = helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=_IR_VERSION,
            producer_name="toprank",
            producer_version=__version__,
        )
        self.onnx.checker.check_model(model)
        return model


@dataclass(frozen=True)
class OnnxExport:
    """A model in ONNX, and how it compared with the ranker.

    Attributes
    ----------
    model : onnx.ModelProto
    rows_checked : int
        Rows on which ONNX Runtime was compared; zero if none were given.
    largest_difference : float or None
        The largest absolute difference of the scores on them.
    """

    model: ModelProto
    rows_checked: int = 0
    largest_difference: float | None = None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, whole or not at all."""
        with replace_file(Path(path)) as file:
            file.write(self.model.SerializeToString())


def to_onnx(
    ranker: BaseEstimator,
    path: str | PathLike[str] | None = None,
    *,
    check: object = None,
    tolerance: float = 1e-5,
) -> OnnxExport:
    """Return a fitted ranker as an ONNX model, checked against ONNX Runtime.

    The model has one input ``X``, doubles of shape (rows, d), NaN for missing values, and one
    output ``score``, doubles of shape (rows,).

    Parameters
    ----------
    ranker : estimator
        A linear ranker, a sum of stumps (`RankBoost`, `SmoothMarginRanker`, `AdaBoostRanker`), a
        `PairRanker` with a kernel, `PushTrees`, or a `PushEnsemble` of such; scikit-learn's linear
        classifiers of two classes too; or a pipeline of scikit-learn's scalers with such a ranker
        at its end.
    path : str or path, optional
        Where to write the model, whole or not at all.
    check : array of shape (n, d), optional
        Rows on which ONNX Runtime must give the scores of ``decision_function``.
    tolerance : float, default=1e-5
        The largest difference allowed, relative to the largest score (at least 1).

    Returns
    -------
    OnnxExport
        ``.model``, ``.largest_difference``, ``.save(path)``.

    Raises
    ------
    ValueError
        If the ranker is of another kind, or ONNX Runtime gives other scores.

    Examples
    --------
    >>> from toprank import PNormPush
    >>> from toprank.datasets import load_wdbc
    >>> from toprank.interop.onnx import to_onnx
    >>> X, y = load_wdbc(return_X_y=True)
    >>> export = to_onnx(PNormPush().fit(X, y), check=X)
    >>> export.rows_checked, export.largest_difference < 1e-9
    (569, True)
    """
    check_is_fitted(ranker)
    graph = Graph()
    X = graph.input("X", graph.double, int(ranker.n_features_in_))
    model = graph.finish(add_ranker(graph, ranker, X))
    if check is None:
        export = OnnxExport(model)
    else:
        rows = np.ascontiguousarray(check, dtype=np.float64)
        score = getattr(ranker, "decision_function", ranker.predict)
        export = check_export(model, {"X": rows}, score(rows), tolerance)
    if path is not None:
        export.save(path)
    return export


def add_ranker(graph: Graph, ranker: BaseEstimator, X: str) -> str:
    """Append a fitted ranker of the columns X and return the name of its scores."""
    if is_pipeline(ranker):
        slopes, offsets, last = scaling(ranker)
        scaled = graph.add("Mul", X, graph.constant(slopes))
        return add_ranker(graph, last, graph.add("Add", scaled, graph.constant(offsets)))
    if hasattr(ranker, "members_"):
        return _add_members(graph, ranker, X)
    if hasattr(ranker, "_made"):
        return add_ranker(graph, ranker.ranker_, add_prepared_columns(graph, ranker, X))
    if hasattr(ranker, "_forest"):
        sums = add_forest(graph, ranker, X)
        return add_log_odds(graph, ranker, sums) if hasattr(ranker, "kind") else sums
    if hasattr(ranker, "_trees"):
        return _add_tree_ranker(graph, ranker, X)
    if hasattr(ranker, "dual_coef_") and hasattr(ranker, "_kernel"):
        return add_expansion(graph, ranker, X)
    if not is_additive(ranker):
        raise ValueError(
            f"{type(ranker).__name__} cannot be written as ONNX here: expected a ranker that is "
            "linear, a sum of stumps over columns, a PairRanker with a kernel, PushTrees, or a "
            "PushEnsemble of such. Score its rows where toprank is installed."
        )
    return (_add_stumps if hasattr(ranker, "stumps_") else _add_linear)(graph, ranker, X)


def _add_members(graph: Graph, ensemble: BaseEstimator, X: str) -> str:
    """The standardised scores of the members, side by side, and the ranker that weighs them."""
    names, scale = ensemble.oof_members_, ensemble._scale
    used = {names[j]: j for j in ensemble._columns_used}
    fitted = dict(ensemble.members_)
    columns = []
    for name, j in used.items():
        if name not in fitted:  # no weight
            first = graph.add("Gather", X, graph.constant(np.array([0])), axis=1)
            zero = graph.constant(np.array(0.0))
            columns.append(graph.add("Where", graph.add("IsNaN", first), zero, zero))
            continue
        scores = add_ranker(graph, fitted[name], X)
        apart = graph.add("Sub", scores, graph.constant(np.array([scale.centre[j]])))
        columns.append(graph.add("Div", apart, graph.constant(np.array([scale.spread[j]]))))
    flat = graph.constant(np.array([-1, 1], dtype=np.int64))
    columns = [graph.add("Reshape", column, flat) for column in columns]
    return add_ranker(graph, ensemble._combiner, graph.add("Concat", *columns, axis=1))


def _add_linear(graph: Graph, ranker: BaseEstimator, X: str) -> str:
    coef = np.asarray(ranker.coef_, dtype=np.float64).reshape(-1, 1)
    intercept = float(np.sum(getattr(ranker, "intercept_", 0.0)))
    units = getattr(ranker, "_units", None)
    if units is not None and not units.plain:  # as the ranker reads its columns, digit for digit
        X = graph.add("Sub", X, graph.constant(units.centre))
        intercept = float(ranker._offset)
    scores = graph.add("MatMul", X, graph.constant(coef))
    return graph.add("Add", scores, graph.constant(np.array([intercept])))


def _add_stumps(graph: Graph, ranker: BaseEstimator, X: str) -> str:
    """Sum of coef · h, h = 1 where a column exceeds a threshold or is missing on that side."""
    stumps, coef = ranker.stumps_, np.asarray(ranker.coef_, dtype=np.float64).reshape(-1, 1)
    columns, thresholds, missing = stumps["feature"], stumps["threshold"], stumps["missing"] == 1
    if not len(stumps):  # no round was taken: a stump of no weight stands in
        columns, thresholds = np.array([0]), np.array([0.0])
        missing, coef = np.array([False]), np.zeros((1, 1))
    x = graph.add("Gather", X, graph.constant(columns.astype(np.int64)), axis=1)
    above = graph.add("Greater", x, graph.constant(thresholds.astype(np.float64)))
    gap = graph.add("And", graph.add("IsNaN", x), graph.constant(np.asarray(missing)))
    h = graph.add("Cast", graph.add("Or", above, gap), to=graph.double)
    scores = graph.add("MatMul", h, graph.constant(coef))
    return graph.add("Add", scores, graph.constant(np.asarray(ranker.intercept_, dtype=np.float64)))


def _add_tree_ranker(graph: Graph, ranker: BaseEstimator, X: str) -> str:
    if ranker._starts:
        raise ValueError(
            "The trees were grown on top of init_score, which ONNX would have to be given; fit "
            "with init_model= instead."
        )
    scores = graph.add(
        "Add", add_trees(graph, ranker, X), graph.constant(np.array([float(ranker._offset)]))
    )
    if ranker.init_model_ is None:
        return scores
    start = add_ranker(graph, ranker.init_model_, X)
    scale = graph.constant(np.array([float(ranker.init_scale_)]))
    return graph.add("Add", scores, graph.add("Mul", start, scale))


def check_export(
    model: object, rows: dict[str, AnyArray], scores: FloatArray, tolerance: float
) -> OnnxExport:
    """Compare ONNX Runtime's scores with the ranker's; ValueError if they differ too much."""
    got = session_of(model)(rows)
    gap = float(np.max(np.abs(got - scores), initial=0.0))
    allowed = tolerance * max(1.0, float(np.max(np.abs(scores), initial=0.0)))
    if not gap <= allowed:
        raise ValueError(
            f"ONNX Runtime's scores differ from the ranker's by up to {gap:.3g}, more than the "
            f"{allowed:.3g} allowed (tolerance={tolerance:g}); the model was not written."
        )
    return OnnxExport(model, len(scores), gap)


def session_of(model: ModelProto) -> Callable[[dict[str, AnyArray]], FloatArray]:
    """Return a function from inputs to scores that runs a model in ONNX Runtime."""
    runtime = require("onnxruntime", "onnx")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )

    def scores(rows: dict[str, np.ndarray]) -> FloatArray:
        return np.asarray(session.run(None, rows)[0], dtype=np.float64)

    return scores
