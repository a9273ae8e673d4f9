"""Threads: who is told to stop, and how many BLAS has after a fork."""

import pytest

from toprank.blocks.threads import Stopped, _BlasLimit, go_on, is_stopped, stop_where


def test_a_thread_stops_for_a_reason_from_outside_and_only_inside_the_block():
    asked = []
    with stop_where(lambda: bool(asked)):
        go_on()
        asked.append("stop")
        with pytest.raises(Stopped):
            go_on()
        with stop_where(lambda: False):
            assert not is_stopped()
        assert is_stopped()
    assert not is_stopped()


class Library:
    user_api, num_threads = "blas", 4

    def set_num_threads(self, count):
        self.num_threads = count


def test_a_child_process_has_the_threads_of_blas_that_its_parent_was_holding(monkeypatch):
    blas, limit = Library(), _BlasLimit()
    monkeypatch.setattr(limit, "_found", lambda: [blas])
    hold = limit.enter()
    assert blas.num_threads == 1
    limit.in_child()  # as after a fork: the thread that holds it is not here
    assert blas.num_threads == 4
    again = limit.enter()
    assert blas.num_threads == 1
    limit.leave(again)
    limit.leave(hold)
    assert blas.num_threads == 4
