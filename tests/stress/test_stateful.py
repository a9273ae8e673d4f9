"""Whatever was done to an estimator before, its answers are those of a fresh one with the same
parameters and data; a fit that is refused leaves it as it was."""

import copy
import pickle
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fuzz import strategies as fuzz
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

import toprank
from toprank import blocks

SLOTS = st.integers(0, 1)
KINDS = (
    (toprank.PNormPush, {"alpha": 0.1}),
    (toprank.PNormPush, {"alpha": 0.1, "warm_start": True}),
    (toprank.PNormPush, {"link": "p_classification", "loss": "exponential"}),
    (toprank.IRPush, {}),
    (toprank.PushRanker, {"price": "exponential"}),
    (toprank.ProperRanker, {}),
    (toprank.RankBoost, {"n_estimators": 4}),
    (toprank.AdaBoostRanker, {"n_estimators": 4}),
    (toprank.SmoothMarginRanker, {"n_estimators": 4}),
    (toprank.PairRanker, {"kernel": "rbf"}),
    (toprank.PairRanker, {"p": 1.0}),
    (toprank.PushTrees, {"n_estimators": 2, "early_stopping": False, "n_jobs": 1}),
)
KIND = st.integers(0, len(KINDS) - 1)
#: Settings that some ranker takes; a rule tries those that the estimator at hand has.
VALID = (
    ("p", 2.0),
    ("p", 8.0),
    ("alpha", 1.0),
    ("alpha", 0.01),
    ("loss", "logistic"),
    ("n_estimators", 3),
    ("max_bins", 16),
    ("kernel", None),
    ("target", "graded"),
    ("class_weight", "balanced"),
)


