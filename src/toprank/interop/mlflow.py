"""Models in MLflow: saved, logged, registered, loaded and served; metrics with their intervals.

A model is kept as toprank's own file, in which nothing is run when it is opened (`toprank.models`):
what MLflow asks about trusted types is settled by that file's closed list. The flavour is called
``toprank``; as ``python_function`` a model answers with scores and probabilities.

Nothing is imported before it is used: ``pip install 'toprank[mlflow]'`` brings MLflow.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from toprank._arrays import Frame, JsonObject
from toprank._extras import require
from toprank._numerics import FloatArray
from toprank._text import plain
from toprank._version import __version__
from toprank.inference import Comparison, Comparisons, Interval

if TYPE_CHECKING:
    from types import ModuleType

    import pandas as pd
    from mlflow.models import Model, ModelSignature
    from mlflow.models.model import ModelInfo

FLAVOR_NAME = "toprank"
#: The file of a model with its table's schema, and the file of a ranker of arrays.
_MODEL, _RANKER = "model.toprank", "ranker.toprank"
#: What the columns of a table are called in MLflow's signatures.
_TYPES = {"number": "double", "boolean": "boolean", "date": "datetime"}


def save_model(
    model: Any,
    path: str | PathLike[str],
    *,
    mlflow_model: Model | None = None,
    signature: ModelSignature | None = None,
    input_example: object = None,
    pip_requirements: list[str] | None = None,
    metadata: JsonObject | None = None,
) -> None:
    """Save a model in MLflow's format, in a folder.

    Parameters
    ----------
    model : TableModel, TableRanker or fitted ranker
        A model of a table, or a ranker of arrays of this library, behind scalers too.
    path : str or path
        The folder; it must not be there.
    mlflow_model : mlflow.models.Model, optional
        What MLflow itself passes.
    signature : mlflow.models.ModelSignature, optional
        By default that of the table's schema.
    input_example : data frame, optional
    pip_requirements : list of str, optional
        By default toprank of this version, with what the model needs.
    metadata : dict, optional

    Raises
    ------
    ModelError
        If the model holds something that cannot be kept safely, such as a function.
    """
    mlflow = require("mlflow", "mlflow")
    kept = mlflow.models.Model() if mlflow_model is None else mlflow_model
    inner = getattr(model, "model_", model)  # of a TableRanker
    of_table = hasattr(inner, "schema")
    file = _MODEL if of_table else _RANKER
    kept.add_flavor(FLAVOR_NAME, toprank_version=__version__, data=f"data/{file}")
    if signature is None and input_example is None and of_table:
        signature = _signature(mlflow, inner)
    with TemporaryDirectory() as folder:
        data = Path(folder, file)
        if of_table:
            inner.save(data)
        else:
            _models().save_ranker(inner, data)
        mlflow.pyfunc.save_model(
            path=str(path),
            loader_module=__name__,
            data_path=str(data),
            mlflow_model=kept,
            signature=signature,
            input_example=input_example,
            pip_requirements=pip_requirements or _requirements(inner),
            metadata=metadata,
        )


def log_model(
    model: object,
    name: str = "model",
    *,
    registered_model_name: str | None = None,
    signature: object = None,
    input_example: object = None,
    pip_requirements: list[str] | None = None,
    metadata: JsonObject | None = None,
) -> ModelInfo:
    """Log a model to the active run, and register it if a name is given.

    Parameters
    ----------
    model : TableModel, TableRanker or fitted ranker
    name : str, default="model"
        What the model is called in the run.
    registered_model_name : str, optional
        The name in the registry.
    signature, input_example, pip_requirements, metadata
        As in `save_model`.

    Returns
    -------
    mlflow.models.model.ModelInfo
    """
    mlflow = require("mlflow", "mlflow")
    return mlflow.models.Model.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        registered_model_name=registered_model_name,
        model=model,
        signature=signature,
        input_example=input_example,
        pip_requirements=pip_requirements,
        metadata=metadata,
    )


def load_model(model_uri: str) -> Any:
    """Return a model that was saved or logged: a `TableModel`, or a ranker of arrays.

    Parameters
    ----------
    model_uri : str
        A folder, or an address such as ``"runs:/ID/model"`` or ``"models:/leads/1"``.
    """
    mlflow = require("mlflow", "mlflow")
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=str(model_uri)))
    flavors = mlflow.models.Model.load(str(folder)).flavors
    if FLAVOR_NAME not in flavors:
        raise ValueError(
            f"The model at {model_uri!r} has no flavour {FLAVOR_NAME!r}, only "
            f"{', '.join(sorted(flavors))}. Load it by the library that saved it."
        )
    return _load_file(folder / flavors[FLAVOR_NAME]["data"])


def _models() -> ModuleType:
    # MLflow names this file to whoever serves a model, so it is here that the files of models,
    # which stand above it in the order of imports, are asked for: by their public name
    return sys.modules["toprank"].models


def _load_file(path: str | PathLike[str]) -> Any:
    of_table = Path(path).name == _MODEL
    return (_models().load if of_table else _models().load_ranker)(path)


def _load_pyfunc(path: str) -> Scorer:
    """What MLflow calls to serve a model."""
    return Scorer(_load_file(path))


class _Page(Protocol):
    """What is logged of a report."""

    @property
    def html(self) -> str: ...

    def to_dict(self) -> JsonObject: ...


class _Target(Protocol):
    """What is logged of the labels of a model."""

    @property
    def column(self) -> str: ...

    @property
    def positive(self) -> str: ...


class _HasCard(Protocol):
    """What is logged of a model."""

    @property
    def card(self) -> JsonObject: ...

    @property
    def target(self) -> _Target: ...


class Scorer:
    """A model as MLflow's ``python_function``: a table in, scores and probabilities out.

    Parameters
    ----------
    model : TableModel or fitted ranker
    """

    def __init__(self, model: Any):
        self.model = model

    def predict(
        self, model_input: pd.DataFrame | np.ndarray, params: JsonObject | None = None
    ) -> pd.DataFrame | FloatArray:
        """Return the score of each row, and its probability where the model has one.

        Parameters
        ----------
        model_input : data frame or array
        params : dict, optional
            ``{"reasons": n}`` adds, for models of tables, the n columns that add most.

        Returns
        -------
        DataFrame
            Columns ``score`` and ``probability``, in the order of the rows.
        """
        pandas = require("pandas", "mlflow")
        if hasattr(self.model, "schema"):
            return self._predict_table(pandas, model_input, int((params or {}).get("reasons", 0)))
        X = np.asarray(model_input)
        score = getattr(self.model, "decision_function", None) or self.model.predict
        scores = np.asarray(score(X))
        if scores.ndim == 2:  # one per label
            labels = getattr(self.model, "classes_", range(scores.shape[1]))
            return pandas.DataFrame(scores, columns=[f"score_{label}" for label in labels])
        columns = {"score": scores}
        if hasattr(self.model, "predict_proba"):
            columns["probability"] = np.asarray(self.model.predict_proba(X))[:, 1]
        return pandas.DataFrame(columns)

    def _predict_table(self, pandas: ModuleType, frame: Frame, n_reasons: int) -> pd.DataFrame:
        chance = self.model.predict_proba(frame)[:, 1]
        found = pandas.DataFrame({"score": self.model.score(frame), "probability": chance})
        if n_reasons > 0:
            rows = self.model.reasons(frame, n_reasons)
            found["reasons"] = ["; ".join(f"{r.column} = {r.value}" for r in row) for row in rows]
        return found


def _signature(mlflow: ModuleType, model: Any) -> ModelSignature:
    """What the table's schema says of the input, with two numbers out."""
    types = mlflow.types
    given = []
    for column in model.schema.columns:
        kind = _TYPES.get(column.kind, "string")
        if column.decimal is not None:
            kind = "string"
        gap = column.kind == "boolean" and column.missing > 0
        any_type = types.schema.AnyType() if gap else types.DataType[kind]
        given.append(types.ColSpec(any_type, column.name, required=False))
    answers = [types.ColSpec("double", name) for name in ("score", "probability")]
    wanted = types.ParamSchema([types.ParamSpec("reasons", "integer", 0)])
    return mlflow.models.ModelSignature(types.Schema(given), types.Schema(answers), wanted)


