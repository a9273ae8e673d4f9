"""A number far from all others does not head a linear list by itself."""

import numpy as np
import pandas as pd
import pytest

from toprank import PNormPush, PushEnsemble
from toprank._numerics import find_long_tail
from toprank.models import fit_table, load, look_at
from toprank.rankers.ensemble.plan import TableShape
from toprank.rankers.ensemble.prepared import PreparedRanker
from toprank.report.table import Table

FAR = 17


@pytest.fixture(scope="module")
def payments():
    """Larger amounts are a little more often fraud; one that is none is larger than all."""
    rng = np.random.default_rng(2)
    n = 800
    frame = pd.DataFrame({"amount": rng.lognormal(3, 1, n), "age": rng.normal(size=n)})
    wish = 0.5 * np.log(frame.amount) + frame.age + rng.normal(size=n)
    frame["fraud"] = (wish > np.quantile(wish, 0.85)).astype(int)
    frame.loc[FAR, ["amount", "fraud"]] = [87_728_400.0, 0]
    frame.loc[frame.sample(40, random_state=0).index.difference([FAR]), "amount"] = np.nan
    return frame


def test_tails_are_clipped_in_linear_models_and_the_card_says_so(payments, tmp_path):
    model = fit_table(payments, "fraud", p=4, alpha=1e-3)
    low, high = model.card["tails"]["amount"]
    assert low < high < 1000
    assert model.score(payments)[FAR] < np.max(model.score(payments))
    (said,) = [text for text in model.card["warnings"] if "amount" in text]
    assert "87728400" in said and said.endswith("(--keep-tails).")
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.score(payments), model.score(payments))
    nearer = payments.assign(amount=np.minimum(payments.amount, high))
    np.testing.assert_array_equal(model.score(payments), model.score(nearer))


def test_tails_count_in_full_where_that_is_asked_for(payments):
    model = fit_table(payments, "fraud", p=4, alpha=1e-3, keep_tails=True)
    assert model.card["tails"] == {}
    assert {column.clip for column in model.schema.columns} == {None}
    (concern,) = look_at(payments, "fraud", keep_tails=True)
    assert concern.option == "--clip amount"
    (concern,) = look_at(payments, "fraud")
    assert concern.option == "--keep-tails" and concern.python == "keep_tails=True"


def test_trees_see_the_tails(payments):
    model = fit_table(payments, "fraud", model="trees", p=2)
    assert model.card["tails"] == {}
    assert {column.clip for column in model.schema.columns} == {None}


def test_linear_members_of_an_ensemble_clip_for_themselves(payments):
    X, y = payments[["amount", "age"]].to_numpy(), payments.fraud.to_numpy()
    farther = X.copy()
    farther[FAR, 0] = 1e12
    member = PreparedRanker(PNormPush(4.0)).fit(X, y)
    scores = member.decision_function(X)
    np.testing.assert_array_equal(scores, member.decision_function(farther))
    np.testing.assert_allclose(member.explain(X).sum(axis=1), scores)
    kept = PreparedRanker(PNormPush(4.0), clip_tails=False).fit(X, y)
    assert not np.array_equal(kept.decision_function(X), kept.decision_function(farther))
    members = PushEnsemble(clip_tails=False)._members(TableShape(X.shape[1]))
    assert {one.clip_tails for _, one in members if isinstance(one, PreparedRanker)} == {False}


def test_clipped_members_score_alike_in_onnx(payments):
    pytest.importorskip("onnxruntime")
    from toprank.interop.onnx import to_onnx

    X, y = payments[["amount", "age"]].to_numpy(), payments.fraud.to_numpy()
    members = [("a", PreparedRanker(PNormPush(4.0))), ("b", PreparedRanker(PNormPush(1.0)))]
    ensemble = PushEnsemble(members, cv=2).fit(X, y)
    assert to_onnx(ensemble, check=X).largest_difference < 1e-6


def test_the_report_s_lines_read_clipped_columns(payments):
    table = Table.read(payments, "fraud", "1", id=None, time=None)
    assert list(table.tails) == ["amount"]
    assert np.nanmax(table.for_lines(table.rows)["amount"]) == table.tails["amount"].high
    whole = Table.read(payments, "fraud", "1", id=None, time=None, keep_tails=True)
    assert np.nanmax(whole.for_lines(whole.rows)["amount"]) == 87_728_400.0


def test_a_weight_counts_as_so_many_numbers():
    rng = np.random.default_rng(0)
    numbers, weight = np.append(rng.normal(size=300), 1e6), rng.integers(0, 3, 301) * 1.0
    weight[-1] = 1.0
    once = find_long_tail(numbers, weight)
    again = find_long_tail(np.repeat(numbers, weight.astype(int)))
    assert once is not None and once[:3] == again[:3] and once.away == pytest.approx(again.away)


@pytest.mark.parametrize(
    "numbers",
    [
        np.array([]),
        np.zeros(200),
        np.full(50, np.nan),
        np.append(np.zeros(5000), 1.0),  # a flag
        np.random.default_rng(1).standard_t(3, size=1000),
    ],
)
def test_columns_without_long_tails_stay_as_they_are(numbers):
    assert find_long_tail(numbers) is None


def test_where_most_numbers_are_the_same_the_others_say_where_the_tail_begins():
    numbers = np.concatenate([np.zeros(20_000), np.arange(1.0, 90.0), [1e9]])
    tail = find_long_tail(numbers)
    assert tail.low == 0.0 and 80 < tail.high < 100
