"""A fit whose driver is lost goes on where it stood, to the same bits."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from toprank import IRPush, PNormPush, PNormPushCV, ProperRanker, PushRanker, blocks


def rows(n=3000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + rng.normal(size=n) > 1).astype(int)


class Lost(Exception):
    """The driver is gone."""


class Counting(blocks.BlockSource):
    """Counts the passes that read the rows, and is lost at one of them."""

    def __init__(self, source, lost_at=None):
        self.source, self.lost_at, self.made = source, lost_at, []
        for name in ("n_features", "feature_names", "in_memory", "checked", "reads_anew"):
            setattr(self, name, getattr(source, name))

    def map_reduce(self, sweep, state):
        if len(self.made) == self.lost_at:
            raise Lost
        self.made.append(type(sweep).__name__)
        return self.source.map_reduce(sweep, state)

    def write_scores(self, score, to=None):
        return self.source.write_scores(score, to)


RANKERS = [
    PNormPush(p=4),
    PNormPush(p=64, alpha=0.1),
    PNormPush(p=np.inf, alpha=0.1),
    IRPush(),
    ProperRanker(),
    PushRanker(loss="logistic", price="power", p=4),
    PNormPush(loss="hinge"),
    PNormPush(solver="coordinate", max_iter=10),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_a_fit_lost_at_any_pass_goes_on_to_the_same_bits(ranker, tmp_path):
    X, y = rows()
    source = blocks.from_arrays(X, y, block_rows=500)
    whole = Counting(source)
    want = ranker.fit_blocks(whole).coef_.copy()
    for lost_at in {1, len(whole.made) // 2, len(whole.made) - 1}:
        folder = tmp_path / str(lost_at)
        with pytest.raises(Lost):
            ranker.fit_blocks(Counting(source, lost_at), checkpoint=folder)
        again = Counting(source)
        ranker.fit_blocks(again, checkpoint=folder, resume=True)
        assert (ranker.coef_ == want).all()
        # the labels are read again, to see that the rows are the same
        assert len(again.made) == len(whole.made) - lost_at + 1


def test_rows_of_files(tmp_path):
    X, y = rows()
    pd.DataFrame(X, columns=list("abcd")).assign(y=y).to_parquet(tmp_path / "rows.parquet")
    source = blocks.from_parquet(tmp_path / "rows.parquet", "y", block_rows=400)
    first = PNormPush().fit_blocks(source, checkpoint=tmp_path / "fit")
    again = PNormPush().fit_blocks(source, checkpoint=tmp_path / "fit", resume=True)
    assert (first.coef_ == again.coef_).all()
    assert again.passes_ == first.passes_


_DRIVER = """
import os, sys
from toprank import PushRanker, blocks
file, folder, lost_at = sys.argv[1], sys.argv[2], int(sys.argv[3])
source = blocks.from_parquet(file, "y", block_rows=400)
read, made = source.map_reduce, []
def map_reduce(sweep, state):
    if len(made) == lost_at:
        os._exit(7)
    made.append(sweep)
    return read(sweep, state)