def _requirements(model: object) -> list[str]:
    needed = [f"toprank[models]=={__version__}"]
    made_with = getattr(model, "card", {}).get("versions", {})
    needed += [
        f"{name}>={made_with[name]}" for name in ("lightgbm", "xgboost") if name in made_with
    ]
    return needed


def log_metrics(found: object, *, prefix: str = "", step: int | None = None) -> dict[str, float]:
    """Log metrics with their intervals to the active run.

    Parameters
    ----------
    found : Interval, Comparison, TableModel, or several of the first two
        What `toprank.inference` gave; of a `TableModel`, the intervals on its card.
    prefix : str, default=""
        What the names begin with, such as ``"test."``.
    step : int, optional

    Returns
    -------
    dict
        What was logged: ``precision_at_k_100``, and the same with ``.low``, ``.high`` and
        ``.standard_error``; of a comparison ``.difference`` and ``.p_value``.

    Examples
    --------
    >>> from toprank.inference import interval
    >>> from toprank.interop.mlflow import metric_values
    >>> found = interval("precision_at", [1, 0, 1, 0], [4, 3, 2, 1], k=2)
    >>> [name for name in sorted(metric_values(found)) if not name.endswith("error")]
    ['precision_at_k_2', 'precision_at_k_2.high', 'precision_at_k_2.low']
    """
    mlflow = require("mlflow", "mlflow")
    values = {f"{prefix}{name}": value for name, value in metric_values(found).items()}
    mlflow.log_metrics(values, step=step)
    return values


