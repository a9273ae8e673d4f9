"""What a list is worth in money, and how many of its rows to take."""

from __future__ import annotations

import numpy as np

from toprank._arrays import JsonObject
from toprank._numerics import FloatArray
from toprank._text import count


def gains(curve: JsonObject, value: float, cost: float) -> JsonObject:
    """Return what the first rows of a list bring, less what they cost, and where that is most.

    Parameters
    ----------
    curve : dict
        ``x`` (rows taken), ``y``, ``low`` and ``high`` (share of positives among them).
    value : float
        What a positive brings.
    cost : float
        What taking a row costs.
    """
    rows = np.asarray(curve["x"], dtype=np.float64)

    def gain(share: FloatArray) -> FloatArray:
        return rows * (value * np.asarray(share) - cost)

    whole, low, high = gain(curve["y"]), gain(curve["low"]), gain(curve["high"])
    best = int(np.argmax(whole))
    pays = whole[best] > 0
    return {
        "value": value,
        "cost": cost,
        "y": whole,
        "low": low,
        "high": high,
        "best": int(rows[best]) if pays else 0,
        "best_gain": float(whole[best]) if pays else 0.0,
        "best_low": float(low[best]) if pays else 0.0,
        "best_high": float(high[best]) if pays else 0.0,
    }


def describe_gains(found: JsonObject, precision: JsonObject, k: int, n: int) -> tuple[str, str]:
    """Return how many rows to take, in a sentence, and what the first k rows bring, in others."""
    value, cost = found["value"], found["cost"]
    at_k = k * (value * precision["value"] - cost)
    word = "gain" if at_k >= 0 else "lose"
    said = f"Taking the first {count(k)} of them would {word} {amount(abs(at_k))}"
    if precision["low"] is not None:
        ends = [k * (value * precision[end] - cost) for end in ("low", "high")]
        said += f" (between {about(ends[0])} and {about(ends[1])})"
    said += f", at {amount(value)} for each that is found and {amount(cost)} for each row taken."
    if not found["best"]:
        return "No number of rows from the top of this list pays for itself.", said
    share = found["best"] / n
    if share >= 0.999:
        return "It pays to take all rows: the list is not needed for that.", said
    advice = (
        f"It pays most to take about {count(found['best'])} of these {count(n)} rows, "
        f"the first {100 * share:.2g}%: a gain of about {about(found['best_gain'])} (between "
        f"{about(found['best_low'])} and {about(found['best_high'])})."
    )
    hopeful = "How many pay most was found on the rows it is measured on: it is a little hopeful."
    return advice, f"{said} {hopeful}"


def about(value: float) -> str:
    """Return a sum of money that is not known exactly: three figures of it.

    Examples
    --------
    >>> from toprank.report.money import about
    >>> about(12981.4), about(-56.78)
    ('13\u202f000', '−56.8')
    """
    return amount(float(f"{value:.3g}"))


def amount(value: float) -> str:
    """Return a sum of money: whole above a hundred, with a true minus sign.

    Examples
    --------
    >>> from toprank.report.money import amount
    >>> amount(2.5), amount(-1234.4)
    ('2.5', '−1\u202f234')
    """
    size = abs(value)
    digits = count(size) if size >= 100 else f"{size:.3g}"
    return f"\u2212{digits}" if value < 0 and digits != "0" else digits
