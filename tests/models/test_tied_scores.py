"""Models whose scores take few values: another fit's values lie beside them."""

import numpy as np
import pytest

from toprank.models import DriftWatch, fit_table
from toprank.models.monitor import Limits, monitor_model

pd = pytest.importorskip("pandas", reason="tables need the extra models")
pytest.importorskip("skops", reason="models are saved with skops")
USUAL = Limits(0.25, 2.0, None)


def flags(rng, n):
    shares = {"a": 0.5, "b": 0.3, "c": 0.2}
    frame = pd.DataFrame({name: rng.random(n) < share for name, share in shares.items()})
    return frame.assign(y=1.2 * frame.a + 0.8 * frame.b + 0.5 * frame.c + rng.normal(size=n) > 2)


def findings(model, frame):
    rows = frame.drop(columns="y")
    return monitor_model(model, [(rows, model.score(rows))], lambda: None, USUAL)


@pytest.mark.parametrize("rows", [600, 12_000])  # scored by fits to folds; by one to four fifths
def test_few_values_of_the_scores_are_no_drift_by_themselves(rows):
    rng = np.random.default_rng(3)
    model = fit_table(flags(rng, rows), "y", p=4, alpha=1e-3)
    remembered = np.unique(np.round(model.card["reference"]["scores"]["quantiles"], 6))
    own = np.unique(np.round(model.score(flags(rng, 2_000)), 6))
    assert set(remembered) <= set(own)
    for _ in range(3):
        found = findings(model, flags(rng, 2_000))
        assert found.alarms == [] and found.scores.psi < 0.05


def test_more_rows_at_the_top_are_seen_where_scores_take_few_values():
    rng = np.random.default_rng(4)
    model = fit_table(flags(rng, 2_000), "y", p=4, alpha=1e-3)
    new = flags(rng, 5_000)
    top = np.argsort(-model.score(new))[:1_000]
    some = np.r_[rng.choice(top, 2_500), rng.choice(5_000, 2_500)]
    alarms = findings(model, new.iloc[some].reset_index(drop=True)).alarms
    assert any("score" in one for one in alarms)
    assert any("raise an alert" in one for one in alarms)


def test_rows_scored_one_by_one_have_not_moved():
    """Sums of one row are rounded in other places than those of many."""
    rng = np.random.default_rng(5)
    frame = flags(rng, 400).assign(d=rng.integers(1, 6, 400), e=rng.integers(1, 4, 400))
    frame["y"] = frame.y | (frame.d > 4)
    model = fit_table(frame, "y", p=4, alpha=1e-3)
    single, whole = DriftWatch(model), DriftWatch(model)
    whole.add(frame)
    for row in range(len(frame)):
        single.add(frame.iloc[row : row + 1])
    assert single.scores().psi == whole.scores().psi


def test_fits_that_differ_much_are_allowed_for_where_one_alone_stands_for_the_folds():
    """RankBoost of the same table but a fifth of its rows gives other shares between its scores."""
    rng = np.random.default_rng(99)
    spreads = []
    for model in ("rankboost", "pnorm"):
        frame = pd.DataFrame(rng.normal(size=(11_000, 4)), columns=list("abcd"))
        frame["y"] = frame.a + 1.5 * rng.normal(size=11_000) > 1.5
        push = {"p": 4, **({"alpha": 1e-3} if model == "pnorm" else {})}
        known = fit_table(frame, "y", model=model, **push).card["reference"]
        assert known["scores_from"] == "held out"
        spreads.append(known["scores_spread"] * 11_000)
    assert spreads[0] > 4 and spreads[1] < 3


@pytest.mark.more
def test_copies_of_rows_raise_no_alarm():
    """A fit to the other folds has seen a row whose copy is among them, and trees remember it."""
    rng = np.random.default_rng(6)

    def draw(n):
        frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
        return frame.assign(y=frame.a + 1.5 * rng.normal(size=n) > 1.5)

    copied = pd.concat([draw(300)] * 3, ignore_index=True)
    model = fit_table(copied, "y", model="trees", p=4)
    assert [findings(model, draw(1_000)).alarms for _ in range(3)] == [[]] * 3
    assert findings(model, draw(1_000).assign(a=lambda f: f.a + 1)).alarms
