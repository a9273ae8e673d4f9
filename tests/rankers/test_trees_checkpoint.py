"""Trees whose driver is lost while they grow go on from a folder, to the same trees."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

from toprank import PNormPush, PushEnsemble, PushTrees, blocks

pytest.importorskip("xgboost", reason="needs pip install 'toprank[xgboost]'")

from toprank.interop.xgboost import _XGBoostObjective
from toprank.rankers.trees import kept_rounds

needs_draws = pytest.mark.skipif(
    not kept_rounds.draws_can_be_repeated(), reason="this XGBoost cannot repeat its draws"
)
SMALL = {"backend": "xgboost", "n_estimators": 12, "learning_rate": 0.3, "random_state": 3}
SMALL |= {"calibration": "training", "max_leaves": 5, "p": 4}


def table(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, (X[:, 0] * X[:, 1] + rng.logistic(size=n) > 2).astype(int)


def source_of(X, y, weight=None):
    return blocks.from_arrays(X, y, weight, block_rows=400)


class Lost(Exception):
    """The driver is gone."""


class Rounds:
    """Counts the rounds under the push, and loses the driver at one of them."""

    def __init__(self, monkeypatch):
        self.made, self.lost_at = 0, None
        own = _XGBoostObjective.__call__

        def gradients(objective, *given, **named):
            if self.made == self.lost_at:
                raise Lost
            self.made += 1
            return own(objective, *given, **named)

        monkeypatch.setattr(_XGBoostObjective, "__call__", gradients)

    def start(self, lost_at=None):
        self.made, self.lost_at = 0, lost_at


@pytest.fixture
def rounds(monkeypatch):
    monkeypatch.setattr(kept_rounds, "_PAUSES", 0.0)  # every round is kept
    return Rounds(monkeypatch)


def check_same(ours, theirs, X):
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.booster_.get_dump() == theirs.booster_.get_dump()
    assert (ours.predict_proba(X) == theirs.predict_proba(X)).all()


@needs_draws
@pytest.mark.more
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"early_stopping": True, "n_iter_no_change": 4},
        {"loss": "logistic", "p": 2, "rule": "one_standard_error"},
        {"p": "auto", "ps": (1, 4), "cv": 2},  # a comparison that was cut short is made again
    ],
    ids=str,
)
def test_trees_lost_in_the_middle_go_on_to_the_same_trees(how, rounds, tmp_path):
    X, y = table()
    trees = PushTrees(**SMALL | how)
    rounds.start()
    whole = clone(trees).fit_blocks(source_of(X, y), checkpoint=tmp_path / "whole")
    in_all = rounds.made
    for lost_at in {1, in_all // 2, in_all - 1}:
        folder = tmp_path / str(lost_at)
        rounds.start(lost_at)
        with pytest.raises(Lost):
            clone(trees).fit_blocks(source_of(X, y), checkpoint=folder)
        rounds.start()
        again = clone(trees).fit_blocks(source_of(X, y), checkpoint=folder, resume=True)
        check_same(again, whole, X)
        compared = in_all - trees.n_estimators if "ps" in how else 0
        assert rounds.made == in_all - (lost_at if lost_at >= compared else 0)
        if "early_stopping" in how:
            assert again.validation_scores_.tolist() == whole.validation_scores_.tolist()
    rounds.start()
    ended = clone(trees).fit_blocks(source_of(X, y), checkpoint=folder, resume=True)
    check_same(ended, whole, X)
    assert rounds.made == 0


@needs_draws
def test_rounds_of_the_binary_objective_and_of_weights_are_kept_too(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_rounds, "_PAUSES", 0.0)
    X, y = table()
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    trees = PushTrees(**SMALL).set_params(p=None)
    whole = clone(trees).fit_blocks(source_of(X, y, weight), checkpoint=tmp_path / "whole")
    own = kept_rounds.KeptRounds.offer

    def lose(kept, booster, values):
        own(kept, booster, values)
        if booster.num_boosted_rounds() == 7:
            raise Lost

    with monkeypatch.context() as patch, pytest.raises(Lost):
        patch.setattr(kept_rounds.KeptRounds, "offer", lose)
        clone(trees).fit_blocks(source_of(X, y, weight), checkpoint=tmp_path / "fit")
    again = clone(trees).fit_blocks(
        source_of(X, y, weight), checkpoint=tmp_path / "fit", resume=True
    )
    check_same(again, whole, X)


_DRIVER = """
import os, sys
import numpy as np
from toprank import PushTrees, blocks
from toprank.rankers.trees import kept_rounds
file, folder, lost_at = sys.argv[1], sys.argv[2], int(sys.argv[3])
kept_rounds._PAUSES = 0.0
own = kept_rounds.KeptRounds.offer
def offer(kept, booster, values):
    own(kept, booster, values)
    if booster.num_boosted_rounds() == lost_at:
        os._exit(7)
