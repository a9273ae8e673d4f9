"""A model, preparation included, as ONNX."""

from __future__ import annotations

from os import PathLike

import numpy as np

from toprank._arrays import AnyArray
from toprank.interop.onnx import Graph, OnnxExport, add_ranker, check_export
from toprank.models import frames
from toprank.models.columns import OTHERS
from toprank.models.errors import ModelError
from toprank.models.export_sql import refuse_columns
from toprank.models.preparation import FittedTable


def table_to_onnx(
    model: FittedTable, path: str | PathLike[str] | None, check: object, tolerance: float
) -> OnnxExport:
    """As `TableModel.to_onnx`."""
    refuse_columns(model, "ONNX", set(range(len(model.preparation.names))))
    graph = Graph(model.schema.names)
    try:
        proto = graph.finish(add_ranker(graph, model.ranker, _add_preparation(graph, model)))
        export = OnnxExport(proto)
        if check is not None:
            export = check_export(proto, onnx_inputs(model, check), model.score(check), tolerance)
    except ValueError as error:
        raise ModelError(str(error)) from error
    if path is not None:
        export.save(path)
    return export


def onnx_inputs(model: FittedTable, frame: object) -> dict[str, AnyArray]:
    """Return a table as the inputs of the model's ONNX form: one array (rows, 1) per column."""
    values, match = model.schema.read(frame)
    match.ensure_ok()
    rows = frames.n_rows(frame)
    return {name: array.reshape(rows, 1) for name, array in values.items()}


def _add_preparation(graph: Graph, model: FittedTable) -> str:
    """Append the preparation: inputs by the names of the columns, one matrix of numbers out."""
    parts, preparation = [], model.preparation
    pooled = {column.name for column in model.schema.columns if column.pooled}
    if len(preparation.numbers):
        inputs = [graph.input(name, graph.double, 1) for name in preparation.numbers.tolist()]
        parts += _add_numbers(graph, model, graph.add("Concat", *inputs, axis=1))
    for place, name in enumerate(preparation.categories.tolist()):
        words = graph.input(name, graph.onnx.TensorProto.STRING, 1)
        known = preparation.encoder.categories_[place]
        parts.append(_add_category(graph, model, words, known, name in pooled))
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)


def _add_numbers(graph: Graph, model: FittedTable, x: str) -> list[str]:
    """Standardised, missing as the mean, and which were missing; or as they are."""
    preparation = model.preparation
    gap = graph.add("Or", graph.add("IsNaN", x), graph.add("IsInf", x))
    clips = {column.name: column.clip for column in model.schema.columns if column.clip}
    if clips:
        ends = [clips.get(name, (-np.inf, np.inf)) for name in preparation.numbers.tolist()]
        for operator, values in zip(("Max", "Min"), zip(*ends, strict=True), strict=True):
            x = graph.add(operator, x, graph.constant(np.array(values)))
    if preparation.scaler is None:
        return [graph.add("Where", gap, graph.constant(np.array(np.nan)), x)]
    z = graph.add("Sub", x, graph.constant(preparation.scaler.mean_))
    z = graph.add("Div", z, graph.constant(preparation.scaler.scale_))
    parts = [graph.add("Where", gap, graph.constant(np.array(0.0)), z)]
    if preparation.gaps:
        places = graph.constant(np.array(preparation.gaps, dtype=np.int64))
        shown = graph.add("Gather", graph.add("Cast", gap, to=graph.double), places, axis=1)
        parts.append(shown)
    return parts


def _add_category(
    graph: Graph, model: FittedTable, words: str, known: AnyArray, pooled: bool
) -> str:
    """A column of 0 and 1 for each category; for trees its code, NaN if it was never seen.

    With ``pooled`` every other word is one of the others, and a missing one is missing.
    """
    codes = {str(word): code for code, word in enumerate(known)}
    unseen = codes.get(OTHERS, -1) if pooled else -1
    if pooled:
        codes.setdefault("", -1)
    code = graph.add(
        "LabelEncoder",
        words,
        domain="ai.onnx.ml",
        keys_strings=list(codes),
        values_int64s=list(codes.values()),
        default_int64=unseen,
    )
    if model.preparation.style == "trees":
        unknown = graph.add("Less", code, graph.constant(np.array(0, dtype=np.int64)))
        number = graph.add("Cast", code, to=graph.double)
        return graph.add("Where", unknown, graph.constant(np.array(np.nan)), number)
    places = graph.constant(np.arange(len(known), dtype=np.int64)[None, :])
    return graph.add("Cast", graph.add("Equal", code, places), to=graph.double)
