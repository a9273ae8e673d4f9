"""A model as one file: a zip of JSON, a skops payload and boosters in their own formats.

====================  =========================================================================
``toprank.json``      the format's version, and the versions of the libraries
``card.json``         the card
``schema.json``       the columns and the target
``payload.skops``     the preparation and the ranker
``trees-0``, ...      boosters, in LightGBM's text or XGBoost's UBJSON format
====================  =========================================================================

The comment of the zip is the SHA-256 of all bytes before it, so that a file that was cut short,
damaged or edited by accident is recognised as such. It is no signature: whoever can write the
file can write a matching one. What protects the reader from strangers is that nothing in the file
is ever run, and that its types are checked against a closed list before `toprank.models.loader`
builds anything. skops writes the payload; `toprank.models.payload` reads it, without skops, which
trusts more than a model needs: every object in a payload must be of a type that `fit_table` makes
models of, built as plain data, arrays or the states of objects; functions, methods and reductions
are never among them.
"""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from toprank._extras import require
from toprank._files import replace_file
from toprank._text import plain
from toprank.models import archive
from toprank.models.errors import ModelError
from toprank.models.preparation import FittedTable
from toprank.models.tree_files import check_lightgbm
from toprank.models.xgboost_files import check_xgboost
from toprank.rankers.ensemble import PushEnsemble
from toprank.rankers.trees.libraries import LightGBMTrees, XGBoostTrees
from toprank.rankers.trees.plan import plan_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from toprank._arrays import JsonObject


def save(model: FittedTable, path: str | PathLike[str]) -> None:
    """Write a model to one file, whole or not at all.

    An interrupted save leaves the file that was there before.

    Parameters
    ----------
    model : TableModel
    path : str or path
        The file; by custom its name ends in ``.toprank``.
    """
    data = to_bytes(model)
    target = Path(path)
    if target.is_dir():
        raise ModelError(f"'{target}' is a folder; name a file in it.")
    try:
        with replace_file(target) as file:
            file.write(data)
    except OSError as error:
        raise ModelError(
            f"'{target}' {error.strerror}." if error.strerror else str(error)
        ) from error


def to_bytes(model: FittedTable) -> bytes:
    """Return the file of a model as bytes."""
    io_ = require("skops.io", "models")
    bare, boosters = detach(model.ranker)
    payload = io_.dumps(
        {"preparation": model.preparation, "ranker": bare, "centre": model.centre},
        compression=zipfile.ZIP_DEFLATED,
    )
    foreign = foreign_types(payload)
    if foreign:
        raise ModelError(
            f"The model cannot be saved: it holds {', '.join(foreign)}, a type "
            "that fit_table does not make models of."
        )
    target = {
        "positive": model.target.positive,
        "negative": list(model.target.negative),
        "tidy": model.target.tidy,
    }
    members = {
        "toprank.json": archive.json_bytes(
            {"format": archive.FORMAT, "versions": model.card["versions"]}
        ),
        "card.json": archive.json_bytes(plain(model.card)),
        "schema.json": archive.json_bytes({**model.schema.as_dict(), "values": target}),
        "payload.skops": payload,
        **{f"trees-{j}": booster for j, booster in enumerate(boosters)},
    }
    return archive.write_archive(members)


