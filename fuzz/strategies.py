"""Hypothesis strategies for whole problems: a ranker, its data, what it must refuse.

A `Problem` is valid by what the documentation says: two classes where two are needed, weights that
leave rows of both, groups with something to compare. Everything else is as ugly as it may be: ties,
constant, collinear and repeated columns, scales far apart, weights of zero and of subnormal size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from toprank import (
    AdaBoostRanker,
    IRPush,
    PairRanker,
    PNormPush,
    ProperRanker,
    PushRanker,
    PushTrees,
    RankBoost,
    SmoothMarginRanker,
)

LINEAR = (PNormPush, IRPush, PushRanker, ProperRanker)
BOOSTERS = (RankBoost, AdaBoostRanker, SmoothMarginRanker)
#: How a matrix may come; the last two only where sparse matrices are taken.
FORMS = ("rows", "columns", "float32", "read-only", "strided", "frame", "list", "csr", "csc")
_SCALES = (1.0, 1.0, 1.0, 1e-8, 1e8, 1e-90, 1e90)


@dataclass(frozen=True)
class Problem:
    """A ranker and what it is fitted to.

    Attributes
    ----------
    ranker : estimator
        Not fitted.
    X : NDArray
        The rows as numbers, in float64.
    y : NDArray
    form : str
        How X is handed over: one of `FORMS`.
    fit_params : dict
        ``sample_weight``, ``groups``, ``pairs``, where the ranker takes them.
    """

    ranker: Any
    X: NDArray[np.float64]
    y: NDArray[Any]
    form: str = "rows"
    fit_params: dict[str, Any] = field(default_factory=dict)

    def fit(self, ranker: Any = None) -> Any:
        """Fit the ranker, or another one, to the rows as they come."""
        X = in_form(self.X, self.form)
        return (self.ranker if ranker is None else ranker).fit(X, self.y, **self.fit_params)

    def scores(self, ranker: Any, X: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The scores of the rows, or of others, handed over in the same form."""
        return scores_of(ranker, in_form(self.X if X is None else X, self.form))

    def taken(self, rows: NDArray[np.intp], sample_weight: Any = None) -> Problem:
        """Some of the rows, in this order; without pairs, whose rows are named by place."""
        params = {k: v[rows] for k, v in self.fit_params.items() if k != "pairs" and v is not None}
        params["sample_weight"] = sample_weight
        return Problem(self.ranker, self.X[rows], self.y[rows], self.form, params)


def scores_of(ranker: Any, X: Any) -> NDArray[np.float64]:
    """The ranking scores, whatever the kind of ranker calls them."""
    score = getattr(ranker, "decision_function", None) or ranker.predict
    return np.asarray(score(X), dtype=np.float64)


def in_form(X: NDArray[np.float64], form: str) -> Any:
    """The same numbers as another kind of matrix."""
    if form == "frame":
        return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    if form == "strided":
        return np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    if form == "read-only":
        X = X.copy()
        X.setflags(write=False)
        return X
    made = {
        "rows": np.ascontiguousarray,
        "columns": np.asfortranarray,
        "float32": lambda values: values.astype(np.float32),
        "list": lambda values: values.tolist(),
        "csr": sparse.csr_matrix,
        "csc": sparse.csc_array,
    }
    return made[form](X)


# Data -------------------------------------------------------------------------------------------


@st.composite
def matrices(draw: Any, n: int, most_columns: int = 4, scales: Any = _SCALES) -> Any:
    """Rows of numbers with ties; columns may be constant, collinear, repeated, tiny or huge."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.integers(1, most_columns))
    X = np.empty((n, d))
    for j in range(d):
        kinds = ["normal", "ties", "binary", "constant"] + (["repeated", "collinear"] if j else [])
        kind = draw(st.sampled_from(kinds))
        if kind == "normal":
            X[:, j] = rng.normal(size=n)
        elif kind == "ties":
            X[:, j] = rng.integers(-2, 3, n)
        elif kind == "binary":
            X[:, j] = rng.random(n) < 0.5
        elif kind == "constant":
            X[:, j] = draw(st.sampled_from((0.0, 1.0, -7.5)))
        elif kind == "repeated":
            X[:, j] = X[:, j - 1]
        else:
            X[:, j] = X[:, :j].sum(axis=1) * 2 - 1
        if kind in ("normal", "ties"):
            X[:, j] *= draw(st.sampled_from(scales))
    return X


@st.composite
def labels(draw: Any, n: int) -> Any:
    """Labels of two classes, at least one row of each, in one of the types users have."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    positives = draw(st.integers(1, n - 1))
    positive = np.zeros(n, dtype=bool)
    positive[rng.permutation(n)[:positives]] = True
    kind = draw(st.sampled_from(("bool", "int", "signs", "float", "words", "objects")))
    made: dict[str, Any] = {
        "bool": positive,
        "int": positive.astype(np.int8),
        "signs": np.where(positive, 1, -1),
        "float": positive.astype(np.float64),
        "words": np.where(positive, "yes", "no"),
        "objects": np.where(positive, "b", "a").astype(object),
    }
    return made[kind]


