"""Rudin (2009), Sections 3, 7 and 10: small lists and curves that can be checked to the digit."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from toprank._arrays import JsonObject
from toprank.metrics import push_risk
from toprank.plots import DiscountDisplay, PairContributionDisplay
from toprank.reproduce import facts
from toprank.reproduce.experiment import (
    Experiment,
    Result,
    Setup,
    claim,
    claims_part,
    exact_cell,
    new_figure,
)
from toprank.reproduce.page import Grid, Paragraph, Part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOSSES = ("zero_one", "exponential", "logistic")
_LOSS_NAMES = {"zero_one": "0-1", "exponential": "exponential", "logistic": "logistic"}
_LABELINGS = {
    "orig": "original order",
    "swap_on_bottom": "swap on the bottom",
    "swap_on_top": "swap on the top",
}
FIGURE_1_POWERS = (1, 2, 4, 16, 64)
_HALVED = (
    "The 0-1 column is that of the printed scores. The exponential and the logistic columns come "
    "out to every printed digit only if the scores are halved, so they are halved here."
)


def risk(y: ArrayLike, scores: ArrayLike, p: float, loss: str) -> float:
    """R_{p,l} as Tables 1 and 2 have it: the scores halved but for the 0-1 loss."""
    return push_risk(y, np.asarray(scores) * facts.SCORE_SCALE[loss], p=p, loss=loss)


def _table_1(setup: Setup) -> Result:
    cells = []
    for labeling, labels in facts.TABLE_1_LABELS.items():
        for loss in LOSSES:
            ours, paper = risk(labels, range(1, 9), 4, loss), facts.TABLE_1[labeling][loss]
            cells.append(exact_cell(_LABELINGS[labeling], _LOSS_NAMES[loss], ours, paper))
    return {"cells": cells, "claims": [_exact_claim(cells)]}


def _exact_claim(cells: list[JsonObject]) -> dict[str, object]:
    equal = sum(cell["verdict"] == "equal" for cell in cells)
    return claim(
        f"All {len(cells)} numbers of the paper come out.",
        all(cell["verdict"] != "different" for cell in cells),
        f"{equal} to the printed digit"
        + (
            f", {len(cells) - equal} cut by the paper instead of rounded."
            if equal < len(cells)
            else "."
        ),
    )


def _describe_table_1(result: Result) -> list[Part]:
    rows = [
        [f"{cell['row']}, {cell['column']} loss", f"{cell['ours']:,.2f}", f"{cell['paper']:,.2f}"]
        for cell in result["cells"]
    ]
    return [
        Paragraph(
            "R_{4,l} of eight examples scored 1 to 8, and after one swap at the bottom or at the "
            f"top: a swap at the top costs far more. {_HALVED}"
        ),
        Grid(["", "ours", "paper"], rows),
        claims_part(result["claims"]),
    ]


def _table_2(setup: Setup) -> Result:
    f1 = np.arange(14, 0, -1) / 14
    cells, preferred = [], {}
    for loss in LOSSES:
        first = [risk(facts.TABLE_2_LABELS, f1, p, loss) for p in range(1, 11)]
        second = [risk(facts.TABLE_2_LABELS, -f1, p, loss) for p in range(1, 11)]
        preferred[loss] = next(p for p in range(1, 11) if first[p - 1] < second[p - 1])
        for p in range(1, 11):
            for name, ours, paper in zip(
                ("f1", "f2"), (first, second), facts.TABLE_2[loss][p - 1], strict=True
            ):
                column = f"{_LOSS_NAMES[loss]}, {name}"
                cells.append(exact_cell(f"p = {p}", column, ours[p - 1], paper))
    claims = [_exact_claim(cells)]
    claims += [
        claim(
            f"{_LOSS_NAMES[loss]} loss: f1, better at the top, is preferred from p = {p} on.",
            preferred[loss] == p,
        )
        for loss, p in facts.TABLE_2_REVERSAL.items()
    ]
    return {"cells": cells, "claims": claims}


def _describe_table_2(result: Result) -> list[Part]:
    columns = list(dict.fromkeys(cell["column"] for cell in result["cells"]))
    rows: dict[str, list[str]] = {}
    for cell in result["cells"]:
        text = f"{cell['ours']:.4g} / {cell['paper']:.4g}"
        rows.setdefault(cell["row"], [cell["row"]]).append(text)
    # the cells run by loss, then p, so that a row collects them in the order of the columns
    return [
        Paragraph(
            "Which of f1, right at the top, and f2 = -f1, right in the middle, does R_{p,l} "
            f"prefer? Ours / paper. {_HALVED}"
        ),
        Grid(["", *columns], list(rows.values())),
        Paragraph("R_{5,exp}(f1) is 156,638, printed as 1.56e5: cut, not rounded."),
        claims_part(result["claims"]),
    ]


def _figure_1_list() -> tuple[np.ndarray, np.ndarray]:
    return np.array(facts.FIGURE_1_LABELS), np.arange(20, 0, -1) / 20


def pair_shares(p: float = 1.0, price: str = "power") -> np.ndarray:
    """Share of the risk that falls to each (positive, negative), highest scores first."""
    y, f = _figure_1_list()
    inner = np.exp(-(f[y == 1][:, None] - f[y == -1][None, :]))
    if price == "log1p":
        total = (
            np.log1p(inner.sum(axis=1, keepdims=True)) * inner / inner.sum(axis=1, keepdims=True)
        )
    else:
        total = inner * inner.sum(axis=0, keepdims=True) ** (p - 1)
    return np.asarray(total / total.sum())


def _figure_1(setup: Setup) -> Result:
    shares = {p: pair_shares(p).sum(axis=0) for p in FIGURE_1_POWERS}
    first = [float(shares[p][0]) for p in FIGURE_1_POWERS]
    moved = all(a < b for a, b in pairwise(first))
    return {
        "shares": {f"p = {p}": shares[p].tolist() for p in FIGURE_1_POWERS},
        "claims": [
            claim(
                "As p grows the objective comes more from the highest scored negatives.",
                moved,
                f"The highest adds {first[0]:.0%} at p = 1 and {first[-1]:.0%} at p = 64.",
            )
        ],
    }


def _describe_figure_1(result: Result) -> list[Part]:
    return _share_parts(result, "k", "eight negatives")


def _describe_figure_4(result: Result) -> list[Part]:
    return _share_parts(result, "i", "twelve positives")


def _share_parts(result: Result, index: str, rows: str) -> list[Part]:
    lines = [
        [name, *(f"{100 * share:.1f}" for share in shares)]
        for name, shares in result["shares"].items()
    ]
    return [
        Paragraph(
            f"Share of the objective, in %, that falls to each of the {rows}, the highest scored "
            "first. The paper prints no numbers, only the picture; lighter is larger."
        ),
        Grid(["", *(f"{index} = {n}" for n in range(1, len(lines[0])))], lines),
        claims_part(result["claims"]),
    ]


def _draw_contributions(settings: list[dict[str, Any]]) -> Figure:
    figure = new_figure(3.1 * len(settings) + 1, 3.9)
    y, f = _figure_1_list()
    axes = np.atleast_1d(figure.subplots(1, len(settings)))
    for ax, setting in zip(axes, settings, strict=True):
        PairContributionDisplay.from_predictions(y, f, ax=ax, colorbar=False, **setting)
        ax.set_xlabel("negatives k")
        ax.set_ylabel("positives i")
    return figure


def _draw_figure_3(result: Result) -> Figure:
    figure = new_figure(6.4, 4.4)
    DiscountDisplay.of_the_paper(ax=figure.subplots())
    return figure


def _figure_4(setup: Setup) -> Result:
    table = pair_shares(price="log1p")
    lower_left = float(table[:6, :4].sum() / table.sum())
    upper_right = float(table[6:, 4:].sum() / table.sum())
    flat = pair_shares(1.0)
    return {
        "shares": {"p = 1": flat.sum(axis=1).tolist(), "IR Push": table.sum(axis=1).tolist()},
        "claims": [
            claim(
                "The IR Push slants towards the lower left, the top of the list.",
                lower_left > float(flat[:6, :4].sum()) and upper_right < float(flat[6:, 4:].sum()),
                f"Only in comparison: the higher halves of both classes share {lower_left:.1%} of "
                f"it, against {float(flat[:6, :4].sum()):.1%} at p = 1; its largest contribution "
                "is that of the lowest positive and the highest negative, as for every p.",
            )
        ],
    }


def _figure_3(setup: Setup) -> Result:
    z = np.linspace(1, 20, 77)
    dcg, reciprocal, ir = 1 / np.log1p(z), 1 / z, -np.log1p(z)
    falls = all(np.all(np.diff(curve) < 0) for curve in (dcg, reciprocal, ir))
    convex = all(np.all(np.diff(curve, 2) > 0) for curve in (dcg, reciprocal, ir))
    claims = [
        claim(
            "1/ln(1+z) lies above 1/z, and 1/z above -ln(1+z).",
            np.all(dcg > reciprocal) and np.all(reciprocal > ir),
        ),
        claim("All three decrease and are convex.", falls and convex),
    ]
    return {"z": z.tolist(), "claims": claims}


def _describe_figure_3(result: Result) -> list[Part]:
    return [
        Paragraph("The discounting factors of DCG, of AveR and of the IR Push against the rank z."),
        claims_part(result["claims"]),
    ]


def _figure_8(setup: Setup) -> Result:
    a, p = facts.FIGURE_8["a"], facts.FIGURE_8["p"]
    b = np.linspace(0.0, 1.0, 201)
    lower = np.abs(a ** (1 / p) - b ** (1 / p))
    upper = np.abs(a - b) ** (1 / p)
    first = np.abs(a - b) * a ** (1 / p - 1)
    middle = np.minimum(first, upper)
    tighter = float(np.mean(first < upper))
    return {
        "b": b.tolist(),
        "lower": lower.tolist(),
        "middle": middle.tolist(),
        "upper": upper.tolist(),
        "claims": [
            claim(
                "Lemma 7: the difference of the roots is at most the minimum of both bounds.",
                np.all(lower <= middle + 1e-15),
            ),
            claim(
                "In most cases the first bound is the better one.",
                tighter > 0.5,
                f"For {tighter:.0%} of b in [0, 1].",
            ),
        ],
    }


def _describe_figure_8(result: Result) -> list[Part]:
    return [
        Paragraph(
            "Lemma 7 for a = 0.4 and p = 4: the difference of roots that the generalisation bound "
            "needs, and its two upper bounds, against b."
        ),
        claims_part(result["claims"]),
    ]


def _draw_figure_8(result: Result) -> Figure:
    figure = new_figure(6.4, 4.2)
    ax = figure.subplots()
    ax.plot(result["b"], result["upper"], "--", color="#D55E00", label=r"$|a-b|^{1/p}$")
    label = r"$\min(|a-b|a^{1/p-1}, |a-b|^{1/p})$"
    ax.plot(result["b"], result["middle"], "-.", color="#009E73", label=label)
    ax.plot(result["b"], result["lower"], color="#0072B2", label=r"$|a^{1/p}-b^{1/p}|$")
    ax.set(xlabel="b", title="Lemma 7, a = 0.4, p = 4")
    ax.legend(frameon=False)
    ax.grid(alpha=0.25)
    return figure


EXPERIMENTS = (
    Experiment(
        "table1",
        "Table 1: a swap at the top or at the bottom",
        _table_1,
        _describe_table_1,
        finding="the exponential and logistic columns are those of the halved scores.",
    ),
    Experiment(
        "table2",
        "Table 2: reversal of polarity",
        _table_2,
        _describe_table_2,
        finding="the same; and 156,638 is printed as 1.56e5.",
    ),
    Experiment(
        "figure1",
        "Figure 1: what each pair adds to the objective",
        _figure_1,
        _describe_figure_1,
        lambda result: _draw_contributions([{"p": p} for p in FIGURE_1_POWERS]),
        "Contribution of each pair for p from 1 to 64: it moves to the highest negatives",
    ),
    Experiment(
        "figure3",
        "Figure 3: discounting factors",
        _figure_3,
        _describe_figure_3,
        _draw_figure_3,
        "Three discounting factors that fall with the rank",
    ),
    Experiment(
        "figure4",
        "Figure 4: what each pair adds to the IR Push",
        _figure_4,
        _describe_figure_4,
        lambda result: _draw_contributions([{"price": "log1p"}]),
        "Contribution of each pair to the IR Push: largest for high negatives",
    ),
    Experiment(
        "figure8",
        "Figure 8: the inequality of Lemma 7",
        _figure_8,
        _describe_figure_8,
        _draw_figure_8,
        "The difference of roots lies below both bounds",
    ),
)
