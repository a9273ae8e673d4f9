"""Cut a list within limits, and say what each of them costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toprank._numerics import FloatArray, is_number
from toprank._text import counted
from toprank.pairs import check_scores
from toprank.select.chances import read_chances
from toprank.select.clash import check_limits
from toprank.select.exact import MOST_ROWS
from toprank.select.explore import Drawn, draw_below
from toprank.select.limited_list import LimitedList, LimitPrice
from toprank.select.limits import (
    CutRows,
    IntArray,
    Limits,
    read_amounts,
    read_entities,
    read_group_counts,
    read_groups,
    read_rows,
)
from toprank.select.list_search import ListSearch, find_prices, price_of
from toprank.select.stay import find_lead, raise_rows

#: Rows up to which the exact search is tried where filling from the top may not be best.
_EXACT_UP_TO = 5000
METHODS = ("auto", "greedy", "exact")


def cut(
    scores: ArrayLike,
    k: int | float | None = None,
    *,
    probability: ArrayLike | None = None,
    calibration: tuple[ArrayLike, ArrayLike] | None = None,
    entities: ArrayLike | None = None,
    per_entity: int = 1,
    groups: ArrayLike | None = None,
    at_most: int | float | Mapping[Any, int | float] | None = None,
    at_least: int | float | Mapping[Any, int | float] | None = None,
    cost: ArrayLike | None = None,
    budget: float | None = None,
    value: ArrayLike | None = None,
    include: ArrayLike | None = None,
    exclude: ArrayLike | None = None,
    explore: float = 0.0,
    previous: ArrayLike | None = None,
    noise: float | None = None,
    old_scores: ArrayLike | None = None,
    confidence: float = 0.95,
    method: str = "auto",
    random_state: int | np.random.Generator | None = 0,
) -> LimitedList:
    r"""Cut a list within the limits of the real world, and say what each of them costs.

    With probabilities :math:`\pi_i` the list is to hold the most expected value,

    .. math:: \max_L \sum_{i \in L} v_i \pi_i, \quad |L| \le k, \quad \sum_{i \in L} c_i \le B,

    with at most `per_entity` rows of each entity, and `at_least` and `at_most` rows of each group.
    Without probabilities the rows of the highest scores are taken that fit.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of the rows; among rows of equal worth the higher score is first.
    k : int or float, optional
        Rows at most: a count, or a share of the rows. All, within the budget, if not given.
    probability : array-like of shape (n,), optional
        Probability that each row is positive.
    calibration : (labels, scores), optional
        Labelled rows that the ranker was not fitted to: where no probabilities are given, scores
        are made into probabilities by isotonic regression on these.
    entities : array-like of shape (n,), optional
        What each row is about (a card, a customer); a missing entity is one of its own.
    per_entity : int, default=1
        Rows of one entity at most; with `entities`.
    groups : array-like of shape (n,), optional
        Groups that the list has caps or floors for, such as regions.
    at_most, at_least : int, float or mapping, optional
        Rows of each group, or of the groups named; a number below 1 is a share of k. The same
        number in both is a quota.
    cost : float or array-like of shape (n,), optional
        What it costs to act on a row; with `budget`.
    budget : float, optional
        What all rows may cost together; needs probabilities.
    value : float or array-like of shape (n,), optional
        What a positive is worth, one by default; needs probabilities.
    include, exclude : array-like, optional
        Rows that must be in the list, and that must not: places, or one truth value per row.
    explore : float, default=0.0
        Share of the list (and of the budget) that is drawn at random from the rows below the cut,
        so that what comes of them is learned too. `LimitedList.propensity` has the probability of
        each row: pass it as ``label_propensity`` to the metrics when the labels are there. The
        draw keeps the limits, and the floors are met by the other rows. The seed draws the same
        rows in whatever order they come, but for rows of equal score, probability, value and cost.
    previous : array-like, optional
        Rows that were in the list before, which stay unless a newcomer is ahead of them by more
        than noise: places, or one truth value per row. They are chosen with that lead on their
        score, within all limits; what they cost is priced by their own probabilities.
    noise, old_scores, confidence
        With `previous`: how much scores move by themselves, as in `keep_rows`.
    method : {"auto", "greedy", "exact"}, default="auto"
        "greedy" takes the rows from the top, by their worth and by their worth per cost, and says
        how much more the best list may be worth. "exact" is integer programming (SciPy's `milp`)
        for thousands of rows. "auto" is greedy, and exact up to 5000 rows where that may be better.
    random_state : int, Generator or None, default=0
        Seed of the exploration.

    Returns
    -------
    LimitedList
        ``.rows .propensity .explored .kept .positives .bound .prices``; prints as a table of
        prices.

    Raises
    ------
    ValueError
        Where limits clash; the message names those that do.

    Notes
    -----
    The price of a limit is what the list would hold more if this limit alone were dropped: the
    expected positives of that list less those of this one, by the same method. Probabilities that
    are off make prices that are off.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.select import cut
    >>> rng = np.random.default_rng(0)
    >>> chance = rng.beta(1, 9, size=1000)
    >>> card = rng.integers(0, 400, size=1000)
    >>> region = rng.choice(["north", "south"], size=1000, p=[0.1, 0.9])
    >>> print(cut(chance, 50, probability=chance, entities=card, groups=region,
    ...           at_least={"north": 10}))
    50 of 1000 rows; 18.13 positives expected, by the probabilities given.
    Found by integer programming: no list within the limits expects more.
    limit                        rows kept out  positives lost
    at most 1 row per entity                 1          0.0604
    at least 10 rows of 'north'              6           0.282
    """
    rows, limits, chances = _read_problem(
        check_scores(scores, name="scores"),
        k,
        (probability, calibration),
        {"entities": entities, "per_entity": per_entity},
        {"groups": groups, "at_most": at_most, "at_least": at_least},
        {"cost": cost, "budget": budget, "value": value},
        {"include": include, "exclude": exclude},
    )
    _check_method(method, rows)
    share = _check_share(explore)
    size, chosen_within = _set_aside(rows, limits, share)
    check_limits(rows, chosen_within)
    raised, lead = _raise_previous(rows, previous, noise, old_scores, confidence)
    search, chosen, bound = _search_list(raised, chosen_within, method)
    kept = np.empty(0, dtype=np.intp)
    stay_price: tuple[LimitPrice, ...] = ()
    if lead is not None:
        chosen, bound = _in_own_order(rows, chosen), None  # the bound counts the lead
        free = ListSearch(rows, search.method).best(chosen_within)
        kept = chosen[~np.isin(chosen, free)]
        said = f"rows of before stay, within a lead of {lead:.4g}"
        stay_price = (price_of(rows, said, free, chosen),)
    rng = np.random.default_rng(random_state)
    reserve = np.inf if rows.cost is None else limits.budget * share
    drawn = draw_below(rows, limits, chosen, size, reserve, rng)
    listed = np.concatenate((chosen, drawn.rows))
    prices = tuple(find_prices(search, limits, chosen_within, chosen, listed, rows)) + stay_price
    return LimitedList(
        listed,
        np.arange(len(listed)) >= len(chosen),
        np.concatenate((np.ones(len(chosen)), drawn.propensity)),
        len(rows),
        _sum(rows.probability, listed),
        None if rows.value is None else _sum(rows.worth, listed),
        _sum(rows.cost, listed),
        bound,
        None if rows.probability is None else float(np.sum(rows.worth[chosen])),
        "integer programming" if search.method == "exact" else "greedy",
        chances,
        prices,
        _note_on(rows, chosen_within, len(chosen), drawn, size),
        kept,
        lead,
    )


def _search_list(
    rows: CutRows, limits: Limits, method: str
) -> tuple[ListSearch, IntArray, float | None]:
    """The best list that is found, how it was found, and a bound on what any is worth.

    "auto" goes on to the exact search where a list may be better and the rows are few.
    """
    search = ListSearch(rows, method)
    chosen = search.best(limits)
    bound = search.bound(limits, chosen)
    if method == "auto" and bound is not None and len(rows) <= _EXACT_UP_TO:
        if search.total(chosen) < bound * (1 - 1e-9):
            return _search_list(rows, limits, "exact")
    return search, chosen, bound


def _raise_previous(
    rows: CutRows,
    previous: ArrayLike | None,
    noise: float | None,
    old_scores: ArrayLike | None,
    confidence: float,
) -> tuple[CutRows, float | None]:
    """The rows with a lead for those of before, and how large it is; None where none stay."""
    if previous is None:
        if noise is not None or old_scores is not None:
            raise ValueError("noise and old_scores are for rows of an earlier list: give previous.")
        return rows, None
    before, lead = find_lead(rows.scores, previous, noise, old_scores, confidence)
    return raise_rows(rows, before, lead), lead


def _in_own_order(rows: CutRows, chosen: IntArray) -> IntArray:
    """Chosen rows by their own worth, then by score."""
    return chosen[np.lexsort((-rows.scores[chosen], -rows.worth[chosen]))]


def _sum(values: FloatArray | None, rows: IntArray) -> float | None:
    return None if values is None else float(np.sum(values[rows]))


def _read_problem(
    scores: FloatArray,
    k: object,
    known: tuple[ArrayLike | None, tuple[ArrayLike, ArrayLike] | None],
    of_entities: dict[str, Any],
    of_groups: dict[str, Any],
    money: Mapping[str, object],
    forced: Mapping[str, object],
) -> tuple[CutRows, Limits, str]:
    """Check what the user has given; the rows, the limits, and where probabilities come from."""
    n = len(scores)
    if n == 0:
        raise ValueError("Found 0 rows while a minimum of 1 is required.")
    size = _list_size(k, n, money["budget"])
    chance, chances = read_chances(scores, *known)
    entities = read_entities(of_entities["entities"], n)
    per_entity = of_entities["per_entity"]
    if isinstance(per_entity, bool) or not isinstance(per_entity, (int, np.integer)):
        raise ValueError(f"per_entity={per_entity!r}: expected a whole number from 1.")
    if per_entity < 1:
        raise ValueError(f"per_entity={per_entity!r}: expected at least 1.")
    group, names = read_groups(of_groups["groups"], n)
    counts = {
        name: read_group_counts(name, of_groups[name], names, None if k is None else size)
        for name in ("at_most", "at_least")
    }
    value, cost = (read_amounts(name, money[name], n) for name in ("value", "cost"))
    budget = _check_budget(money["budget"], cost, chance)
    if value is not None and chance is None:
        raise ValueError(
            "value needs to know how probable positives are: give probability or calibration."
        )
    rows = CutRows(scores, chance, value, cost, entities, group, names)
    limits = Limits(
        size,
        None if entities is None else int(per_entity),
        counts["at_most"],
        counts["at_least"],
        budget,
        *(read_rows(name, rows_named, n) for name, rows_named in forced.items()),
    )
    return rows, limits, chances


def _list_size(k: object, n: int, budget: object) -> int:
    if k is None:
        if budget is None:
            raise ValueError("Give k, how long the list may be, or a budget.")
        return n
    if not is_number(k) or isinstance(k, (bool, np.bool_)):
        raise ValueError(f"k={k!r}: expected a count or a share in (0, 1].")
    if isinstance(k, (float, np.floating)) and not (float(k).is_integer() and k > 1):
        if not 0 < k <= 1:
            raise ValueError(f"k={k!r}: a share is a number in (0, 1]; for a count pass an int.")
        return int(np.ceil(k * n - 1e-9))
    if k < 1:
        raise ValueError(f"k={k!r}: expected at least 1.")
    return min(int(k), n)


def _check_budget(budget: object, cost: FloatArray | None, chance: FloatArray | None) -> float:
    if budget is None:
        if cost is not None:
            raise ValueError("cost without budget limits nothing: give budget too.")
        return np.inf
    if not (is_number(budget) and 0 <= budget < np.inf):
        raise ValueError(f"budget={budget!r}: expected an amount from 0.")
    if cost is None:
        raise ValueError("budget needs cost, what acting on a row costs.")
    if chance is None:
        raise ValueError(
            "budget weighs the worth of rows against their cost, and scores do not say what a row "
            "is worth: give probability or calibration."
        )
    return float(budget)


def _check_method(method: str, rows: CutRows) -> None:
    if method not in METHODS:
        raise ValueError(f"method={method!r}: expected one of {list(METHODS)}.")
    if method == "exact" and rows.probability is None:
        raise ValueError(
            "method='exact' makes the expected positives most: give probability or calibration."
        )
    if method == "exact" and len(rows) > MOST_ROWS:
        raise ValueError(
            f"method='exact' takes up to {MOST_ROWS} rows, got {len(rows)}: cut the rows that no "
            "list would hold first, or take method='greedy', which says how good it is."
        )


def _check_share(explore: object) -> float:
    if not (is_number(explore) and 0 <= explore < 1):
        raise ValueError(f"explore={explore!r}: expected a share of the list in [0, 1).")
    return float(explore)


def _set_aside(rows: CutRows, limits: Limits, share: float) -> tuple[int, Limits]:
    """How many rows are to be drawn, and the limits of those that are chosen."""
    if share == 0:
        return 0, limits
    if limits.k == len(rows) and limits.budget < np.inf:  # only the budget says how many
        return len(rows), replace(limits, budget=limits.budget * (1 - share))
    size = min(limits.k, max(1, round(share * limits.k)))
    return size, replace(limits, k=limits.k - size, budget=limits.budget * (1 - share))


def _note_on(rows: CutRows, inner: Limits, chosen: int, drawn: Drawn, size: int) -> str:
    """What the reader should know of a list: where it is short, and what could not be drawn."""
    said = []
    if inner.k < len(rows) and chosen < inner.k:
        said.append(f"{counted(inner.k - chosen, 'row')} fewer than k fit the limits.")
    if len(drawn.rows) < size < len(rows):
        said.append(
            f"{counted(size - len(drawn.rows), 'row')} fewer than asked for were drawn at random."
        )
    if drawn.too_dear:
        dear = counted(drawn.too_dear, "row below the cut costs", "rows below the cut cost")
        said.append(f"{dear} too much to be drawn: propensity 0.")
    if rows.probability is None:
        said.append(
            "What the limits cost in positives is not known from scores alone: give probability "
            "or calibration."
        )
    return " ".join(said)
