"""Gradients of a team are those of one process that holds all rows, however rows are dealt."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from toprank.interop.boosting import PushGradients
from toprank.interop.team import (
    ALONE,
    XGBoostTeam,
    derivatives_together,
    team_positives,
    team_weights,
)
from toprank.interop.xgboost import push_objective
from toprank.objective import build_objective
from toprank.objective.curvature import derivatives_of


class Collective:
    """XGBoost's communicator among threads: what one member sends, all receive."""

    Op = SimpleNamespace(SUM=np.sum, MAX=np.max)

    def __init__(self, rank, size, meeting, table):
        self.rank, self.size, self.meeting, self.table = rank, size, meeting, table

    def get_rank(self):
        return self.rank

    def get_world_size(self):
        return self.size

    def _meet(self, thing):
        self.meeting.wait(10)
        self.table[self.rank] = thing
        self.meeting.wait(10)
        return list(self.table)

    def allreduce(self, array, operation):
        assert isinstance(array, np.ndarray) and array.dtype.kind in "iuf"
        return operation(self._meet(array), axis=0)

    def broadcast(self, thing, root):
        return self._meet(thing)[root]


def in_team(size, work):
    """Return what each member of a team gives back."""
    meeting, table = threading.Barrier(size), [None] * size
    with ThreadPoolExecutor(size) as pool:
        teams = [XGBoostTeam(Collective(rank, size, meeting, table)) for rank in range(size)]
        return [answer.result() for answer in [pool.submit(work, team) for team in teams]]


#: Rows of each of three members; the last has none, the first no positive.
ENDS = [0, 7, 40, 40]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(40) >= 7, rng.integers(0, 2, 40), 0).astype(np.float32)
    return labels, rng.normal(size=40), rng.integers(0, 4, 40).astype(float)


def of_member(team, values):
    return values[ENDS[team.rank] : ENDS[team.rank + 1]]


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", [False, True])
def test_the_gradients_of_a_team_are_those_of_one_process(rows, loss, weighted, groups):
    labels, scores, weight = rows
    settings = {"p": 4.0, "loss": loss}

    def work(team):
        positive = team_positives(team, of_member(team, labels))
        counts = team_weights(team, positive, of_member(team, weight) if weighted else None)
        one_list = None if groups else build_objective(np.array([True, False]), **settings)
        found = derivatives_together(
            team, one_list, lambda y, w: build_objective(y, w, **settings), positive, counts
        )
        return found(of_member(team, scores))

    parts = in_team(3, work)
    alone = derivatives_of(build_objective(labels > 0, weight if weighted else None, **settings))
    for mine, all_rows in zip(zip(*parts, strict=True), alone(scores), strict=True):
        np.testing.assert_allclose(np.concatenate(mine), all_rows, rtol=1e-12, atol=1e-15)


class OfTeam(PushGradients):
    """The objective of a member, as XGBoost calls it in each process."""

    def __init__(self, team, **settings):
        super().__init__(**settings)
        self.team = team

    def _team(self):
        return self.team


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_objective_of_a_team_gives_each_row_what_one_process_gives_it(rows, loss, grouped):
    labels, scores, weight = rows
    sizes = ([7], [10, 23], []) if grouped else (None, None, None)

    def work(team):
        mine = [of_member(team, column) for column in (labels, scores, weight)]
        return OfTeam(team, p=2.0, loss=loss).at(*mine, sizes[team.rank])

    alone = PushGradients(p=2.0, loss=loss).at(*rows, [7, 10, 23] if grouped else None)
    for mine, all_rows in zip(zip(*in_team(3, work), strict=True), alone, strict=True):
        np.testing.assert_allclose(np.concatenate(mine), all_rows, rtol=1e-5, atol=1e-9)


def test_labels_may_be_of_any_kind_and_belong_to_the_whole_team(rows):
    labels = np.where(rows[0] > 0, "yes", "no")
    found = in_team(3, lambda team: team_positives(team, of_member(team, labels)))
    assert np.array_equal(np.concatenate(found), rows[0] > 0)
    gathered = in_team(3, lambda team: team.gather(of_member(team, labels)))
    assert all(np.array_equal(one, labels) for one in gathered)
    assert in_team(3, lambda team: team.first(team.rank)) == [0, 0, 0]

    def refused(team):
        with pytest.raises(ValueError, match="the labels have 1 distinct values"):
            team_positives(team, np.zeros(4))
        return True

    assert in_team(2, refused) == [True, True]


def test_weights_of_one_member_are_refused_by_all(rows):
    def refused(team):
        y = np.array([False, True])
        with pytest.raises(ValueError, match="negative"):
            team_weights(team, y, np.array([1.0, -1.0]) if team.rank else None)
        with pytest.raises(ValueError, match="one weight per row"):
            team_weights(team, y, np.ones(3) if team.rank else None)
        return team_weights(team, y, np.array([2.0, 3.0]) if team.rank else None).tolist()

    assert in_team(2, refused) == [[1.0, 1.0], [2.0, 3.0]]


def test_a_team_of_one_has_its_own_rows_alone():
    rows = np.array(["a", "b"])
    assert ALONE.objects("a") == ["a"] and ALONE.first("a") == "a" and ALONE.any(True)
    assert ALONE.gather(rows).tolist() == ALONE.own(rows, 2).tolist() == ["a", "b"]


def test_gradients_of_arrays_need_no_xgboost(rows, monkeypatch):
    labels, scores, weight = rows
    monkeypatch.delitem(sys.modules, "xgboost", raising=False)
    found = push_objective(2.0)(labels, scores, sample_weight=weight)
    assert "xgboost" not in sys.modules
    for mine, alone in zip(found, PushGradients(2.0).at(*rows), strict=True):
        np.testing.assert_array_equal(mine, alone)


def test_an_all_reduce_of_nothing_asks_nobody():
    assert in_team(2, lambda team: team.sum([]).size) == [0, 0]
