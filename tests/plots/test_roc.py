"""TopRocDisplay: the right curve, the right window, and lines that can be told apart."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.naive_bayes import GaussianNB

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

from toprank.inference import roc_band  # noqa: E402
from toprank.plots import TopRocDisplay  # noqa: E402


@pytest.fixture(scope="module")
def data():
    return make_classification(n_samples=300, flip_y=0.2, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return LogisticRegression().fit(*data)


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_without_axes_the_whole_curve_stands_beside_the_zoomed_one(model, data):
    X, y = data
    display = TopRocDisplay.from_estimator(model, X, y, max_fpr=0.1)
    full, zoom = display.ax_
    assert full.get_xlim()[1] >= 1 and full.get_ylim()[1] >= 1
    assert zoom.get_xlim()[1] == pytest.approx(0.1)
    assert display.figure_ is full.figure and len(display.line_) == 2
    fpr, tpr, _ = roc_curve(y, model.decision_function(X))
    for line in display.line_:
        np.testing.assert_allclose(line.get_data(), (fpr, tpr))
    assert display.roc_auc == pytest.approx(roc_auc_score(y, model.decision_function(X)))


def test_single_axes_get_the_zoomed_curve_and_any_view_on_request(model, data):
    _, ax = plt.subplots()
    display = TopRocDisplay.from_estimator(model, *data, ax=ax)
    assert display.ax_ is ax and display.line_ in ax.lines
    assert ax.get_xlim()[1] == pytest.approx(0.05)
    assert TopRocDisplay.from_estimator(model, *data, view="full").ax_.get_xlim()[1] >= 1


def test_the_zoomed_view_is_as_high_as_its_highest_curve(data):
    _, y = data
    rng = np.random.default_rng(0)
    good, bad = y + 0.3 * rng.normal(size=len(y)), rng.normal(size=len(y))
    display = TopRocDisplay.from_predictions(y, good, view="zoom")
    height = display.ax_.get_ylim()
    assert display.line_.get_ydata()[0] >= height[0]
    TopRocDisplay.from_predictions(y, bad, ax=display.ax_)
    assert display.ax_.get_ylim() == height


def test_curves_on_the_same_axes_differ_in_colour_and_in_dashes(model, data):
    axes = None
    for number in range(6):
        axes = TopRocDisplay.from_estimator(model, *data, name=f"model {number}", ax=axes).ax_
    for ax in axes:
        assert len({line.get_color() for line in ax.lines}) == 6
        assert len({str(line._unscaled_dash_pattern) for line in ax.lines}) == 6
    assert [label.split(" (")[0] for label in labels(axes[1])] == [f"model {i}" for i in range(6)]


def test_style_and_name_can_be_chosen(model, data):
    display = TopRocDisplay.from_estimator(model, *data, view="zoom", c="red", ls="--", name="mine")
    assert display.line_.get_color() == "red" and display.line_.get_linestyle() == "--"
    assert labels(display.ax_) == [f"mine (AUC = {display.roc_auc:.3f})"]
    assert display.plot(name="other").name == "mine"


def test_the_class_names_the_curve_of_an_estimator_and_nothing_names_a_bare_curve(model, data):
    display = TopRocDisplay.from_estimator(model, *data, view="zoom")
    assert labels(display.ax_)[0].startswith("LogisticRegression (")
    bare = TopRocDisplay(fpr=[0, 0, 1], tpr=[0, 1, 1]).plot(view="zoom")
    assert bare.ax_.get_legend() is None


def test_the_chance_level_is_drawn_once(model, data):
    display = TopRocDisplay.from_estimator(model, *data, plot_chance_level=True)
    again = TopRocDisplay.from_estimator(model, *data, ax=display.ax_, plot_chance_level=True)
    assert again.chance_level_ == display.chance_level_
    assert sum("random order" in label for label in labels(display.ax_[1])) == 1
    assert TopRocDisplay.from_estimator(model, *data).chance_level_ is None


def test_a_weight_is_a_repetition_count(data):
    X, y = data
    weight = np.random.default_rng(1).integers(1, 4, size=len(y))
    scores = X[:, 1]
    weighted = TopRocDisplay.from_predictions(y, scores, sample_weight=weight)
    repeated = TopRocDisplay.from_predictions(np.repeat(y, weight), np.repeat(scores, weight))
    assert weighted.roc_auc == pytest.approx(repeated.roc_auc)


def test_the_other_class_can_be_the_positive_one(data):
    X, y = data
    names = np.where(y == 1, "yes", "no")
    model = LogisticRegression().fit(X, names)
    for pos_label in ("yes", "no"):
        display = TopRocDisplay.from_estimator(model, X, names, pos_label=pos_label)
        assert display.roc_auc > 0.8
        assert pos_label in display.ax_[0].get_ylabel()


def test_a_classifier_without_decision_function_is_ranked_by_its_probabilities(data):
    X, y = data
    model = GaussianNB().fit(X, y)
    expected = roc_auc_score(y, model.predict_proba(X)[:, 1])
    assert TopRocDisplay.from_estimator(model, X, y).roc_auc == pytest.approx(expected)


class NoScores(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"max_fpr": 0.0}, ValueError, "max_fpr"),
        ({"max_fpr": 1.5}, ValueError, "max_fpr"),
        ({"view": "close"}, ValueError, "expected one of"),
        ({"view": "both", "ax": "single"}, ValueError, "needs 2 axes, got 1"),
        ({"pos_label": 7}, ValueError, "pos_label=7"),
        ({"estimator": LogisticRegression()}, NotFittedError, "not fitted"),
        ({"estimator": "no scores"}, ValueError, "neither decision_function nor predict_proba"),
        ({"estimator": "three"}, ValueError, "not a two-class classifier"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_sentence(model, data, change, error, message):
    X, y = data
    stand_for = {
        "single": lambda: plt.subplots()[1],
        "no scores": lambda: NoScores().fit(X, y),
        "three": lambda: GaussianNB().fit(X, np.arange(len(y)) % 3),
    }
    change = {
        key: stand_for[value]() if isinstance(value, str) and value in stand_for else value
        for key, value in change.items()
    }
    with pytest.raises(error, match=message):
        TopRocDisplay.from_estimator(change.pop("estimator", model), X, y, **change)


def test_scores_that_are_not_numbers_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        TopRocDisplay.from_predictions([0, 1], [0.0, np.nan])


@pytest.mark.more
def test_importing_the_room_does_not_import_matplotlib():
    code = "import sys, toprank.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_matplotlib_is_asked_for_by_the_name_of_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'toprank\[plots\]'"):
        TopRocDisplay(fpr=[0, 1], tpr=[0, 1]).plot()


def test_the_band_is_that_of_the_inference_room_and_can_be_left_out(data, model):
    X, y = data
    scores = model.decision_function(X)
    display = TopRocDisplay.from_predictions(y, scores, level=0.9)
    band = roc_band(y, scores, 0.9, fpr=display.band.x)
    np.testing.assert_allclose(display.band.low, band.low)
    assert [one in ax.collections for one, ax in zip(display.band_, display.ax_, strict=True)]
    without = TopRocDisplay.from_predictions(y, scores, level=None, view="zoom")
    assert without.band_ is None and not without.ax_.collections
