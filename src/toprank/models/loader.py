"""From a file to a model: everything is checked before it is built, and tried before use."""

from __future__ import annotations

import io
import os
import warnings
import zipfile
from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning

from toprank._arrays import AnyArray
from toprank.models.archive import MOST_BYTES, check_entry_sizes
from toprank.models.columns import Column
from toprank.models.encoders import from_older_encoder
from toprank.models.errors import ModelError, ModelWarning, catch_warnings
from toprank.models.model import TableModel
from toprank.models.payload import OlderEncoder, build_payload
from toprank.models.preparation import Preparation
from toprank.models.read_card import (
    CardFile,
    MadeWith,
    name_damage,
    name_file,
    open_archive,
    read_model_bytes,
)
from toprank.models.storage import (
    MODEL_TYPES,
    attach,
    foreign_types,
    reads_texts_unsafely,
    update_types,
)

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

#: Every class of rankers in a file, members of ensembles among them; by name, because a file has
#: few of them, and loading the others would take longer than the file.
_KNOWN = {
    "toprank.rankers.boosting.rank_boost.RankBoost",
    "toprank.rankers.boosting.rank_boost.SmoothMarginRanker",
    "toprank.rankers.ensemble.converted.CatBoostRanker",
    "toprank.rankers.ensemble.converted.ForestRanker",
    "toprank.rankers.ensemble.estimator.PushEnsemble",
    "toprank.rankers.ensemble.prepared.PreparedRanker",
    "toprank.rankers.linear.IRPush",
    "toprank.rankers.linear.PNormPush",
    "toprank.rankers.proper.ProperRanker",
    "toprank.rankers.trees.estimator.PushTrees",
}


def load(path: str | PathLike[str], *, most_bytes: int = MOST_BYTES) -> TableModel:
    """Read a model from a file, without running anything of it.

    Parameters
    ----------
    path : str or path
    most_bytes : int
        The largest file, and the largest content once unpacked, that is accepted.

    Returns
    -------
    TableModel

    Raises
    ------
    ModelError
        If the file is not a model, was cut short or changed, is of a newer format, or holds
        objects that no model needs.

    Warns
    -----
    ModelWarning
        If the model was made with other versions of the libraries; it names them.
    """
    data = read_model_bytes(path, most_bytes)
    with name_file(path):
        return from_bytes(data, most_bytes=most_bytes)


def from_bytes(data: bytes, *, most_bytes: int = MOST_BYTES) -> TableModel:
    """Return the model that a file's bytes hold; as `load`."""
    made_with = MadeWith()
    with name_damage(made_with):
        found = open_archive(data, most_bytes, made_with)
        parts = _read_payload(found.members["payload.skops"], most_bytes)
        model = _assemble(found, parts)
        check_works(model)
    if made_with.other:
        warnings.warn(made_with.warning, ModelWarning, stacklevel=3)
    return model


def _read_payload(payload: bytes, most_bytes: int) -> dict[str, object]:
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        check_entry_sizes(archive.infolist(), most_bytes)
    payload = update_types(payload)
    foreign = foreign_types(payload)
    if foreign:
        raise ModelError(
            "The file holds objects that no toprank model needs, and was not opened: "
            f"{', '.join(foreign[:5])}{', ...' if len(foreign) > 5 else ''}. Do not trust it."
        )
    with catch_warnings():
        # the versions are compared once, for all libraries
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        parts = build_payload(payload, MODEL_TYPES)
    if reads_texts_unsafely(parts):
        raise ModelError(
            "The model in the file would open the files that the texts of a table name, or search "
            "the texts by patterns of its own. Do not trust it."
        )
    return parts


def _assemble(found: CardFile, parts: dict[str, Any]) -> TableModel:
    preparation, ranker = parts["preparation"], parts["ranker"]
    centre = np.asarray(parts["centre"], dtype=np.float64)
    if type(preparation) is not Preparation or not all(map(_is_ranker, _chain(ranker))):
        raise ModelError("This is not a toprank model: its parts have other types.")
    _replace_older_encoders(preparation)
    width, fits = len(preparation.names), preparation.fits(found.schema)
    if width != ranker.n_features_in_ or centre.shape != (width,) or not fits:
        raise ModelError("The parts of the file belong to different models.")
    for one in _chain(ranker):
        if hasattr(one, "n_jobs"):
            one.n_jobs = _threads_here(one.n_jobs)
    n_boosters = sum(name.startswith("trees-") for name in found.members)
    attach(ranker, [found.members[f"trees-{j}"] for j in range(n_boosters)])
    return TableModel(found.schema, found.target, preparation, ranker, found.card, centre)


def _is_ranker(part: object) -> bool:
    return f"{type(part).__module__}.{type(part).__qualname__}" in _KNOWN


def _replace_older_encoders(preparation: Preparation) -> None:
    """Put encoders that do the same in the place of those of files of an older format."""
    for columns, encoders in (
        (preparation.dates, preparation.date_encoders),
        (preparation.texts, preparation.text_encoders),
    ):
        for place, (name, one) in enumerate(zip(columns.tolist(), encoders, strict=True)):
            if isinstance(one, OlderEncoder):
                encoders[place] = from_older_encoder(one.state, name)


def _chain(ranker: BaseEstimator | None) -> Iterator[BaseEstimator]:
    """A ranker, its members, and those whose scores it started from.

    The name of a file does not count.
    """
    while ranker is not None:
        yield ranker
        for _, member in getattr(ranker, "members_", ()):
            yield from _chain(member)
        ranker = getattr(ranker, "init_model_", None)


def _threads_here(n_jobs: object) -> int | None:
    """The threads asked for, at most those of this machine: a million would end the process."""
    return min(n_jobs, os.cpu_count() or 1) if isinstance(n_jobs, int) else None


def check_works(model: TableModel) -> None:
    """Raise unless a row of nothing and an ordinary row get scores, chances and reasons.

    The parts of a file can be of the right types and still not fit each other: an index beyond
    the columns, an array of another shape, a NaN. The caller handles what such parts
    raise.
    """
    values = {column.name: _sample_values(column) for column in model.schema.columns}
    width = len(model.preparation.names)
    with catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # other versions of the libraries may have much to say
        Z = model.preparation.transform(values)
        scores = np.asarray(model.ranker.decision_function(Z))
        chances = np.asarray(model.ranker.predict_proba(Z))
        parts = np.asarray(model.column_contributions(Z))
    found = (Z.shape, scores.shape, chances.shape, parts.shape)
    if found != ((2, width), (2,), (2, 2), (2, len(model.schema.columns))):
        raise ModelError("The parts of the file belong to different models.")
    if not all(np.all(np.isfinite(array)) for array in (scores, chances, parts)):
        raise ModelError("The model in the file gives scores that are not numbers.")


def _sample_values(column: Column) -> AnyArray:
    """A missing value and an ordinary one."""
    if column.kind in ("number", "boolean"):
        return np.array([np.nan, 1.0])
    if column.kind == "date":
        return np.array(["NaT", "2024-02-29"], dtype="datetime64[us]")
    ordinary = column.categories[0] if column.categories else "a word"
    return np.array(["", ordinary], dtype=object)
