"""The work behind `toprank compare`: scores of several models on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toprank._numerics import FloatArray
from toprank.cli.failures import Failure
from toprank.cli.options import resamples_of
from toprank.cli.scoring import labelled, load_model
from toprank.cli.source import Source
from toprank.cli.terminal import Step
from toprank.inference import Comparisons, compare
from toprank.metrics.registry import METRICS
from toprank.models import TableModel


def by_name(paths: Sequence[Path]) -> dict[str, TableModel]:
    """The models by the names of their files, or by the paths where those are the same."""
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    if len(set(names)) < len(names):
        raise Failure("the same model is named twice; name different files.")
    return {name: load_model(path) for name, path in zip(names, paths, strict=True)}


def scores_of(
    models: Mapping[str, TableModel], source: Source, step: Step
) -> tuple[Any, dict[str, FloatArray], dict[str, Any]]:
    """Labels, scores by model, and what else is known of the rows.

    Weights and groups are those of the first model that has them.
    """
    goals = {(model.target.column, model.target.positive) for model in models.values()}
    if len(goals) > 1:
        told = " and ".join(f"'{column}' = '{value}'" for column, value in sorted(goals))
        raise Failure(f"the models rank for different things: {told}.")
    rows = {name: labelled(model, source, step) for name, model in models.items()}
    known: dict[str, Any] = {"sample_weight": None, "groups": None}
    for one in rows.values():
        known = {key: one.known[key] if value is None else value for key, value in known.items()}
    first = next(iter(rows.values()))
    return first.positive, {name: one.scores for name, one in rows.items()}, known


def comparisons(
    metrics: Sequence[str] | None,
    k: int | float,
    positive: Any,
    scores: Mapping[str, FloatArray],
    known: dict[str, Any],
    level: float,
    resamples: int | None,
    step: Step,
) -> list[Comparisons]:
    """All pairs of models by each metric."""
    wanted = metrics or ("precision_at", "auc")
    unknown = [name for name in wanted if name not in METRICS]
    if unknown:
        raise Failure(f"--metric: '{unknown[0]}' is not one of: {', '.join(sorted(METRICS))}.")
    if positive.all() or not positive.any():
        only = "positive" if positive.all() else "negative"
        raise Failure(f"all rows are {only}; models are compared on rows of two classes.")
    how: dict[str, Any] = {"level": level, "n_resamples": resamples_of(resamples, len(positive))}
    found = []
    for done, name in enumerate(wanted):
        step(f"Comparing by {name}", done, len(wanted))
        settings = dict(METRICS[name].settings) | ({"k": k} if METRICS[name].takes_k else {})
        found.append(compare(name, positive, scores, **how, **known, **settings))
    return found
