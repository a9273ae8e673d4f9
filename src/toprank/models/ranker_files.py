"""A fitted ranker of arrays as one file: as safe to open as a model's.

A `TableModel` knows its columns by name; a ranker alone knows how many there are. Its file is a zip
with the same seal: ``ranker.json``, a skops payload, and boosters in their own formats. Every
type in it must be on a closed list before anything is built; nothing in it is run.
"""

from __future__ import annotations

import copy
import io
import json
import warnings
import zipfile
from os import PathLike
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from toprank._extras import require
from toprank._files import replace_file
from toprank.models import archive
from toprank.models.card import versions
from toprank.models.errors import ModelError, catch_warnings
from toprank.models.payload import build_payload
from toprank.models.read_card import MadeWith, name_damage, name_file, read_model_bytes
from toprank.models.storage import ALLOWED, attach, detach, foreign_types

_FORMAT = 1
#: Types in the files of rankers besides those in the files of models.
_MORE = {
    *(
        f"toprank.losses.proper.{name}"
        for name in (
            *("Exponential", "Squared", "Spherical"),
            *("CanonicalExponential", "CanonicalSquared", "CanonicalSpherical"),
        )
    ),
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.MaxAbsScaler",
    "sklearn.preprocessing._data.MinMaxScaler",
    "sklearn.preprocessing._data.RobustScaler",
    "toprank.rankers.boosting.ada_boost.AdaBoostRanker",
    "toprank.rankers.boosting.label_stumps.LabelStump",
    "toprank.rankers.boosting.weak.ColumnChoice",
    "toprank.rankers.boosting.weak.ColumnSum",
    "toprank.rankers.kernel.Kernel",
    "toprank.rankers.kernel.PairRule",
    "toprank.rankers.labels.LabelRanker",
    "toprank.rankers.linear.PushRanker",
    "toprank.rankers.pairwise.PairRanker",
    "toprank.tuning.push_cv.PNormPushCV",
}
_ALLOWED = {**ALLOWED, "ObjectNode": ALLOWED["ObjectNode"] | _MORE}
_TYPES = frozenset().union(*_ALLOWED.values())


def save_ranker(ranker: BaseEstimator, path: str | PathLike[str]) -> None:
    """Write a fitted ranker to one file, whole or not at all.

    Parameters
    ----------
    ranker : estimator
        A ranker of this library, or a pipeline of scikit-learn's scalers before one.
    path : str or path

    Raises
    ------
    ModelError
        If the ranker holds something that a file cannot hold safely, such as a function.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from toprank import PNormPush
    >>> from toprank.datasets import load_wdbc
    >>> from toprank.models import load_ranker, save_ranker
    >>> X, y = load_wdbc(return_X_y=True)
    >>> ranker = PNormPush().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_ranker(ranker, pathlib.Path(folder, "ranker"))
    ...     again = load_ranker(pathlib.Path(folder, "ranker"))
    >>> np.array_equal(again.decision_function(X), ranker.decision_function(X))
    True
    """
    check_is_fitted(ranker)
    payload, boosters = _payload(ranker)
    foreign = foreign_types(payload, _ALLOWED)
    if foreign:
        raise ModelError(
            f"The ranker cannot be saved: it holds {', '.join(foreign[:5])}, which a file cannot "
            "hold safely. Rankers of this library can be, behind scikit-learn's scalers too, "
            "unless they were given functions."
        )
    facts = {"format": _FORMAT, "versions": versions(ranker)}
    members = {"ranker.json": archive.json_bytes(facts), "payload.skops": payload}
    members |= {f"trees-{j}": booster for j, booster in enumerate(boosters)}
    with replace_file(Path(path)) as file:
        file.write(archive.write_archive(members))


def _payload(ranker: BaseEstimator) -> tuple[bytes, list[bytes]]:
    bare, boosters = ranker, list[bytes]()
    if isinstance(ranker, Pipeline):
        *first, (name, last) = ranker.steps
        last, boosters = detach(last)
        bare = copy.copy(ranker)
        bare.steps = [*first, (name, last)]
        vars(bare).pop("_skl_callbacks", None)
    else:
        bare, boosters = detach(ranker)
    vars(bare).pop("cv_results_", None)
    try:
        payload = require("skops.io", "models").dumps(bare, compression=zipfile.ZIP_DEFLATED)
    except ImportError:
        raise
    except Exception as error:  # objects of any kind, in their own words
        raise ModelError(f"The ranker cannot be saved: {error}") from error
    return payload, boosters


def load_ranker(
    path: str | PathLike[str], *, most_bytes: int = archive.MOST_BYTES
) -> BaseEstimator:
    """Read a ranker from the file that `save_ranker` wrote, without running anything of it.

    Parameters
    ----------
    path : str or path
    most_bytes : int
        The largest file, and the largest content once unpacked, that is accepted.

    Returns
    -------
    estimator

    Raises
    ------
    ModelError
        If the file is not a ranker's, was cut short or changed, or holds objects that no ranker
        needs.
    """
    data = read_model_bytes(path, most_bytes)
    with name_file(path), name_damage(MadeWith()):
        archive.check_seal(data)
        members = _read_members(data, most_bytes)
        facts = json.loads(members["ranker.json"])
        if facts.get("format") != _FORMAT:
            raise ModelError(
                f"The file of a ranker has the format {facts.get('format')!r}; this version reads "
                f"{_FORMAT}. Upgrade toprank."
            )
        ranker = _build(members, most_bytes)
        _check_scores(ranker)
    return ranker


def _read_members(data: bytes, most_bytes: int) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        archive.check_entry_sizes(file.infolist(), most_bytes)
        return {name: file.read(name) for name in file.namelist()}


def _build(members: dict[str, bytes], most_bytes: int) -> BaseEstimator:
    payload = members["payload.skops"]
    with zipfile.ZipFile(io.BytesIO(payload)) as file:
        archive.check_entry_sizes(file.infolist(), most_bytes)
    foreign = foreign_types(payload, _ALLOWED)
    if foreign:
        raise ModelError(
            "The file holds objects that no ranker needs, and was not opened: "
            f"{', '.join(foreign[:5])}. Do not trust it."
        )
    with catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        ranker = build_payload(payload, _TYPES)
    boosters = [members[name] for name in sorted(members, key=_place) if name.startswith("trees-")]
    attach(ranker.steps[-1][1] if isinstance(ranker, Pipeline) else ranker, boosters)
    return ranker


def _place(name: str) -> int:
    number = name.removeprefix("trees-")
    return int(number) if number.isdigit() else -1


def _check_scores(ranker: BaseEstimator) -> None:
    """Raise unless a row of zeros gets a score; the caller handles what damaged parts raise."""
    with catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        score = getattr(ranker, "decision_function", None) or ranker.predict
        scores = np.asarray(score(np.zeros((2, int(ranker.n_features_in_)))))
    if len(scores) != 2 or not np.all(np.isfinite(scores)):
        raise ModelError("The ranker in the file gives scores that are not numbers.")