def metric_values(found: object) -> dict[str, float]:
    """Return what `log_metrics` logs, by MLflow's names, without numbers that are not finite."""
    values: dict[str, float] = {}
    for one in _results(found):
        name = _metric_name(one["metric"])
        if "difference" in one:
            name = f"{name}.{_metric_name('-'.join(one['names']))}"
            parts = ("difference", "low", "high", "standard_error", "p_value")
            values |= {f"{name}.{part}": one[part] for part in parts}
        else:
            values[name] = one["estimate"]
            ends = ("low", "high", "standard_error")
            values |= {f"{name}.{part}": one[part] for part in ends if part in one}
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and np.isfinite(value)
    }


def _results(found: object) -> Iterable[JsonObject]:
    if hasattr(found, "card"):
        yield from found.card.get("metrics", {}).get("intervals", [])
    elif isinstance(found, Interval | Comparison):
        yield found.as_dict()
    elif isinstance(found, Comparisons | list | tuple):
        for one in found:
            yield from _results(one)
    else:
        raise TypeError(
            f"expected what interval or compare gave, a list of such, or a TableModel; got "
            f"{type(found).__name__}."
        )


def _metric_name(text: str) -> str:
    """A name that MLflow takes: letters, digits, and signs that need no quoting."""
    return re.sub(r"[^\w.\- /]+", "_", text).strip("_")


def log_report(report: _Page, name: str = "report.html") -> None:
    """Log a page of `toprank.report` to the active run, and its results beside it as JSON.

    Parameters
    ----------
    report : Report
        What `toprank.report.build` or `describe` gave.
    name : str, default="report.html"
    """
    mlflow = require("mlflow", "mlflow")
    mlflow.log_text(report.html, name)
    mlflow.log_dict(plain(report.to_dict()), f"{name.removesuffix('.html')}.json")


def log_card(model: _HasCard) -> None:
    """Log what a `TableModel` says of itself to the active run.

    Its ranker and settings as parameters, the metrics on its card with their intervals, and the
    card itself as ``card.json``.

    Parameters
    ----------
    model : TableModel
    """
    mlflow = require("mlflow", "mlflow")
    card = model.card
    training = card.get("training", {})
    facts = {
        "model": card.get("model"),
        "p": card.get("p"),
        "target": f"{model.target.column} = {model.target.positive}",
        "training_rows": training.get("rows"),
        "training_positives": training.get("positives"),
        "toprank": card.get("versions", {}).get("toprank"),
    }
    mlflow.log_params({name: value for name, value in facts.items() if value is not None})
    log_metrics(model)
    mlflow.log_dict(plain(card), "card.json")