kept_rounds.KeptRounds.offer = offer
source = blocks.from_parquet(file, "y", block_rows=400)
trees = PushTrees(backend="xgboost", n_estimators=12, early_stopping=True, random_state=3)
trees.fit_blocks(source, checkpoint=folder, resume=True)
print(hash(tuple(trees.booster_.get_dump())), trees.n_iter_, trees._offset.hex())
"""


@needs_draws
@pytest.mark.more
def test_a_driver_that_is_killed_is_followed_by_another_process(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = table()
    pandas.DataFrame(X, columns=list("abcde")).assign(y=y).to_parquet(tmp_path / "rows.parquet")

    env = {**os.environ, "PYTHONHASHSEED": "0"}

    def drive(folder, lost_at):
        given = [tmp_path / "rows.parquet", folder, str(lost_at)]
        done = subprocess.run(
            [sys.executable, "-c", _DRIVER, *given],
            capture_output=True,
            text=True,
            check=False,
            env=env,
        )
        return done.returncode, done.stdout

    status, want = drive(tmp_path / "whole", -1)
    assert status == 0
    assert drive(tmp_path / "fit", 5)[0] == 7
    assert drive(tmp_path / "fit", -1) == (0, want)


@needs_draws
def test_other_rows_and_other_settings_are_refused(tmp_path):
    X, y = table(600)
    trees = PushTrees(**SMALL).set_params(n_estimators=2)
    trees.fit_blocks(source_of(X, y), checkpoint=tmp_path)
    for other in ({"p": 8}, {"learning_rate": 0.1}, {"random_state": 4}, {"metric": "auc"}):
        with pytest.raises(ValueError, match="is that of another fit"):
            clone(trees).set_params(**other).fit_blocks(
                source_of(X, y), checkpoint=tmp_path, resume=True
            )
    with pytest.raises(ValueError, match="is that of another fit"):
        clone(trees).fit_blocks(source_of(X[:, :4], y), checkpoint=tmp_path, resume=True)
    changed = y.copy()
    changed[0] = 1 - changed[0]
    for given in ((X, changed), (X[:-1], y[:-1]), (X, y, y + 1.0)):
        with pytest.raises(ValueError, match="The rows are not those that the checkpoint"):
            clone(trees).fit_blocks(source_of(*given), checkpoint=tmp_path, resume=True)
    with pytest.raises(ValueError, match="is that of another fit"):
        PNormPush().fit_blocks(source_of(X, y), checkpoint=tmp_path, resume=True)
    # how many threads grow the trees is nobody's business
    clone(trees).set_params(n_jobs=1, verbose=0).fit_blocks(
        source_of(X, y), checkpoint=tmp_path, resume=True
    )


@needs_draws
def test_what_cannot_be_gone_on_with_is_refused_at_once(tmp_path):
    X, y = table(600)
    trees = PushTrees(**SMALL).set_params(n_estimators=2)
    with pytest.raises(ValueError, match="resume=True needs the folder"):
        trees.fit_blocks(source_of(X, y), resume=True)
    with pytest.raises(ValueError, match=r"random_state=None: .* Give a number"):
        clone(trees).set_params(random_state=None).fit_blocks(source_of(X, y), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="names XGBoost's updater"):
        clone(trees).set_params(backend_params={"updater": "grow_quantile_histmaker"}).fit_blocks(
            source_of(X, y), checkpoint=tmp_path
        )
    trees.fit_blocks(source_of(X, y), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="holds the passes of an earlier fit"):
        trees.fit_blocks(source_of(X, y), checkpoint=tmp_path)
    kept = tmp_path / "rounds.pass"
    kept.write_bytes(kept.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"rounds\.pass is damaged"):
        trees.fit_blocks(source_of(X, y), checkpoint=tmp_path, resume=True)


@needs_draws
def test_a_source_with_a_checkpoint_is_that_of_its_folder(rounds, tmp_path):
    X, y = table(600)
    trees = PushTrees(**SMALL).set_params(n_estimators=3)
    first = clone(trees).fit_blocks(blocks.with_checkpoint(source_of(X, y), tmp_path))
    rounds.start()
    rows = blocks.with_checkpoint(source_of(X, y), tmp_path, resume=True)
    check_same(clone(trees).fit_blocks(rows), first, X)
    assert rounds.made == 0


def test_keeping_the_rounds_takes_little_of_the_time(tmp_path, monkeypatch):
    now, kept = [0.0], []
    monkeypatch.setattr(kept_rounds.clock, "perf_counter", lambda: now[0])

    class Folder:
        def replace(self, name, question, outcome):
            now[0] += 1.0
            kept.append(outcome)

    class Booster:
        def save_raw(self, kind):
            return b"trees"

    rounds = kept_rounds.KeptRounds(Folder(), "which")
    for _ in range(100):
        now[0] += 1.0
        rounds.offer(Booster(), [0.5])
    assert len(kept) == 5  # one second in twenty


@needs_draws
@pytest.mark.more
def test_the_trees_of_an_ensemble_go_on_too(rounds, tmp_path):
    X, y = table()
    members = [("push/1", PNormPush(p=4)), ("trees", PushTrees(**SMALL))]
    ensemble = PushEnsemble(members, cv=2, random_state=0)
    rounds.start()
    whole = clone(ensemble).fit_blocks(source_of(X, y), checkpoint=tmp_path / "whole")
    in_all = rounds.made
    rounds.start(in_all - 5)
    with pytest.raises((Lost, ValueError)):
        clone(ensemble).fit_blocks(source_of(X, y), checkpoint=tmp_path / "fit")
    rounds.start()
    again = clone(ensemble).fit_blocks(source_of(X, y), checkpoint=tmp_path / "fit", resume=True)
    assert rounds.made == 5
    assert (again.decision_function(X) == whole.decision_function(X)).all()


def test_draws_that_cannot_be_repeated_are_refused_and_never_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_rounds, "_DRAWS_ANEW", "1000.0.0")
    X, y = table()
    with pytest.raises(ValueError, match="would all draw the same columns"):
        PushTrees(**SMALL).fit_blocks(source_of(X, y), checkpoint=tmp_path)
    plain = PushTrees(**SMALL).fit_blocks(source_of(X, y))
    within = PushTrees(**SMALL).fit_blocks(blocks.with_checkpoint(source_of(X, y), tmp_path))
    check_same(within, plain, X)


@pytest.mark.parametrize(
    ("version", "repeats"),
    [("2.1.4", False), ("3.2.0rc1", False), ("3.2.0", True), ("3.10.1", True), ("4.0.0-dev", True)],
)
def test_versions_of_xgboost_are_told_apart(version, repeats, monkeypatch):
    monkeypatch.setattr("xgboost.__version__", version)
    assert kept_rounds.draws_can_be_repeated() is repeats


def test_rounds_draw_other_columns_each(tmp_path):
    X, y = table()
    trees = PushTrees(**SMALL, colsample=0.4)
    kept = tmp_path if kept_rounds.draws_can_be_repeated() else None
    for folder in (None, kept):
        grown = clone(trees).fit_blocks(source_of(X, y), checkpoint=folder).booster_
        tree = grown.trees_to_dataframe().groupby("Tree")["Feature"]
        assert len({frozenset(one) - {"Leaf"} for _, one in tree}) > 3


@needs_draws
def test_trees_of_a_file_that_was_written_again_were_taken_for_those_of_the_new_rows(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = table()
    rows = pd.DataFrame(X, columns=list("abcde")).assign(y=y)
    trees = PushTrees(early_stopping=False, **SMALL | {"p": 2})

    def fit(**kept):
        rows.to_parquet(tmp_path / "rows.parquet")
        source = blocks.from_parquet(tmp_path / "rows.parquet", "y")
        return clone(trees).fit_blocks(source, checkpoint=tmp_path / "fit", **kept)

    first = fit()
    check_same(fit(resume=True), first, rows[list("abcde")])
    rows["a"] *= -1.0
    with pytest.raises(ValueError, match="or their files were written again"):
        fit(resume=True)
