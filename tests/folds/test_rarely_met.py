"""What folds and choices meet rarely, each in a small case."""

import numpy as np
import pytest
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import PredefinedSplit, TimeSeriesSplit

from toprank import PNormPush, blocks
from toprank.folds import Scoring, block_models, folds_of
from toprank.folds.block_folds import folds_on_blocks
from toprank.folds.choice import Candidate, PChoice, corrected_difference


@pytest.mark.parametrize("share", [0.0, -1.0, np.inf, "half"])
def test_the_share_of_rows_tested_is_positive(share):
    with pytest.raises(ValueError, match=r"test_to_train=.*expected a positive number"):
        corrected_difference([0.1, 0.2, 0.3], share)


def test_a_score_that_is_no_number_is_named_with_its_fold():
    tried = (Candidate("p=1", 1.0), Candidate("p=4", 4.0))
    with pytest.raises(ValueError, match="risk of p=4 is -inf on fold 1"):
        PChoice(tried, np.array([[0.1, 0.2], [0.3, -np.inf]]), "risk")


@pytest.mark.more
@pytest.mark.parametrize("weighted", [False, True])
def test_a_scorer_of_ones_own_has_an_interval_with_weights(weighted):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3 == 0
    s = y + rng.normal(size=60)
    weight = rng.integers(1, 4, 60).astype(float) if weighted else None
    found = Scoring(make_scorer(roc_auc_score, response_method="decision_function")).interval(
        y, s, weight
    )
    assert found.estimate == pytest.approx(roc_auc_score(y, s, sample_weight=weight))
    assert found.low < found.estimate < found.high


def test_rows_of_no_weight_are_in_no_fold_that_was_given():
    y, weight = np.arange(12) % 2, np.r_[0.0, 0.0, np.ones(10)]
    given = [(np.arange(4, 12), np.arange(4)), (np.arange(4), np.arange(4, 8))]
    for cv in (PredefinedSplit(np.arange(12) // 4), given):
        wanted = [tuple(rows[weight[rows] > 0] for rows in fold)
                  for fold in (cv.split() if hasattr(cv, "split") else cv)]  # fmt: skip
        found = folds_of(cv, y, weight=weight)
        assert len(found) == len(wanted)
        for mine, theirs in zip(found, wanted, strict=True):
            assert [rows.tolist() for rows in mine] == [rows.tolist() for rows in theirs]


def source(n=200, **more):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return blocks.from_arrays(X, (X[:, 0] > 0.5).astype(int), block_rows=80, **more)


def test_a_splitter_by_places_is_refused_on_blocks():
    with pytest.raises(TypeError, match=r"Use toprank\.tuning\.TimeOrderedSplit"):
        folds_on_blocks(source(groups=np.arange(200)), TimeSeriesSplit(3))


def test_too_many_rows_to_compare_any_rankers_are_refused(monkeypatch):
    monkeypatch.setattr(block_models, "EXACT_UP_TO", 100)
    with pytest.raises(ValueError, match=r"The source has 200 rows.*100 at the most"):
        block_models.compare_on_blocks((), (), source(), folds_on_blocks(source(), 2), Scoring())


def test_a_fold_that_tests_one_class_is_named():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y, time = np.r_[np.arange(40) % 2, np.zeros(20, dtype=int)], np.arange(60)
    from toprank.tuning import TimeOrderedSplit

    rows = blocks.from_arrays(X, y, groups=time)
    with pytest.raises(ValueError, match="Fold 1 has rows of one class only to test"):
        block_models.compare_on_blocks(
            (Candidate("p=1", 1.0),), (PNormPush(1.0),), rows,
            folds_on_blocks(rows, TimeOrderedSplit(2, test_size=20)), Scoring("auc"),
        )  # fmt: skip


def test_rankers_that_read_for_themselves_keep_what_they_fitted_by_fold(tmp_path):
    class Reads:
        """A ranker whose passes no other shares."""

        def __init__(self):
            self.kept = []

        def fit_blocks(self, rows, **kept):
            self.kept.append(kept)
            return self

        def __sklearn_clone__(self):
            return self

    model = Reads()
    block_models.fit_on_folds([model], source(), folds_on_blocks(source(), 2), tmp_path)
    assert model.kept == [
        {"checkpoint": tmp_path / f"fold-{fold}-model-0", "resume": True} for fold in (0, 1)
    ]