_PLAIN = {
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "JsonNode": {"builtins.str"},
    "TypeNode": {"builtins.int", "builtins.str", "builtins.float", "numpy.float64"},
    "DTypeNode": {"numpy.dtype"},
    "NdArrayNode": {
        "numpy.ndarray",
        "numpy.bool",
        "numpy.bool_",
        "numpy.float32",
        "numpy.float64",
        "numpy.int64",
        "numpy.intp",
    },
}
#: Types of objects by their full names: toprank's own, and those of the preparation.
_OBJECTS = {
    # these three and skrub's: in files up to format 3, for text and dates
    "sklearn.decomposition._truncated_svd.TruncatedSVD",
    "sklearn.feature_extraction.text.TfidfTransformer",
    "sklearn.feature_extraction.text.TfidfVectorizer",
    "sklearn.impute._base.MissingIndicator",
    "sklearn.impute._base.SimpleImputer",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._encoders.OneHotEncoder",
    "sklearn.preprocessing._encoders.OrdinalEncoder",
    "skrub._datetime_encoder.DatetimeEncoder",
    "skrub._string_encoder.StringEncoder",
    "skrub._to_str.ToStr",
    "toprank.blocks.statistics.Units",
    "toprank.losses.proper.Logistic",
    "toprank.models.encoders.DateEncoder",
    "toprank.models.encoders.TextEncoder",
    "toprank.models.preparation.Preparation",
    "toprank.rankers.boosting.weak.StumpSum",
    "toprank.rankers.boosting.rank_boost.RankBoost",
    "toprank.rankers.boosting.rank_boost.SmoothMarginRanker",
    "toprank.rankers.boosting.stumps.Stump",
    "toprank.rankers.ensemble.columns.LinearColumns",
    "toprank.rankers.ensemble.combination.ScoreColumns",
    "toprank.rankers.ensemble.converted.CatBoostRanker",
    "toprank.rankers.ensemble.converted.ForestRanker",
    "toprank.rankers.ensemble.estimator.PushEnsemble",
    "toprank.rankers.ensemble.flat_forest.FlatForest",
    "toprank.rankers.ensemble.prepared.PreparedRanker",
    "toprank.rankers.linear.IRPush",
    "toprank.rankers.linear.PNormPush",
    "toprank.rankers.proper.ProperRanker",
    "toprank.rankers.trees.columns.Categories",
    "toprank.rankers.trees.estimator.PushTrees",
}
ALLOWED: dict[str, set[str]] = {**_PLAIN, "ObjectNode": _OBJECTS}
#: Every type that a file of a model may hold.
MODEL_TYPES = frozenset().union(*ALLOWED.values())


#: Types that stood elsewhere when older files were saved, and where they stand now.
_MOVED = {
    "toprank.blocks.arrays.Units": "toprank.blocks.statistics.Units",
    "toprank.blocks.units.Units": "toprank.blocks.statistics.Units",
    "toprank.rankers.boosting.model.StumpSum": "toprank.rankers.boosting.weak.StumpSum",
    "toprank.rankers.boosting.smooth_margin.SmoothMarginRanker": (
        "toprank.rankers.boosting.rank_boost.SmoothMarginRanker"
    ),
    "toprank.rankers.trees.columns.Columns": "toprank.rankers.trees.columns.Categories",
}


def foreign_types(payload: bytes, allowed: dict[str, set[str]] = ALLOWED) -> list[str]:
    """Return the types in a skops payload that are not on the list, by their full names."""
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        tree = json.loads(archive.read("schema.json"))
    found = {(str(node.get("__loader__")), _type_name(node)) for node in _typed_nodes(tree)}
    return sorted({name for loader, name in found if name not in allowed.get(loader, set())})