def make_data(n, d, seed, names=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(1)
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    return (X if names is None else pd.DataFrame(X, columns=names)), y


#: Tables of two widths, with and without names; every estimator meets them in any order.
DATA = (
    make_data(14, 2, 0),
    make_data(11, 2, 1),
    make_data(13, 3, 2),
    make_data(12, 2, 3, ["a", "b"]),
    make_data(12, 2, 4, ["c", "d"]),
)
BAD = (
    *("inf", "nan labels", "one class", "short weights", "short y"),
    *("no weight", "no rows", "words"),
)


def quietly(act, *given, **named):
    """The answer; that a solver stopped early, or classes overlap, is no concern of this test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return act(*given, **named)


class Slot:
    """An estimator, and what is expected of it."""

    def __init__(self, kind):
        ranker, params = KINDS[kind]
        self.estimator = ranker(**params)
        self.params = dict(self.estimator.get_params())
        self.data = None
        self.scores = None
        self.tolerance = 0.0

    def fit(self, number, how):
        """Fit the estimator and a fresh one of the same parameters; expect the same scores."""
        X, y = DATA[number]
        warm = self.params.get("warm_start") and self.data is not None
        fresh = clone(self.estimator)
        given = (blocks.from_arrays(X, y),) if how == "fit_blocks" else (X, y)
        try:
            quietly(getattr(fresh, how), *given)
        except ValueError:  # these parameters do not go together, whatever came before
            with pytest.raises(ValueError):
                getattr(self.estimator, how)(*given)
            return
        assert quietly(getattr(self.estimator, how), *given) is self.estimator
        self.tolerance = 1e-3 if warm else 0.0
        self.data, self.scores = number, fuzz.scores_of(fresh, X)

    def forget(self):
        self.data = self.scores = None


class Estimators(RuleBasedStateMachine):
    """Two estimators that are used in turns."""

    slots = ()

    @initialize(first=KIND, second=KIND)
    def start(self, first, second):
        self.slots = [Slot(first), Slot(second)]

    @rule(slot=SLOTS, kind=KIND)
    def make(self, slot, kind):
        self.slots[slot] = Slot(kind)

    @rule(slot=SLOTS, number=st.integers(0, len(DATA) - 1))
    def fit(self, slot, number):
        self.slots[slot].fit(number, "fit")

    @rule(slot=SLOTS, number=st.integers(0, len(DATA) - 1))
    def fit_blocks(self, slot, number):
        if hasattr(self.slots[slot].estimator, "fit_blocks"):
            self.slots[slot].fit(number, "fit_blocks")

    @rule(slot=SLOTS, number=st.integers(0, len(DATA) - 1), how=st.sampled_from(BAD))
    def fit_to_spoilt_data(self, slot, number, how):
        found = self.slots[slot]
        X, y = DATA[number]
        problem = fuzz.Problem(found.estimator, np.asarray(X), y)
        X, y, weight = fuzz.spoilt(problem, how)
        with pytest.raises((ValueError, TypeError)):
            found.estimator.fit(X, y, sample_weight=weight)

    @rule(slot=SLOTS, setting=st.sampled_from(VALID))
    def set_a_parameter(self, slot, setting):
        name, value = setting
        found = self.slots[slot]
        if name in found.params:
            assert found.estimator.set_params(**{name: value}) is found.estimator
            found.params[name] = value

    @rule(slot=SLOTS, data=st.data())
    def fit_with_an_invalid_parameter(self, slot, data):
        found = self.slots[slot]
        name, value = data.draw(fuzz.invalid_settings(found.estimator))
        before = found.params[name]
        found.estimator.set_params(**{name: value})
        with pytest.raises((ValueError, TypeError)):
            found.estimator.fit(*DATA[0])
        found.estimator.set_params(**{name: before})

    @rule(slot=SLOTS)
    def set_a_parameter_that_is_not_there(self, slot):
        with pytest.raises(ValueError, match="no_such_parameter"):
            self.slots[slot].estimator.set_params(no_such_parameter=1)

    @rule(slot=SLOTS, how=st.sampled_from(("pickle", "deepcopy", "copy")))
    def travel(self, slot, how):
        found = self.slots[slot]
        made = {
            "pickle": lambda one: pickle.loads(pickle.dumps(one)),
            "deepcopy": copy.deepcopy,
            "copy": copy.copy,
        }
        found.estimator = made[how](found.estimator)

    @rule(slot=SLOTS)
    def clone(self, slot):
        found = self.slots[slot]
        found.estimator = clone(found.estimator)
        found.forget()

    @rule()
    def give_one_the_parameters_of_the_other(self):
        one, other = self.slots
        if type(one.estimator) is type(other.estimator):
            one.estimator.set_params(**other.estimator.get_params())
            one.params = dict(other.params)

    @precondition(lambda self: any(slot.data is not None for slot in self.slots))
    @rule(slot=SLOTS)
    def score_rows_of_another_width(self, slot):
        found = self.slots[slot]
        if found.data is not None:
            X = DATA[found.data][0]
            wider = X.assign(more=1.0) if isinstance(X, pd.DataFrame) else np.c_[X, X[:, 0]]
            with pytest.raises(ValueError, match=r"features|feature names"):
                fuzz.scores_of(found.estimator, wider)

    @precondition(lambda self: any(slot.data is not None for slot in self.slots))
    @rule(slot=SLOTS)
    def score_rows_with_infinite_values(self, slot):
        found = self.slots[slot]
        if found.data is not None and not fuzz.takes_infinity(found.estimator):
            with pytest.raises(ValueError, match="infinity"):
                fuzz.scores_of(found.estimator, DATA[found.data][0] + np.inf)

    @invariant()
    def parameters_are_as_they_were_set(self):
        for slot in self.slots:
            assert slot.estimator.get_params() == slot.params

    @invariant()
    def scores_are_those_of_a_fresh_fit(self):
        for slot in self.slots:
            if slot.data is None:
                with pytest.raises(NotFittedError):
                    check_is_fitted(slot.estimator)
                continue
            X, _ = DATA[slot.data]
            found = fuzz.scores_of(slot.estimator, X)
            np.testing.assert_allclose(found, slot.scores, rtol=0, atol=slot.tolerance)
            assert slot.estimator.n_features_in_ == X.shape[1]
            names = getattr(slot.estimator, "feature_names_in_", None)
            assert (names is not None) == isinstance(X, pd.DataFrame)
            assert names is None or names.tolist() == list(X.columns)


class TestEstimators(Estimators.TestCase):
    settings = settings(max_examples=30, stateful_step_count=15)


@pytest.mark.slow
class TestEstimatorsAtLength(Estimators.TestCase):
    settings = settings(max_examples=150, stateful_step_count=40)


# Models that travel -------------------------------------------------------------------------------


@cache
def table():
    rng, n = np.random.default_rng(5), 90
    frame = pd.DataFrame({"x": rng.normal(size=n), "city": rng.choice(["Rome", "Oslo"], n)})
    frame["y"] = np.where(frame.x + rng.normal(size=n) > 0.8, "yes", "no")
    frame.loc[::8, "x"] = np.nan
    return frame


@cache
def model(name):
    pytest.importorskip("skops", reason="models are saved with skops")
    models = pytest.importorskip("toprank.models", reason="models need the extra models")
    given = {"p": 4} if name != "proper" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few rows have much to be warned of
        return models.fit_table(table(), "y", model=name, **given)


class Models(RuleBasedStateMachine):
    """Models in files and in memory: the file holds the last one saved, whatever else is done."""

    files = st.integers(0, 1)
    names = st.sampled_from(("pnorm", "proper", "rankboost"))

    def __init__(self):
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.saved = {}
        self.name, self.model = "pnorm", model("pnorm")

    def path(self, file):
        return Path(self.folder.name, f"model-{file}")

    @rule(name=names)
    def take(self, name):
        self.name, self.model = name, model(name)

    @rule(file=files)
    def save(self, file):
        self.model.save(self.path(file))
        self.saved[file] = self.name

    @rule(file=files)
    def load(self, file):
        from toprank.models import ModelError, load

        if file in self.saved:
            self.name, self.model = self.saved[file], load(self.path(file))
        else:
            with pytest.raises(ModelError, match="could not be read"):
                load(self.path(file))

    @rule(file=files, share=st.floats(0.1, 0.9))
    def load_a_file_cut_short(self, file, share):
        from toprank.models import ModelError, load

        if file in self.saved:
            whole = self.path(file).read_bytes()
            self.path(file).write_bytes(whole[: int(share * len(whole))])
            with pytest.raises(ModelError):
                load(self.path(file))
            self.path(file).write_bytes(whole)

    @rule(how=st.sampled_from((copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)))))
    def travel(self, how):
        self.model = how(self.model)

    @rule()
    def score_a_table_that_does_not_match(self):
        from toprank.models import ModelError

        with pytest.raises(ModelError, match="does not match"):
            self.model.score(table().drop(columns="x"))

    @invariant()
    def scores_are_those_of_the_model_as_it_was_fitted(self):
        np.testing.assert_array_equal(self.model.score(table()), model(self.name).score(table()))
        assert self.model.card == model(self.name).card

    @invariant()
    def nothing_else_lies_in_the_folder(self):
        assert {file.name for file in Path(self.folder.name).iterdir()} == {
            f"model-{file}" for file in self.saved
        }

    def teardown(self):
        self.folder.cleanup()


class TestModels(Models.TestCase):
    settings = settings(max_examples=4, stateful_step_count=8)


@pytest.mark.slow
class TestModelsAtLength(Models.TestCase):
    settings = settings(max_examples=60, stateful_step_count=25)
