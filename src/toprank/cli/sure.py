"""How sure the first rows of a list are: refits of a model to its training table, row by row."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toprank.cli.io.source import Reading, Source
from toprank.cli.terminal import Failure, Step

if TYPE_CHECKING:
    import pyarrow as pa

    from toprank._arrays import FloatArray, Matrix
    from toprank.models.model import TableModel
    from toprank.select.refits import Refits


Sure = Annotated[
    Path | None,
    typer.Option(
        "--sure",
        metavar="TRAIN",
        help="The model's training table: adds the column `sure`, the share of refits to rows "
        "drawn from it in which a row is among the first.",
    ),
]
#: Refits of models that must be fitted for each; linear ones need no fits.
_FITS = 20


class SureTop:
    """Keeps, for each refit, the k highest scores of a list that never is in memory.

    Parameters
    ----------
    model : TableModel
    refits : Refits
        Of the model's ranker.
    """

    def __init__(self, model: TableModel, refits: Refits) -> None:
        self.model, self.refits = model, refits
        self._best: FloatArray | None = None

    def add(self, rows: pa.Table, k: int) -> None:
        """Score the next rows by every refit."""
        import numpy as np

        scores = self.refits.scores(_numbers(self.model, rows))
        held = scores if self._best is None else np.concatenate((self._best, scores), axis=1)
        if held.shape[1] > k:
            held = np.partition(held, held.shape[1] - k, axis=1)[:, -k:]
        self._best = held

    def shares(self, rows: pa.Table) -> FloatArray:
        """Share of the refits in which each of these rows is among the first k."""
        import numpy as np

        assert self._best is not None
        cuts = np.min(self._best, axis=1, keepdims=True)
        return np.mean(self.refits.scores(_numbers(self.model, rows)) >= cuts, axis=0)


def read_refits(model: TableModel, source: Source, step: Step) -> SureTop:
    """Refit a model's ranker to its training table, prepared as in the model."""
    import numpy as np

    from toprank.cli.scoring import score_chunks
    from toprank.models import frames
    from toprank.models.rows import read_propensity, read_weight
    from toprank.models.sketch import SeenRows
    from toprank.select.refits import Refits

    schema = model.schema
    source.remember(Reading.remembered(model.card))
    source.check_columns({schema.target: "the target of the model"})
    weight = schema.weight if schema.weight in source.columns else None
    propensity = schema.propensity if schema.propensity in source.columns else None
    known = source.read([schema.target, *filter(None, (weight, propensity))])
    seen, parts = SeenRows(model), []
    for chunk, _ in score_chunks(model, source, step):
        seen.add(chunk.rows)
        parts.append(_numbers(model, chunk.rows))
    if not seen.note:
        raise Failure(
            f"--sure: {source.name} does not hold the rows that the model has learned from. Name "
            "the table that was given to 'toprank fit'."
        )
    positive = model.target.of(frames.column(known, schema.target))
    refits = Refits.of(
        model.ranker,
        np.concatenate(parts),
        positive,
        sample_weight=read_weight(known, weight),
        label_propensity=read_propensity(known, propensity),
        progress=step,
        n_fits=_FITS,
    )
    return SureTop(model, refits)


def _numbers(model: TableModel, rows: pa.Table) -> Matrix:
    """Rows prepared for the ranker of a model."""
    from toprank.models import ModelWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # shown when the rows were scored
        return model.numbers(rows)
