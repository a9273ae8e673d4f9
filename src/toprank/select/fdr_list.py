"""The shortlist whose share of negatives is bounded on average, and why one is empty."""

from __future__ import annotations

import numpy as np

from toprank._numerics import FloatArray
from toprank._text import counted, percent
from toprank.select.calibration import Calibration
from toprank.select.conformal import (
    break_ties,
    conformal_p_values,
    select_by_fdr,
    select_under_shift,
)
from toprank.select.shortlist import Shortlist, TooFewLabels
from toprank.select.wish import DRAWN_ALIKE, Wish, make_shortlist

_DRAWN_BY_RATIO = (
    "new rows are drawn like calibration rows, but for the likelihood ratios given, which are right"
)


#: A list as short as this is what an empty one is compared with.
_SHORT_LIST = 10


def list_by_fdr(
    known: Calibration,
    new: FloatArray,
    wish: Wish,
    ratios: tuple[FloatArray, FloatArray] | None,
    random_ties: bool,
    draw: np.random.Generator,
) -> Shortlist:
    """The longest list in which on average at most a share of the rows are negatives."""
    fewest = int(np.ceil(1 / wish.value * (1 - 1e-12))) - 1
    if known.n_rows < fewest:
        raise TooFewLabels(
            f"{known.n_rows} calibration rows cannot support fdr={wish.value:g}, whatever the "
            f"scores: that takes at least {fewest} labelled rows.",
            fewest,
        )
    judged, places, of_judged = known, new, ratios
    if random_ties:
        judged, places, copies = break_ties(known, new, draw)
        of_judged = None if ratios is None else (ratios[0][copies], ratios[1])
    if of_judged is None:
        chosen = select_by_fdr(judged, places, wish.value)
        notes = () if np.any(chosen) else _why_empty(known.n_rows, len(new), wish.value)
    else:
        chosen, passed = select_under_shift(judged, places, wish.value, of_judged, draw)
        notes = (
            () if np.any(chosen) else _why_empty_under_shift(known, new, wish.value, ratios, passed)
        )
    guarantee = (
        f"On average over lists made in this way, at most {percent(wish.value)} of the chosen rows "
        "are negatives."
    )
    return make_shortlist(
        known,
        new,
        wish,
        np.flatnonzero(chosen),
        guarantee,
        notes,
        drawn=DRAWN_ALIKE if ratios is None else _DRAWN_BY_RATIO,
        order_by=places,
        p_values=lambda: conformal_p_values(judged, places, of_judged),
    )


def _why_empty(n: int, m: int, fdr: float) -> tuple[str, ...]:
    shortest = int(np.ceil(m / (fdr * (n + 1)) * (1 - 1e-12)))
    text = f"{n} calibration rows can vouch for lists of {shortest} rows or more out of {m}"
    if shortest > _SHORT_LIST:
        needed = int(np.ceil(m / (fdr * _SHORT_LIST))) - 1
        text += f"; {needed} could for lists of {_SHORT_LIST}"
    return (f"{text}. The negatives among them score too high.",)


def _why_empty_under_shift(
    known: Calibration,
    new: FloatArray,
    fdr: float,
    ratios: tuple[FloatArray, FloatArray] | None,
    passed: int,
) -> tuple[str, ...]:
    """Say whether rows fell to the pruning, score too low, or weigh too much to be vouched for."""
    if passed or ratios is None:
        return _why_pruned(passed)
    n, m, weight = known.n_rows, len(new), float(np.dot(known.counts, ratios[0]))
    lightest = float(np.min(ratios[1]))
    shortest = int(np.ceil(m * lightest / (fdr * (weight + lightest)) * (1 - 1e-12)))
    if shortest > m:
        return (
            f"By the likelihood ratios {n} calibration rows weigh as much as "
            f"{weight / lightest:.3g} of the lightest new row: too little for any list out of "
            f"{m}. It takes more labelled rows that are like the new ones.",
        )
    return (
        f"By the likelihood ratios {n} calibration rows can vouch for lists of "
        f"{max(1, shortest)} rows or more out of {m}. The negatives among them score too high.",
    )


def _why_pruned(passed: int) -> tuple[str, ...]:
    return (
        f"{counted(passed, 'row')} passed, and fell to the pruning, which draws a number of "
        "random_state. More calibration rows make that rarer; drawing again until a list comes "
        "undoes the guarantee.",
    )
