"""Boosters of LightGBM and XGBoost outside their estimators, as the libraries write them."""

from __future__ import annotations

import copy
from typing import Any

from toprank._extras import require
from toprank.models import lightgbm_text, xgboost_ubj
from toprank.models.errors import ModelError
from toprank.rankers.trees.libraries import LightGBMTrees, XGBoostTrees
from toprank.rankers.trees.plan import plan_of

#: What a fit leaves behind that scores do not need.
_UNNEEDED = ("history_", "choice_", "booster_", "best_estimator_")


def detach(ranker: Any) -> tuple[Any, list[bytes]]:
    """Return a copy of a ranker without its boosters and history, and the boosters as bytes.

    Trees that were added to the scores of others bring several, the last grown first.
    """
    bare = copy.copy(ranker)
    for name in _UNNEEDED:
        vars(bare).pop(name, None)
    if not hasattr(ranker, "_trees"):
        return bare, []
    grown = ranker._trees
    bare._trees = {"library": grown.library, "n_rounds": int(grown.n_rounds)}
    if grown.library == "lightgbm":
        text = grown.booster.model_to_string(num_iteration=grown.n_rounds)
        lightgbm_text.check_trees(text)  # what could not be read again is not written
        own = text.encode()
    else:
        own = bytes(grown.booster.save_raw("ubj"))
        xgboost_ubj.check_trees(own)
        bare._trees["base"] = float(grown._base)
    if ranker.init_model_ is None:
        return bare, [own]
    bare.init_model_, before = detach(ranker.init_model_)
    return bare, [own, *before]


def attach(ranker: Any, boosters: list[bytes]) -> None:
    """Give a ranker its boosters back; ModelError if they are not its own."""
    if not hasattr(ranker, "_trees"):
        if boosters:
            raise ModelError("The file has trees that its ranker does not know.")
        return
    if not boosters:
        raise ModelError("The file lacks the trees of its ranker.")
    own, facts = boosters[0], ranker._trees
    if facts["library"] == "lightgbm":
        text = own.decode()
        lightgbm_text.check_trees(text)
        booster = require("lightgbm", "lightgbm").Booster(model_str=text)
        ranker._trees = LightGBMTrees(booster, int(facts["n_rounds"]), plan_of(ranker).n_threads)
    else:
        xgboost_ubj.check_trees(own)
        booster = require("xgboost", "xgboost").Booster()
        booster.load_model(bytearray(own))
        plan, rounds = plan_of(ranker), int(facts["n_rounds"])
        ranker._trees = XGBoostTrees(booster, rounds, plan, float(facts["base"]))
    ranker.booster_ = booster
    if ranker.init_model_ is not None:
        attach(ranker.init_model_, boosters[1:])
    elif len(boosters) > 1:
        raise ModelError("The file has trees that its ranker does not know.")