def update_types(payload: bytes) -> bytes:
    """Return a payload in which types of older files are named as they are now."""
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        tree = json.loads(archive.read("schema.json"))
        moved = [node for node in _typed_nodes(tree) if _type_name(node) in _MOVED]
        if not moved:
            return payload
        others = {name: archive.read(name) for name in set(archive.namelist()) - {"schema.json"}}
    for node in moved:
        node["__module__"], _, node["__class__"] = _MOVED[_type_name(node)].rpartition(".")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"schema.json": json.dumps(tree).encode(), **others}.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _typed_nodes(tree: object) -> Iterator[JsonObject]:
    """Every node in the tree of a payload that names a type or a loader, wherever it hides."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if "__loader__" in node or "__class__" in node or "__module__" in node:
                yield node
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


def _type_name(node: Mapping[str, object]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


#: How the vectorisers of a preparation read texts: as they are, letter by letter.
_READING = {"input": "content", "analyzer": "char_wb"}


def reads_texts_unsafely(parts: object) -> bool:
    """Whether some vectoriser among the parts would read texts in another way than ours do.

    It could take texts for the names of files and open them, or search them by a pattern that
    takes forever.
    """
    stack, seen = [parts], set()
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, dict):
            stack.extend(part.values())
        elif isinstance(part, list | tuple):
            stack.extend(part)
        elif hasattr(part, "__dict__"):
            if any(getattr(part, name, usual) != usual for name, usual in _READING.items()):
                return True
            stack.extend(vars(part).values())
    return False


#: What a fit leaves behind that scores do not need.
_UNNEEDED = (
    *("history_", "choice_", "booster_", "best_estimator_", "_skl_callbacks"),
    *("oof_scores_", "oof_decision_", "member_table_", "score_interval_"),
    *("_folds", "_runs", "_labels", "_templates", "_present"),
    *("_fit_weight", "_fit_groups"),
)


def detach(ranker: BaseEstimator) -> tuple[BaseEstimator, list[bytes]]:
    """Return a copy of a ranker without its boosters and history, and the boosters as bytes.

    Trees that were added to the scores of others bring several, the last grown first.
    """
    bare = copy.copy(ranker)
    for name in _UNNEEDED:
        vars(bare).pop(name, None)
    if isinstance(ranker, PushEnsemble):
        parts = [detach(member) for _, member in ranker.members_]
        names = [name for name, _ in ranker.members_]
        bare.members_ = [[name, one] for name, (one, _) in zip(names, parts, strict=True)]
        return bare, [booster for _, boosters in parts for booster in boosters]
    if not hasattr(ranker, "_trees"):
        return bare, []
    grown = ranker._trees
    bare._trees = {"library": grown.library, "n_rounds": int(grown.n_rounds)}
    if grown.library == "lightgbm":
        text = grown.booster.model_to_string(num_iteration=grown.n_rounds)
        check_lightgbm(text)  # what could not be read again is not written
        own = text.encode()
    else:
        own = bytes(grown.booster.save_raw("ubj"))
        check_xgboost(own)
        bare._trees["base"] = float(grown._base)
    if ranker.init_model_ is None:
        return bare, [own]
    bare.init_model_, before = detach(ranker.init_model_)
    return bare, [own, *before]


def attach(ranker: BaseEstimator, boosters: list[bytes]) -> None:
    """Give a ranker its boosters back; ModelError if they are not its own."""
    if isinstance(ranker, PushEnsemble):
        _attach_members(ranker, boosters)
        return
    if not hasattr(ranker, "_trees"):
        if boosters:
            raise ModelError("The file has trees that its ranker does not know.")
        return
    if not boosters:
        raise ModelError("The file lacks the trees of its ranker.")
    own, facts = boosters[0], ranker._trees
    if facts["library"] == "lightgbm":
        text = own.decode()
        check_lightgbm(text)
        booster = require("lightgbm", "lightgbm").Booster(model_str=text)
        ranker._trees = LightGBMTrees(booster, int(facts["n_rounds"]), plan_of(ranker).n_threads)
    else:
        check_xgboost(own)
        booster = require("xgboost", "xgboost").Booster()
        booster.load_model(bytearray(own))
        plan, rounds = plan_of(ranker), int(facts["n_rounds"])
        ranker._trees = XGBoostTrees(booster, rounds, plan, float(facts["base"]))
    ranker.booster_ = booster
    if ranker.init_model_ is not None:
        attach(ranker.init_model_, boosters[1:])
    elif len(boosters) > 1:
        raise ModelError("The file has trees that its ranker does not know.")


def _attach_members(ensemble: PushEnsemble, boosters: list[bytes]) -> None:
    """Give each member of an ensemble its own boosters, in their order."""
    first = 0
    for _, member in ensemble.members_:
        forest = getattr(member, "_forest", None)
        fault = "" if forest is None else forest.find_fault(int(member.n_features_in_))
        if fault:
            raise ModelError(f"The trees in the file are damaged: {fault}.")
        last, one = first, member
        while one is not None and hasattr(one, "_trees"):
            last, one = last + 1, one.init_model_
        attach(member, boosters[first:last])
        first = last
    if first < len(boosters):
        raise ModelError("The file has trees that its ranker does not know.")