@st.composite
def weights(draw: Any, positive: NDArray[np.bool_], wide: bool = False) -> Any:
    """Weights, or None; both classes keep some. Wide ones reach from subnormal to 1e12."""
    kinds = ("none", "ones", "counts", "fractions", *(("wide", "subnormal") if wide else ()))
    kind = draw(st.sampled_from(kinds))
    rng, n = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), len(positive)
    if kind == "none":
        return None
    if kind == "subnormal":
        return np.full(n, 5e-324) * rng.integers(1, 9, n)
    made = {
        "ones": lambda: np.ones(n),
        "counts": lambda: rng.integers(0, 4, n).astype(np.float64),
        "fractions": lambda: rng.random(n),
        "wide": lambda: 10.0 ** rng.uniform(-12, 12, n),
    }
    weight = made[kind]()
    for side in (positive, ~positive):
        weight[np.flatnonzero(side)[0]] = max(1.0, weight[np.flatnonzero(side)[0]])
    return weight


@st.composite
def grades(draw: Any, n: int) -> Any:
    """Real or graded labels, not all equal."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(("grades", "real", "signs")))
    made = {
        "grades": rng.integers(0, 4, n).astype(np.float64),
        "real": rng.normal(size=n),
        "signs": rng.choice([-1.0, 1.0], n),
    }
    y = made[kind]
    y[0], y[1] = y.max() + 1, y.min() - 1
    return y


@st.composite
def groups(draw: Any, n: int) -> Any:
    """Groups, or None; the first two rows, which differ in grade, share one."""
    if draw(st.booleans()):
        return None
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    numbers = rng.integers(0, 3, n)
    numbers[1] = numbers[0]
    kind = draw(st.sampled_from(("int", "words")))
    return numbers if kind == "int" else np.array([f"q{number}" for number in numbers])


@st.composite
def pairs(draw: Any, n: int) -> Any:
    """Pairs of different rows (winner, loser), some repeated or contradicted; or None."""
    if draw(st.booleans()):
        return None
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    winners = rng.integers(0, n, draw(st.integers(1, 20)))
    return np.stack([winners, (winners + rng.integers(1, n, len(winners))) % n], axis=1)


# Rankers ----------------------------------------------------------------------------------------

_ALPHAS = (1e-3, 0.1, 1.0, 100.0)
_P = st.sampled_from((1, 1.5, 4.0, 64.0))
_LOSS = st.sampled_from(("exponential", "logistic", "squared_hinge", "hinge"))


def linear(alphas: tuple[float, ...] = _ALPHAS) -> Any:
    """Linear rankers with valid parameters."""
    alpha = st.sampled_from(alphas)
    return st.one_of(
        st.builds(PNormPush, _P, loss=_LOSS, alpha=alpha),
        st.builds(PNormPush, _P, alpha=alpha, link=st.just("p_classification")),
        st.builds(IRPush, alpha=alpha),
        st.builds(
            PushRanker,
            st.sampled_from(("identity", "power", "exponential")),
            p=_P,
            end=st.sampled_from(("top", "bottom", "both")),
            alpha=alpha,
        ),
        st.builds(
            ProperRanker, st.sampled_from(("logistic", "exponential", "squared")), alpha=alpha
        ),
    )


def _boosters() -> Any:
    rounds = st.integers(1, 12)
    return st.one_of(
        st.builds(RankBoost, rounds, p=_P, selection=st.sampled_from(("loss", "slope"))),
        st.builds(AdaBoostRanker, rounds, constant=st.sampled_from(("weak", "reset"))),
        st.builds(SmoothMarginRanker, rounds),
    )


def _trees() -> Any:
    return st.builds(
        PushTrees,
        st.sampled_from((1.0, 4.0, None)),
        n_estimators=st.integers(1, 4),
        min_child_weight=st.sampled_from((1e-3, 1.0)),
        max_leaves=st.sampled_from((2, 8)),
        early_stopping=st.just(False),
        n_jobs=st.just(1),
    )


def rankers(*, trees: bool = True) -> Any:
    """Two-class rankers with valid parameters."""
    return st.one_of(linear(), linear(), _boosters(), *([_trees()] if trees else []))


def pair_rankers() -> Any:
    """Pairwise rankers with valid parameters."""
    return st.builds(
        PairRanker,
        st.sampled_from(("identity", "power")),
        st.sampled_from(("squared_hinge", "logistic", "exponential")),
        st.sampled_from(_ALPHAS),
        st.sampled_from((None, None, "rbf")),
        p=st.sampled_from((1.0, 4.0)),
    )


@st.composite
def problems(draw: Any, kinds: Any = None, most_rows: int = 24, scales: Any = _SCALES) -> Any:
    """A two-class problem with a ranker; ``kinds`` is a strategy of rankers."""
    ranker = draw(rankers() if kinds is None else kinds)
    n = draw(st.integers(2, most_rows))
    X, y = draw(matrices(n, scales=scales)), draw(labels(n))
    takes_sparse = isinstance(ranker, LINEAR)
    forms = FORMS if takes_sparse else FORMS[:-2]
    if scales is _SCALES:  # 1e90 is no number in float32
        forms = tuple(form for form in forms if form != "float32")
    form = draw(st.sampled_from(forms))
    weight = draw(weights(y == np.unique(y)[1], wide=isinstance(ranker, LINEAR)))
    return Problem(ranker, X, y, form, {"sample_weight": weight})


@st.composite
def pair_problems(draw: Any, most_rows: int = 16) -> Any:
    """A problem of grades, groups and pairs with a pairwise ranker."""
    ranker = draw(pair_rankers())
    n = draw(st.integers(2, most_rows))
    scales = (1.0,) if ranker.kernel is not None else _SCALES
    X, y = draw(matrices(n, scales=scales)), draw(grades(n))
    given = draw(pairs(n))
    # pairs replace what groups would say, and refuse rows that are absent
    of_rows = None if given is not None else draw(groups(n))
    weight = None if given is not None else draw(weights(y == y.max()))
    if weight is not None:
        weight[:2] = np.maximum(weight[:2], 1.0)
    params = {"groups": of_rows, "pairs": given, "sample_weight": weight}
    return Problem(ranker, X, y, "rows", params)


#: Parameters that no ranker takes, by name; those that a ranker has are tried on it.
INVALID: dict[str, tuple[Any, ...]] = {
    "p": (0.5, -1, np.nan, "four", -np.inf, [4.0]),
    "alpha": (-1e-3, "a", None, np.nan),
    "loss": ("absolute", 3, ""),
    "solver": ("sgd", None, 1),
    "max_iter": (0, -1, 1.5, "many"),
    "tol": (-1.0, "tight", None),
    "link": ("probit", None),
    "end": ("middle", None),
    "price": ("free", 1.0),
    "balance": (0.0, -1.0, "even"),
    "n_estimators": (0, -3, 2.5, "many", None),
    "selection": ("best", None),
    "weak_rankers": ("trees", 3),
    "max_bins": (1, 0, 2.5),
    "learning_rate": (0.0, -1.0, "slow"),
    "max_leaves": (1, 0, 2.5),
    "kernel": ("sigmoidal", 3),
    "class_weight": ("unbalanced", 3),
    "n_jobs": ("all", 1.5),
}


@st.composite
def invalid_settings(draw: Any, ranker: Any) -> Any:
    """A parameter of the ranker, and a value that it must refuse."""
    known = sorted(set(ranker.get_params()) & set(INVALID))
    name = draw(st.sampled_from(known))
    return name, draw(st.sampled_from(INVALID[name]))


#: What is wrong with data, by name.
SPOILT = (
    *("inf", "one class", "three classes", "short y", "nan labels", "one row", "no rows"),
    *("short weights", "negative weights", "nan weights", "no weight", "flat", "words", "complex"),
)


def takes_infinity(ranker: Any) -> bool:
    """Whether infinities are values like others: stumps only compare."""
    return getattr(ranker, "weak_rankers", None) == "stumps"


def spoilt(problem: Problem, how: str) -> tuple[Any, Any, Any]:
    """X, y and weights of a problem, spoilt so that every two-class ranker must refuse them."""
    X, y, n = problem.X.copy(), problem.y, len(problem.y)
    weight = np.ones(n)
    if how == "inf":
        # NaN is a missing value to trees and stumps
        X[n // 2, 0] = np.inf
        if takes_infinity(problem.ranker):
            X = X + 1j
    elif how == "one class":
        y = np.full(n, y[0])
    elif how == "three classes":
        y = np.append(np.arange(n - 1) % 2, 2)
        y = np.concatenate([y, [0, 1]])
        X, weight = np.concatenate([X, X[:1], X[:1]]), np.ones(n + 2)
    elif how == "short y":
        y = y[:-1]
    elif how == "short weights":
        weight = weight[:-1]
    elif how == "negative weights":
        weight[-1] = -1.0
    elif how == "nan weights":
        weight[0] = np.nan
    elif how == "no weight":
        weight[:] = 0.0
    elif how == "one row":
        X, y, weight = X[:1], y[:1], weight[:1]
    elif how == "no rows":
        X, y, weight = X[:0], y[:0], weight[:0]
    elif how == "flat":
        X = X[:, 0]
    elif how == "words":
        X = np.full(X.shape, "word", dtype=object)
    elif how == "complex":
        X = X + 1j
    elif how == "nan labels":
        y = np.where(np.arange(n) % 2, np.nan, 1.0)
    return X, y, weight
