"""LightGBM's and XGBoost's names for the parameters of `PushTrees`."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from typing import ClassVar, Self

#: Their names for parameters that `PushTrees` has under another name.
SAME = {
    "num_leaves": "max_leaves",
    "min_child_samples": "min_samples_leaf",
    "min_data_in_leaf": "min_samples_leaf",
    "colsample_bytree": "colsample",
    "feature_fraction": "colsample",
    "bagging_fraction": "subsample",
    "num_iterations": "n_estimators",
    "num_boost_round": "n_estimators",
    "eta": "learning_rate",
    "lambda_l2": "reg_lambda",
    "min_sum_hessian_in_leaf": "min_child_weight",
    "max_bin": "max_bins",
    "seed": "random_state",
    "num_threads": "n_jobs",
    "nthread": "n_jobs",
    "early_stopping_rounds": "n_iter_no_change",
    "verbosity": "verbose",
}
#: Their names for what is handed on, and what LightGBM and XGBoost call it.
HANDED_ON = {
    "reg_alpha": ("lambda_l1", "reg_alpha"),
    "lambda_l1": ("lambda_l1", "reg_alpha"),
    "min_split_gain": ("min_gain_to_split", "gamma"),
    "min_gain_to_split": ("min_gain_to_split", "gamma"),
    "gamma": ("min_gain_to_split", "gamma"),
}
_BALANCE = (
    "the push compares positives with negatives, each class normalised by itself, so nothing has "
    "to be balanced; sample_weight weighs rows"
)
#: What has no counterpart, and why.
NOTHING_LIKE = {
    "objective": "the objective is the push, set by p, price and loss; p=None is the binary one",
    "is_unbalance": _BALANCE,
    "scale_pos_weight": _BALANCE,
    "class_weight": _BALANCE,
    "importance_type": "feature_importances_ are shares of the gain; booster_ has the others",
    "boosting_type": "trees are added one by one (gbdt); backend_params takes the library's own",
    "subsample_freq": "rows are drawn anew for every tree; backend_params takes bagging_freq",
}


class LibraryNames:
    """Takes the libraries' names of parameters beside its own."""

    __signature__: ClassVar[inspect.Signature]
    backend: str
    backend_params: dict[str, object] | None

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        # scikit-learn takes every name in a class's signature for a parameter, ``names`` too
        whole = inspect.signature(cls.__init__)
        own = [part for part in whole.parameters.values() if part.kind is not part.VAR_KEYWORD]
        cls.__signature__ = whole.replace(parameters=own[1:])

    def _take_names(self, given: Mapping[str, object]) -> None:
        """Set parameters by the names that the libraries have for them."""
        own = inspect.signature(type(self).__init__).parameters
        for name, value in given.items():
            if name in SAME:
                self._take_same(name, SAME[name], value, own[SAME[name]].default)
            elif name in HANDED_ON:
                key = HANDED_ON[name][self.backend == "xgboost"]
                self.backend_params = {**(self.backend_params or {}), key: value}
            else:
                raise TypeError(self._unknown(name, list(own)))

    def _take_same(self, name: str, ours: str, value: object, default: object) -> None:
        if getattr(self, ours) is not default and getattr(self, ours) != default:
            raise TypeError(f"{name} and {ours} are the same; give one of them.")
        setattr(self, ours, value)
        if name == "early_stopping_rounds" and value is not None:
            self.early_stopping: bool | str = True

    @staticmethod
    def _unknown(name: str, own: list[str]) -> str:
        if name in NOTHING_LIKE:
            return f"PushTrees has no {name}: {NOTHING_LIKE[name]}."
        near = difflib.get_close_matches(name, [*own, *SAME, *HANDED_ON], 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"PushTrees has no parameter {name!r}{hint}"

    def set_params(self, **params: object) -> Self:
        """Set parameters, by their own names or those that LightGBM and XGBoost have for them."""
        own = set(inspect.signature(type(self).__init__).parameters)
        theirs = {
            name: value
            for name, value in params.items()
            if name not in own and (name in SAME or name in HANDED_ON)
        }
        ours = {SAME[name]: value for name, value in theirs.items() if name in SAME}
        kept = {name: value for name, value in params.items() if name not in theirs}
        super().set_params(**kept, **ours)  # type: ignore[misc]
        self._take_names({name: value for name, value in theirs.items() if name in HANDED_ON})
        return self