source.map_reduce = map_reduce
ranker = PushRanker(price="power", p=8, loss="logistic")
ranker.fit_blocks(source, checkpoint=folder, resume=True)
print(len(made), *(x.hex() for x in ranker.coef_[0]))
"""


@pytest.mark.more
def test_a_driver_that_is_killed_is_followed_by_another_process(tmp_path):
    X, y = rows()
    pd.DataFrame(X, columns=list("abcd")).assign(y=y).to_parquet(tmp_path / "rows.parquet")

    def drive(folder, lost_at):
        command = [sys.executable, "-c", _DRIVER, tmp_path / "rows.parquet", folder, str(lost_at)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.split()

    status, (whole, *want) = drive(tmp_path / "whole", 10_000)
    assert status == 0
    assert drive(tmp_path / "fit", 4)[0] == 7
    status, (made, *got) = drive(tmp_path / "fit", 10_000)
    assert status == 0 and got == want
    assert int(made) == int(whole) - 3


def test_rows_that_have_changed_are_noticed(tmp_path):
    X, y = rows()
    PNormPush().fit_blocks(blocks.from_arrays(X, y), checkpoint=tmp_path)
    y[0] = 1 - y[0]
    with pytest.raises(ValueError, match="The rows are not those that the checkpoint"):
        PNormPush().fit_blocks(blocks.from_arrays(X, y), checkpoint=tmp_path, resume=True)


@pytest.mark.parametrize("other", [PNormPush(p=5), PNormPush(alpha=0.5), IRPush()], ids=str)
def test_another_fit_is_noticed(other, tmp_path):
    source = blocks.from_arrays(*rows())
    PNormPush().fit_blocks(source, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="is that of another fit"):
        other.fit_blocks(source, checkpoint=tmp_path, resume=True)


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:90] + b"x" + b[91:]]
)
def test_a_damaged_file_is_named_and_can_be_deleted(damage, tmp_path):
    source = blocks.from_arrays(*rows())
    want = PNormPush().fit_blocks(source, checkpoint=tmp_path).coef_
    last = sorted(tmp_path.glob("*.pass"))[-1]
    last.write_bytes(damage(last.read_bytes()))
    with pytest.raises(ValueError, match=f"{last.name} is damaged"):
        PNormPush().fit_blocks(source, checkpoint=tmp_path, resume=True)
    last.unlink()
    again = PNormPush().fit_blocks(source, checkpoint=tmp_path, resume=True)
    assert (again.coef_ == want).all()


class Harmful:
    def __reduce__(self):
        return (print, ("harm",))


def test_a_file_that_would_call_something_is_refused(tmp_path, capsys):
    import hashlib

    source = blocks.from_arrays(*rows())
    PNormPush().fit_blocks(source, checkpoint=tmp_path)
    second = sorted(tmp_path.glob("*.pass"))[1]
    held, bad = second.read_bytes(), pickle.dumps(Harmful())
    head = held[: len(b"toprank pass 1\n") + 32]
    second.write_bytes(head + hashlib.blake2b(bad, digest_size=32).digest() + bad)
    with pytest.raises(ValueError, match="which no fit writes"):
        PNormPush().fit_blocks(source, checkpoint=tmp_path, resume=True)
    assert "harm" not in capsys.readouterr().out


def test_outcomes_too_large_to_keep_are_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr("toprank.blocks.checkpoint._MOST_BYTES", 100)
    source = blocks.from_arrays(*rows())
    want = PNormPush().fit_blocks(source, checkpoint=tmp_path).coef_
    again = PNormPush().fit_blocks(source, checkpoint=tmp_path, resume=True)
    assert (again.coef_ == want).all()


def test_bad_arguments(tmp_path):
    source = blocks.from_arrays(*rows())
    with pytest.raises(ValueError, match="resume=True needs the folder"):
        PNormPush().fit_blocks(source, resume=True)
    with pytest.raises(TypeError, match=r"expected a source of toprank\.blocks"):
        blocks.with_checkpoint(rows()[0], tmp_path)
    PNormPush().fit_blocks(source, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="holds the passes of an earlier fit"):
        PNormPush().fit_blocks(source, checkpoint=tmp_path)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ValueError, match="is a file; expected a folder"):
        PNormPush().fit_blocks(source, checkpoint=file)


def test_new_rows_are_learned_from_where_the_old_fit_stood():
    X, y = rows(60_000)
    old = slice(0, 50_000)
    ranker = PNormPush(p=4, warm_start=True).fit_blocks(blocks.from_arrays(X[old], y[old]))
    cold = PNormPush(p=4).fit_blocks(blocks.from_arrays(X, y))
    ranker.fit_blocks(blocks.from_arrays(X, y))
    np.testing.assert_allclose(ranker.coef_, cold.coef_, atol=1e-5)
    assert sum(ranker.passes_.values()) <= sum(cold.passes_.values())


class _Anew(blocks.BlockSource):
    """Rows that every pass reads anew, as from files."""

    reads_anew = True

    def __init__(self, X, y):
        self.inner = blocks.from_arrays(X, y, block_rows=20_000)
        self.n_features = X.shape[1]

    def map_reduce(self, sweep, state):
        return self.inner.map_reduce(sweep, state)

    def write_scores(self, score, to=None):
        return self.inner.write_scores(score, to)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "ranker", [PNormPush(p=4), PNormPush(p=4, solver="lbfgs"), ProperRanker(), IRPush()]
)
def test_new_files_take_fewer_passes_than_a_fit_from_the_start(ranker):
    X, y = rows(200_000, d=6)
    cold = clone(ranker).fit_blocks(_Anew(X, y))
    warm = clone(ranker).set_params(warm_start=True).fit_blocks(_Anew(X[:180_000], y[:180_000]))
    warm.fit_blocks(_Anew(X, y))
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=1e-4)
    assert sum(warm.passes_.values()) < sum(cold.passes_.values())


def test_why_there_is_no_partial_fit_is_said():
    ranker = PNormPush()
    assert not hasattr(ranker, "partial_fit")
    with pytest.raises(AttributeError, match=r"the minimum over old .*warm_start=True") as refused:
        ranker.partial_fit(np.eye(2), [0, 1])
    assert refused.value.__cause__ is None  # what the user sees is the reason itself


REFUSED = [
    PNormPush(p=4),
    PushRanker(loss="logistic", price="power", p=4),
    PNormPushCV((1, 4), alphas=(1e-2,), cv=3),
]


@pytest.mark.parametrize("ranker", REFUSED, ids=str)
def test_rows_that_are_refused_left_passes_behind(ranker, tmp_path):
    X, y = rows()
    X[100, 2] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        ranker.fit_blocks(blocks.from_arrays(X, y, block_rows=500), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="one class only"):
        ranker.fit_blocks(blocks.from_arrays(X, np.zeros(3000)), checkpoint=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_rows_that_were_mended_were_refused_again_for_what_had_been_kept(tmp_path):
    X, y = rows()
    bad = X.copy()
    bad[100, 2] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        PNormPush().fit_blocks(blocks.from_arrays(bad, y), checkpoint=tmp_path)
    mended = PNormPush().fit_blocks(blocks.from_arrays(X, y), checkpoint=tmp_path, resume=True)
    assert (mended.coef_ == PNormPush().fit_blocks(blocks.from_arrays(X, y)).coef_).all()


def test_a_feature_that_changed_in_a_file_was_not_noticed(tmp_path):
    X, y = rows()
    table = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    table.to_parquet(tmp_path / "rows.parquet")

    def fit(**kept):
        source = blocks.from_parquet(tmp_path / "rows.parquet", "y", block_rows=400)
        return PNormPush().fit_blocks(source, checkpoint=tmp_path / "fit", **kept)

    first = fit()
    table.to_parquet(tmp_path / "rows.parquet")  # the same rows, written again
    assert (fit(resume=True).coef_ == first.coef_).all()
    table.assign(a=-table.a).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="or their files were written again"):
        fit(resume=True)


def test_a_pass_is_kept_before_the_next_one_reads_and_the_last_one_with_the_fit(tmp_path):
    source = blocks.from_arrays(*rows())
    whole = Counting(source)
    PNormPush().fit_blocks(whole, checkpoint=tmp_path / "whole")
    assert len(list((tmp_path / "whole").glob("*.pass"))) == len(whole.made)
    for lost_at in range(2, len(whole.made)):
        folder = tmp_path / str(lost_at)
        with pytest.raises(Lost):
            PNormPush().fit_blocks(Counting(source, lost_at), checkpoint=folder)
        assert len(list(folder.glob("*.pass"))) == lost_at


def test_a_source_whose_passes_are_kept_is_scored_and_known_as_its_own(tmp_path):
    X, y = rows(200)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    source = blocks.from_parquet(tmp_path / "rows.parquet", "y")
    kept = blocks.with_checkpoint(source, tmp_path / "fit")
    ranker = PNormPush().fit_blocks(kept)
    assert kept.identity() == source.identity() != b""
    ranker.score_blocks(kept, tmp_path / "scores")
    (file,) = (tmp_path / "scores").glob("**/*.parquet")
    scores = pd.read_parquet(file).iloc[:, -1]
    np.testing.assert_allclose(scores, ranker.decision_function(frame), rtol=1e-12)


@pytest.mark.parametrize("ranker", [PNormPush(), PNormPushCV((1,), alphas=(1e-2,), cv=3)], ids=str)
def test_an_address_as_the_folder_was_a_folder_named_after_its_scheme(
    ranker, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    source = blocks.from_arrays(*rows())
    with pytest.raises(ValueError, match=r"checkpoint 's3://bucket/fit' is the address of a store"):
        ranker.fit_blocks(source, checkpoint="s3://bucket/fit")
    with pytest.raises(ValueError, match=r"checkpoint 's3://bucket/fit' is the address of a store"):
        ranker.fit_blocks(source, checkpoint=Path("s3://bucket/fit"))  # which keeps one slash
    with pytest.raises(ValueError, match=r"to 'gs://bucket/scores\.npy' is the address of a store"):
        PNormPush().fit_blocks(source).score_blocks(source, to="gs://bucket/scores.npy")
    assert list(tmp_path.iterdir()) == []
    ranker.fit_blocks(source, checkpoint=(tmp_path / "a folder").as_uri())
    assert [place.name for place in tmp_path.iterdir()] == ["a folder"]
