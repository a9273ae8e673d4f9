"""The guarantees hold over many draws: the theorems, and that the code is about them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from toprank.select import TooFewLabels, select

ROOT = Path(__file__).resolve().parents[2]


def draw(seed, n=150, m=120, share=0.4, digits=None):
    rng = np.random.default_rng(seed)
    y = rng.random(n + m) < share
    s = rng.normal(size=n + m) + 2.5 * y
    s = s if digits is None else np.round(s, digits)
    return (y[:n], s[:n]), y[n:], s[n:]


@pytest.mark.parametrize("digits", [None, 0], ids=["without ties", "with ties"])
def test_the_false_discovery_rate_is_at_most_its_target(digits):
    shares = []
    for seed in range(400):
        known, y, s = draw(seed, digits=digits)
        ties = "conservative" if digits is None else "random"
        chosen = select(s, calibration=known, fdr=0.2, ties=ties, random_state=seed).rows
        shares.append(np.mean(~y[chosen]) if len(chosen) else 0.0)
    error = np.std(shares) / 20
    assert 0.2 - 0.04 - 3 * error < np.mean(shares) <= 0.2 + 3 * error


@pytest.mark.parametrize(
    ("wish", "enough"),
    [
        ({"precision_at_least": 0.6}, lambda hits, y: len(hits) == 0 or np.mean(hits) >= 0.6),
        ({"recall_at_least": 0.6}, lambda hits, y: hits.sum() >= 0.6 * y.sum()),
        ({"positives_at_least": 8}, lambda hits, y: hits.sum() >= 8),
    ],
    ids=["precision", "recall", "positives"],
)
def test_a_list_holds_what_was_asked_for_as_often_as_said(wish, enough):
    short = []
    for seed in range(300):
        known, y, s = draw(seed)
        try:
            chosen = select(s, calibration=known, confidence=0.8, **wish).rows
        except TooFewLabels:
            continue
        short.append(not enough(y[chosen], y))
    assert len(short) > 250
    assert np.mean(short) <= 0.2 + 3 * np.sqrt(0.16 / len(short))


@pytest.mark.parametrize(
    "scores",
    [
        np.zeros(400),
        np.repeat([1e308, -1e308], 200),
        np.repeat([5e-324, 0.0], 200),
        np.arange(400) % 2 * 1e-300,
    ],
    ids=["all equal", "huge", "tiny", "two values"],
)
@pytest.mark.parametrize(
    "wish",
    [
        {"fdr": 0.3},
        {"precision_at_least": 0.5},
        {"recall_at_least": 0.5},
        {"positives_at_least": 3},
    ],
    ids=lambda wish: next(iter(wish)),
)
def test_ugly_scores_are_chosen_whole_or_not_at_all(scores, wish):
    y = np.random.default_rng(0).random(400) < 0.5
    chosen = select(scores, calibration=(y, scores), **wish)
    taken = set(chosen.scores.tolist())
    assert len(chosen) == sum(np.count_nonzero(scores == value) for value in taken)


@pytest.mark.slow
def test_the_benchmark_finds_every_guarantee_kept():
    command = [sys.executable, "benchmarks/shortlists.py", "guarantees", "--draws", "500"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
