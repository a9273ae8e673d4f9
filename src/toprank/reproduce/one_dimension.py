"""Rudin (2009), Section 10.1: a rare end of the distribution decides what the best top is."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank._extras import require
from toprank.metrics import auc, max_height
from toprank.reproduce.compare import claim, claims_part
from toprank.reproduce.experiment import Experiment, Result, Setup
from toprank.reproduce.page import Grid, Paragraph, Part
from toprank.simulate import rare_reversal

EPSILONS = (0.01, 0.05)


def one_sample(epsilon: float, m: int, seed: int, repeat: int) -> tuple[bool, float] | None:
    """Whether R_max on m rows prefers the increasing score, and that score's AUC on them.

    None where the sample lacks a class.
    """
    X, y = rare_reversal(epsilon).sample(m, random_state=[seed, repeat, m])
    if y.min() == y.max():
        return None
    x = X[:, 0]
    return bool(max_height(y, x) < max_height(y, -x)), float(auc(y, x))


def many_samples(epsilon: float, m: int, seed: int, repeats: int) -> dict[str, Any]:
    """How often R_max is fooled, and the mean AUC of the same score.

    (1 - epsilon)^m is the chance that no row lies beyond, (1 - epsilon/2)^m that no negative does.
    """
    found = [one_sample(epsilon, m, seed, repeat) for repeat in range(repeats)]
    kept = [one for one in found if one is not None]
    return {
        "epsilon": epsilon,
        "m": m,
        "samples": len(kept),
        "fooled": float(np.mean([wrong for wrong, _ in kept])),
        "none_beyond": (1 - epsilon) ** m,
        "no_negative_beyond": (1 - epsilon / 2) ** m,
        "auc": float(np.mean([area for _, area in kept])),
    }


def _compute(setup: Setup) -> Result:
    s = setup.settings
    cases = [(epsilon, m) for epsilon in EPSILONS for m in s["sizes"]]
    n = len(cases)
    epsilons, sizes = zip(*cases, strict=True)
    rows = setup.map(many_samples, epsilons, sizes, [setup.seed] * n, [s["repeats"]] * n)
    X, y = rare_reversal(0.05).sample(s["test_rows"], random_state=[setup.seed, 10**6])
    x, positives = X[:, 0], int(y.sum())
    increasing, decreasing = max_height(y, x) / positives, max_height(y, -x) / positives
    chances = [r["no_negative_beyond"] for r in rows]
    errors = [3.5 * np.sqrt(q * (1 - q) / r["samples"]) for q, r in zip(chances, rows, strict=True)]
    claims = [
        claim(
            "The wrong function is chosen with probability (1 - ε)^m at least.",
            all(r["fooled"] >= r["none_beyond"] - e for r, e in zip(rows, errors, strict=True)),
        ),
        claim(
            "Ours, not the paper's: exactly with probability (1 - ε/2)^m.",
            all(
                abs(r["fooled"] - q) <= max(e, 2 / r["samples"])
                for r, q, e in zip(rows, chances, errors, strict=True)
            ),
            "Positives beyond alone do not save the sample; a negative beyond does.",
        ),
        claim(
            "On the whole distribution the increasing function has the worst R_max, I.",
            increasing == 1.0 and decreasing < 1.0,
            f"R_max/I on {s['test_rows']:,} rows: {increasing:.3f} increasing, "
            f"{decreasing:.3f} decreasing.",
        ),
        claim(
            "The AUC is hardly affected: that of the increasing function is close to 1.",
            all(r["auc"] > (1 - r["epsilon"]) ** 2 - 0.02 for r in rows),
            f"(1 - ε)² is its true value; on {s['test_rows']:,} rows: {auc(y, x):.4f} at ε = 0.05.",
        ),
    ]
    return {"rows": rows, "claims": claims}


def _describe(result: Result) -> list[Part]:
    rows = [
        [
            f"ε = {r['epsilon']:g}, m = {r['m']}",
            f"{100 * r['fooled']:.1f}",
            f"{100 * r['none_beyond']:.1f}",
            f"{100 * r['no_negative_beyond']:.1f}",
            f"{r['auc']:.4f}",
        ]
        for r in result["rows"]
    ]
    return [
        Paragraph(
            "Positives lie on [0, 1] and negatives on [-1, 0], but for a proportion ε of the rows "
            "beyond them, which are the other way round. Two functions are to choose from, x and "
            "-x. How often does R_max on m rows choose x, which is the worst at the top? The paper "
            "says (1 - ε)^m, the chance that no row lies beyond. It is more: x is chosen too where "
            "rows lie beyond at the lower end only, so that the chance is (1 - ε/2)^m."
        ),
        Grid(["", "ours, %", "(1 - ε)^m, %", "(1 - ε/2)^m, %", "mean AUC of x"], rows),
        claims_part(result["claims"]),
    ]


def _draw(result: Result) -> Any:
    figure = require("matplotlib.figure", "plots").Figure(figsize=(6.4, 4.2), layout="constrained")
    ax = figure.subplots()
    for epsilon, colour, dashes in zip(EPSILONS, ("#0072B2", "#D55E00"), ("-", "--"), strict=True):
        rows = [r for r in result["rows"] if r["epsilon"] == epsilon]
        sizes = [r["m"] for r in rows]
        look = {"color": colour, "linestyle": dashes}
        exact = [r["no_negative_beyond"] for r in rows]
        ax.plot(sizes, exact, label=f"(1 - ε/2)^m, ε = {epsilon:g}", **look)
        ax.plot(sizes, [r["none_beyond"] for r in rows], color=colour, linestyle=":", linewidth=1)
        ax.plot(
            sizes, [r["fooled"] for r in rows], "o", color=colour, label=f"ours, ε = {epsilon:g}"
        )
    ax.set(xscale="log", xlabel="rows m", ylabel="share of samples that choose the wrong function")
    ax.set(ylim=(0, 1.02), title="R_max needs the rare rows (dotted: (1 - ε)^m)")
    ax.legend(frameon=False)
    ax.grid(alpha=0.25)
    return figure


EXPERIMENTS = (
    Experiment(
        "one-dimension",
        "Section 10.1: an illustration in one dimension",
        _compute,
        _describe,
        _draw,
        "How often the wrong function is chosen against the number of rows",
        full={"sizes": [10, 20, 50, 100, 200, 500], "repeats": 500, "test_rows": 20_000},
        quick={"sizes": [10, 50, 200], "repeats": 300, "test_rows": 20_000},
        finding="the wrong function is chosen with probability (1 - ε/2)^m, not (1 - ε)^m.",
    ),
)
