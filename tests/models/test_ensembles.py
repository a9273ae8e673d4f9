"""An ensemble of a table travels: file, reasons, ONNX, the command line."""

import copy

import numpy as np
import pandas as pd
import pytest

from toprank.models import DriftWatch, ModelError, fit_table, load
from toprank.rankers.ensemble import plan


@pytest.fixture(scope="module")
def frame():
    return draw(np.random.default_rng(5), 300)


def draw(rng, n):
    table = pd.DataFrame({"age": rng.normal(40, 10, n), "city": rng.choice(["Oslo", "Rome"], n)})
    table["income"] = np.where(rng.random(n) < 0.1, np.nan, rng.exponential(1, n))
    together = (table.age > 40) == (table.income.fillna(0) > 0.7)  # no line can tell
    odds = 2 * together + (table.city == "Rome") + 0.5 * rng.normal(size=n)
    table["bought"] = np.where(odds > 2.3, "yes", "no")
    return table


@pytest.fixture(scope="module")
def model(frame):
    with pytest.MonkeyPatch.context() as patch:
        tiny = plan.Effort(2, 5, 0.3, (4.0,), plan.Forests(20), 5, False, plan._FEW)
        patch.setitem(plan.EFFORTS, "fast", tiny)
        patch.setattr(plan, "_FOLDS_OF_FEW", 2)
        yield fit_table(frame, "bought", model="auto", quality="fast")


def test_the_file_gives_the_same_scores_and_reasons(model, frame, tmp_path):
    model.save(tmp_path / "sales.toprank")
    again = load(tmp_path / "sales.toprank")
    np.testing.assert_array_equal(again.score(frame), model.score(frame))
    assert again.reasons(frame.head(3)) == model.reasons(frame.head(3))
    for name in ("oof_scores_", "_labels", "_fit_weight", "_fit_groups"):
        assert hasattr(model.ranker, name) and not hasattr(again.ranker, name)


def test_the_card_says_what_each_member_brings(model):
    members = model.card["members"]
    assert {"logistic", "push", "extra trees"} <= {row["name"] for row in members}
    assert model.card["model"] == "auto"
    assert "lightgbm" in model.card["versions"]


def test_new_rows_are_compared_with_unseen_ones_on_the_scale_of_the_model(model):
    before = model.card["reference"]
    assert before["scores_from"] == "held out" and before["scores_rows"] == 60
    shares = before["scores"]["labels"]
    half = len(shares["rows"]) // 2
    low, high = (
        sum(shares["positives"][part]) / sum(shares["rows"][part])
        for part in (slice(None, half), slice(half, None))
    )
    assert high > 2 * low  # the labels are those of the rows that have the scores
    rows = draw(np.random.default_rng(3), 6_000)
    scores = model.score(rows)
    cut, share = DriftWatch(model).cut_off(0.2)
    # the cut-off is one of sixty rows: three standard errors of a share of them
    assert abs(np.mean(scores > cut) - share) < 3 * np.sqrt(0.2 * 0.8 / 60)
    for part in np.split(np.arange(6_000), 3):
        watch = DriftWatch(model)
        watch.add(rows.iloc[part], scores[part])
        assert watch.scores().p_value > 0.01


def test_trees_that_lead_in_circles_are_refused(model, tmp_path):
    broken = copy.deepcopy(model)
    forest = next(m._forest for _, m in broken.ranker.members_ if hasattr(m, "_forest"))
    forest.left[forest.left > 0] = 0
    broken.save(tmp_path / "bad.toprank")
    with pytest.raises(ModelError, match="trees in the file are damaged: a node lies before"):
        load(tmp_path / "bad.toprank")


def test_onnx_runtime_gives_the_same_scores(model, frame):
    pytest.importorskip("onnxruntime")
    from toprank.interop.onnx import to_onnx

    Z = model.numbers(frame)
    export = to_onnx(model.ranker, check=Z)
    assert export.largest_difference < 1e-6


@pytest.mark.parametrize(
    ("setting", "what"),
    [({"quality": "great"}, "quality='great': expected one of"), ({"p": 4}, "has no p")],
)
def test_settings_that_it_does_not_take_are_refused(frame, setting, what):
    with pytest.raises(ModelError, match=what):
        fit_table(frame, "bought", model="auto", **setting)


def test_the_command_line_fits_an_ensemble_unless_p_is_given():
    pytest.importorskip("typer")
    from toprank.cli.fit import Kind, _model_name

    assert _model_name(None, "auto", None, None) == "auto"
    assert _model_name(None, "4", None, None) == "pnorm"
    assert _model_name(None, "auto", 0.1, None) == "pnorm"
    assert _model_name(None, "auto", None, "model") is None
    assert _model_name(Kind.trees, "auto", None, None) == "trees"


def test_members_are_fitted_to_the_folds_once(frame, monkeypatch):
    """Three folds, the rows that are not held out, all rows: five fits per member at most."""
    from toprank.rankers.ensemble.converted import ForestRanker

    fits, original = [], ForestRanker.fit

    def fit(self, X, *given, **options):
        fits.append(len(X))
        return original(self, X, *given, **options)

    monkeypatch.setattr(ForestRanker, "fit", fit)
    tiny = plan.Effort(3, 2, 0.3, (4.0,), plan.Forests(2), 2, False, plan._FEW)
    monkeypatch.setitem(plan.EFFORTS, "fast", tiny)
    monkeypatch.setattr(plan, "_FOLDS_OF_FEW", 3)
    fit_table(frame, "bought", model="auto", quality="fast")
    assert 3 <= len(fits) <= 5
