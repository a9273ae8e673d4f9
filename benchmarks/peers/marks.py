"""Which code a cell was measured with, so that cells of earlier code are seen.

The mark of a peer is its library's version. That of a ranker of ours is its average precision on
two small tables drawn with a fixed seed, one of them with few positives: it changes where our
code, a library or a default changes the answer, and stays where only words, tests or other rooms
do.
"""

from __future__ import annotations

import importlib
from collections import Counter

import numpy as np

from .cells import measured
from .data import Data
from .rankers import Ranker
from .store import Store

#: Rows and the share of positives of the two tables; two thirds are trained on.
_TABLES = ((360, 0.1), (3_000, 0.3))
_LIMIT = 600.0


def mark_of(ranker: Ranker) -> str:
    """Return what tells the code of a ranker from that of another day."""
    if ranker.family != "ours":
        library = importlib.import_module(ranker.library)
        return f"{ranker.library} {library.__version__}"
    return "answers " + " ".join(_answer(ranker, *table) for table in _TABLES)


def _answer(ranker: Ranker, n_rows: int, share: float) -> str:
    data, cut = _table(n_rows, share), 2 * n_rows // 3
    values = measured(ranker, data, np.arange(cut), np.arange(cut, n_rows), _LIMIT).values
    return values.get("failed") or f"{values['average precision']:.5f}"


def _table(n_rows: int, share: float) -> Data:
    """Rows whose classes overlap, so that few changes of a ranker leave the order as it was."""
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 6))
    f = X[:, 0] + np.abs(X[:, 1]) + X[:, 2] * (X[:, 3] > 0) + rng.normal(size=n_rows)
    return Data("small", X, (f > np.quantile(f, 1 - share)).astype(np.int64))


def earlier(store: Store, ranker: str) -> tuple[Counter[str], int]:
    """Splits of each set that carry another mark than the last cell, and cells with none."""
    cells = [c for c in store if c["key"][0] == "full" and c["key"][2] == ranker]
    marked = [cell for cell in cells if "mark" in cell]
    stale = Counter(cell["key"][1] for cell in marked if cell["mark"] != marked[-1]["mark"])
    return stale, len(cells) - len(marked)
