"""Trees that are kept while they grow, so that a fit goes on after its driver was lost."""

from __future__ import annotations

import hashlib
import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib import NumpyVersion

from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.blocks.checkpoint import Passes, open_passes, packed_bytes
from toprank.blocks.row_keys import hash_values
from toprank.folds import PChoice
from toprank.rankers.blockwise import check_repeatable

if TYPE_CHECKING:
    import xgboost
    from sklearn.base import BaseEstimator

    from toprank.blocks import BlockSource

#: Rounds are kept again after so many times as long as it took to keep them.
_PAUSES = 20.0
#: Parameters that say how a fit is done, and not what comes out.
_NOT_ASKED = ("n_jobs", "verbose")
#: The first XGBoost known to draw columns anew by the seed of a round; 2.1 is known not to.
_DRAWS_ANEW = "3.2.0"


@dataclass(frozen=True)
class RoundsSoFar:
    """The trees of some rounds, the metric of the rows held out, and whether these are all."""

    booster: bytes
    values: tuple[float, ...]
    ended: bool


class KeptRounds:
    """The rounds of one fit, in a file that is replaced as trees are added."""

    def __init__(self, passes: Passes, question: object):
        self._passes, self._question = passes, question
        self._due = -np.inf

    def read(self) -> RoundsSoFar | None:
        """Return the rounds that were kept last, if there are any."""
        found = self._passes.recall("rounds", self._question)
        assert found is None or isinstance(found, RoundsSoFar)
        return found

    def offer(self, booster: xgboost.Booster, values: Sequence[float]) -> None:
        """Keep the rounds, unless so little time has gone by that this would slow them down."""
        if clock.perf_counter() >= self._due:
            self.keep(booster, values, ended=False)

    def keep(self, booster: xgboost.Booster, values: Sequence[float], *, ended: bool) -> None:
        """Keep the rounds in the place of those that were there."""
        began = clock.perf_counter()
        trees = bytes(booster.save_raw("ubj"))
        so_far = RoundsSoFar(trees, tuple(float(one) for one in values), ended)
        self._passes.replace("rounds", self._question, so_far)
        now = clock.perf_counter()
        self._due = now + _PAUSES * (now - began)


def draws_can_be_repeated() -> bool:
    """Whether this XGBoost draws columns by a seed that a round is given."""
    found = require("xgboost", "xgboost").__version__
    return bool(NumpyVersion(found) >= _DRAWS_ANEW)


class TreeCheckpoint:
    """The folder of a fit of trees: of which rows, the p that was chosen, the rounds so far."""

    def __init__(
        self,
        trees: BaseEstimator,
        folder: str | PathLike[str],
        resume: bool,
        source: BlockSource,
    ):
        check_repeatable(trees.random_state)
        if not draws_can_be_repeated():
            raise ValueError(
                f"checkpoint= of trees needs XGBoost {_DRAWS_ANEW} or newer, "
                f"and {require('xgboost', 'xgboost').__version__} is installed, whose rounds would "
                "all draw the same columns. Install a newer one, or leave checkpoint= out."
            )
        if "updater" in (trees.backend_params or {}):
            raise ValueError(
                "backend_params names XGBoost's updater, and such a fit cannot be resumed: what a "
                "round draws depends on the rounds before. Leave out the updater, or checkpoint=."
            )
        self._settings = _settings_of(trees)
        self._passes = open_passes(folder, resume, source.identity())

    def check_rows(self, labels: np.ndarray, weight: FloatArray | None) -> None:
        """Refuse rows whose number, labels or weights are not those that the folder is of."""
        digest = hashlib.blake2b(hash_values(labels, 0).tobytes())
        digest.update(b"" if weight is None else weight.tobytes())
        self._passes.answer(self._settings, lambda: (len(labels), digest.digest()))

    def choose(self, choose: Callable[[], PChoice | None]) -> PChoice | None:
        """Return the choice of p that is kept in the folder, made now if there is none."""
        return self._passes.answer(("p", self._settings), choose)

    def rounds(self, p: float | None) -> KeptRounds:
        """Return where the rounds of the last fit are kept."""
        return KeptRounds(self._passes, (self._settings, _compared(p)))


def _settings_of(trees: BaseEstimator) -> tuple[tuple[str, bytes], ...]:
    """What the trees depend on besides the rows, in a form that equal settings share."""
    given = {n: v for n, v in trees.get_params(deep=False).items() if n not in _NOT_ASKED}
    given["columns"] = (trees.n_features_in_, list(getattr(trees, "feature_names_in_", ())))
    given["xgboost"] = require("xgboost", "xgboost").__version__
    return tuple((name, _compared(value)) for name, value in sorted(given.items()))


def _compared(value: object) -> bytes:
    if isinstance(value, Real):
        value = float(value)
    elif callable(value):
        value = f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return packed_bytes(value)
