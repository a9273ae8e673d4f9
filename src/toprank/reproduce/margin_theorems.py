"""Rudin & Schapire (2009): Theorems 2, 7 and 8, Lemma 20 with Figure 2, and MH against MR."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from toprank._arrays import JsonObject
from toprank.bounds import FiniteClass, margin_cover, smooth_margin_progress
from toprank.rankers import LabelRanker, SmoothMarginRanker
from toprank.reproduce.boosting import game
from toprank.reproduce.experiment import Experiment, Result, Setup, claim, claims_part, new_figure
from toprank.reproduce.page import Grid, Paragraph, Part

if TYPE_CHECKING:
    from matplotlib.figure import Figure


IDLE_WEIGHT = 0.01  #: d0 of Figure 2


def _surface(setup: Setup) -> Result:
    n, fine = setup.settings["points"], setup.settings["fine"]
    r, g = np.linspace(0.02, 0.88, n), np.linspace(0.0, 0.86, n)
    surface = smooth_margin_progress(r[:, None], g[None, :], IDLE_WEIGHT)
    edge = np.linspace(0.002, 0.998, fine)[:, None, None]
    margin = edge * np.linspace(0.0, 0.9995, fine)[None, :, None]
    most = 2 / 3 * (1 - edge) * (1 - edge**2)
    share = np.linspace(0.0, 0.9999, fine)[None, None, :]
    least = float(np.min(smooth_margin_progress(edge, margin, most * share)))
    beyond = smooth_margin_progress(edge, margin, most + (1 - edge - most) * share)
    failed = float(np.mean(beyond[np.isfinite(beyond)] <= 0.5))
    claims = [
        claim(
            "Lemma 20: B > 1/2 wherever d0 < (2/3)(1 - r)(1 - r²).",
            least > 0.5,
            f"The least of {fine**3:,} points of that range is {least - 0.5:.1e} above it.",
        ),
        claim(
            "The condition on d0 cannot be dropped.",
            failed > 0,
            f"Of as many points beyond it {failed:.0%} have B <= 1/2.",
        ),
    ]
    values = [[None if np.isnan(x) else float(x) for x in row] for row in surface]
    return {"r": r.tolist(), "g": g.tolist(), "surface": values, "claims": claims}


def _describe_surface(result: Result) -> list[Part]:
    return [
        Paragraph(
            "Figure 2 shows B(r, g, d0), what a step of smooth margin ranking gains of r - g per "
            f"unit of its length, at d0 = {IDLE_WEIGHT:g}: r is the edge of the round, g the "
            "smooth margin before it. The paper proves that it lies above 1/2."
        ),
        claims_part(result["claims"]),
    ]


def _draw_surface(result: Result) -> Figure:
    figure = new_figure(6.4, 4.8)
    ax = figure.add_subplot(projection="3d")
    g, r = np.meshgrid(result["g"], result["r"])
    values = np.array([[np.nan if x is None else x for x in row] for row in result["surface"]])
    ax.plot_surface(r, g, values, cmap="viridis", rstride=1, cstride=1, vmin=0.5)
    ax.set(xlabel="r", ylabel="g", zlabel="B", title="Figure 2 of Rudin & Schapire: B at d0 = 0.01")
    ax.view_init(elev=25, azim=-120)
    return figure


def follow_growth(ranker: SmoothMarginRanker) -> dict[str, list[float]]:
    """Return, for each ascent, what the smooth margin grew by and what Theorem 7 asks for."""
    coef: dict[tuple[object, object, object], float] = {}
    before, norm = -np.inf, 0.0
    found: dict[str, list[float]] = {"grown": [], "asked": [], "held": []}
    for record in ranker.history_:
        key = (record["feature"], record.get("threshold"), record.get("missing"))
        old = coef.get(key, 0.0)
        coef[key] = old + record["step"]
        norm += abs(coef[key]) - abs(old)
        if record["ascent"]:
            found["grown"].append(record["smooth_margin"] - before)
            gap = abs(record["edge"]) - before
            found["asked"].append(0.5 * abs(record["step"]) * gap / norm)
            found["held"].append(float(record["theorem_7"]))
        before = record["smooth_margin"]
    return found


def _growth(setup: Setup) -> Result:
    rounds = setup.settings["rounds"]
    _, X, y, pairs = game()
    on_game = SmoothMarginRanker(rounds, weak_rankers="binary").fit(X, y, pairs=pairs)
    on_wdbc = SmoothMarginRanker(rounds, n_jobs=1).fit(*setup.data["wdbc"])
    rows: list[JsonObject] = []
    claims = []
    for name, ranker in (("8 × 8 matrix", on_game), ("wdbc, all stumps", on_wdbc)):
        found = {key: np.array(values) for key, values in follow_growth(ranker).items()}
        held = found["held"] > 0
        enough = found["grown"] >= found["asked"] - 1e-12
        rows.append(
            {
                "name": name,
                "ascents": len(held),
                "held": int(np.sum(held)),
                "enough": int(np.sum(enough & held)),
                "enough_without": int(np.sum(enough & ~held)),
                "smooth": float(ranker.smooth_margin_[-1]),
                "margin": float(ranker.margin_),
                "rho": float(ranker.rho_),
            }
        )
        claims.append(
            claim(
                f"Theorem 7 on the {name}: where its condition holds the smooth margin grows by at "
                "least α(r - g)/(2s).",
                rows[-1]["enough"] == rows[-1]["held"],
                f"In {rows[-1]['enough']:,} of {rows[-1]['held']:,} such rounds.",
            )
        )
    left = 3 / 8 - rows[0]["smooth"]
    claims.append(
        claim(
            "Theorem 8: on the 8 × 8 matrix, where no pair is ever left alone, the smooth margin "
            "converges to the largest margin, 3/8.",
            0 <= left < 0.05,
            f"{rows[0]['smooth']:.6f} after {rounds:,} rounds; the margin is "
            f"{rows[0]['margin']:.6f}.",
        )
    )
    return {"rows": rows, "claims": claims}


def _describe_growth(result: Result) -> list[Part]:
    lines = [
        [
            row["name"],
            f"{row['ascents']:,}",
            f"{row['held']:,}",
            f"{row['enough']:,}",
            f"{row['enough_without']:,} of {row['ascents'] - row['held']:,}",
            f"{row['smooth']:.4f} < {row['margin']:.4f} <= {row['rho']:.4f}",
        ]
        for row in result["rows"]
    ]
    header = ["", "ascents", "condition held", "of them grew enough", "grew enough without it"]
    return [
        Paragraph(
            "Theorems 7 and 8, round by round. The condition is d0 < (2/3)(1 - r)(1 - r²); where "
            "it fails the theorems are silent, though the smooth margin may grow all the same."
        ),
        Grid([*header, "smooth margin, margin, bound"], lines),
        claims_part(result["claims"]),
    ]


#: Rankers of the class that Theorem 2 is tried on, and rows that stand for the distribution.
CLASS_SIZE, TRUE_ROWS = 30, 2000


def _draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(size=(n, 2))
    return X, X[:, 0] + 0.3 * rng.standard_normal(n) > 0.5


def _class_scores(X: np.ndarray) -> np.ndarray:
    """Convex combinations of two columns and their reverses, from 0 to 1."""
    angles = np.linspace(0, 2 * np.pi, CLASS_SIZE, endpoint=False)
    a, b = np.cos(angles)[:, None], np.sin(angles)[:, None]
    parts = np.abs(a) * np.where(a > 0, X[:, 0], 1 - X[:, 0])
    parts += np.abs(b) * np.where(b > 0, X[:, 1], 1 - X[:, 1])
    scores: np.ndarray = parts / (np.abs(a) + np.abs(b))
    return scores


def _share_within(scores: np.ndarray, y: np.ndarray, theta: float) -> np.ndarray:
    """P(margin <= theta) of each ranker."""
    return np.array([np.mean(s[y][:, None] - s[~y] <= theta) for s in scores])


def excesses(n: int, theta: float, seed: int, repeats: int) -> list[float]:
    """The largest excess of a misranking probability over the sample's share of small margins."""
    X, y = _draw(np.random.default_rng([seed, 0]), TRUE_ROWS)
    true = _share_within(_class_scores(X), y, 0.0)
    found = []
    for repeat in range(repeats):
        X, y = _draw(np.random.default_rng([seed, 1, n, repeat]), n)
        found.append(float(np.max(true - _share_within(_class_scores(X), y, theta))))
    return found


def _margin_bound(setup: Setup) -> Result:
    s = setup.settings
    cases = [(n, theta) for n in s["sizes"] for theta in (0.01, 0.1)]
    found = setup.map(excesses, [(*case, setup.seed, s["repeats"]) for case in cases])
    _, y = _draw(np.random.default_rng([setup.seed, 0]), TRUE_ROWS)
    fraction = float(np.mean(y) * (1 - np.mean(y)))
    rows = []
    for (n, theta), values in zip(cases, found, strict=True):
        bound = margin_cover(
            probability=0.05,
            theta=theta,
            n=n,
            pair_fraction=fraction,
            log_covering_number=FiniteClass(CLASS_SIZE),
        )
        exceeded = float(np.mean(np.array(values) > bound.value))
        rows.append(
            {
                "n": n,
                "theta": theta,
                "positive": float(np.mean(np.array(values) > 0)),
                "quantile": float(np.quantile(values, 0.95)),
                "bound": bound.value,
                "vacuous": bound.vacuous,
                "exceeded": exceeded,
            }
        )
    occurred = [row for row in rows if row["positive"] > 0]
    claims = [
        claim(
            "Theorem 2: the excess passes ε in at most 5% of the samples.",
            all(row["exceeded"] <= 0.05 for row in rows),
            f"In {max(row['exceeded'] for row in rows):.1%} at most; the excess is above 0 in some "
            f"samples of {len(occurred)} of {len(rows)} settings, so that there is something to "
            "bound.",
        )
    ]
    return {"rows": rows, "claims": claims}


def _describe_margin_bound(result: Result) -> list[Part]:
    lines = [
        [
            f"m = {row['n']:,}, θ = {row['theta']:g}",
            f"{100 * row['positive']:.0f}",
            f"{row['quantile']:+.4f}",
            f"{row['bound']:.3f}" + (" (says nothing)" if row["vacuous"] else ""),
        ]
        for row in result["rows"]
    ]
    return [
        Paragraph(
            f"Theorem 2 for a class of {CLASS_SIZE} rankers of two columns: the largest excess, "
            "over the class, of the true misranking probability over the share of the sample's "
            "pairs with a margin up to θ, in many samples; and the ε that it passes with a "
            "probability of 5% at most."
        ),
        Grid(["", "samples with an excess, %", "95% of them below", "ε of Theorem 2"], lines),
        claims_part(result["claims"]),
    ]


def label_objectives(method: str, rounds: int, seed: int) -> dict[str, float]:
    """Both objectives of a fit to labels that cannot be separated, on its own rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 4))
    Y = (X @ rng.standard_normal((4, 3)) + 1.5 * rng.standard_normal((300, 3)) > 0.5).astype(int)
    f = LabelRanker(rounds, method=method, n_thresholds=3, n_jobs=1).fit(X, Y).decision_function(X)
    plus, minus = float(np.exp(-f[Y == 1]).sum()), float(np.exp(f[Y == 0]).sum())
    return {"mh": float(np.log(plus + minus)), "mr": float(np.log(plus) + np.log(minus))}


def _labels(setup: Setup) -> Result:
    rounds = setup.settings["rounds"]
    calls = [(method, t, setup.seed) for method in ("mh", "mr_pooled") for t in rounds]
    found = setup.map(label_objectives, calls)
    mh, mr = found[: len(rounds)], found[len(rounds) :]
    apart = {
        key: [abs(a[key] - b[key]) for a, b in zip(mh, mr, strict=True)] for key in ("mh", "mr")
    }
    texts = {
        "mr": "Section 5.1: AdaBoost.MH minimises AdaBoost.MR's objective, F+ F- over all entries.",
        "mh": "And MR, its intercept corrected, minimises MH's, F+ + F-.",
    }
    claims = [
        claim(
            text,
            apart[key][-1] <= 0.1 * apart[key][0],
            f"Apart by {apart[key][0]:.1e} after {rounds[0]:,} rounds, {apart[key][-1]:.1e} after "
            f"{rounds[-1]:,}.",
        )
        for key, text in texts.items()
    ]
    return {"rounds": rounds, "mh": mh, "mr": mr, "claims": claims}


def _describe_labels(result: Result) -> list[Part]:
    lines = [
        [f"{t:,}", f"{a['mr']:.5f}", f"{b['mr']:.5f}", f"{a['mh']:.5f}", f"{b['mh']:.5f}"]
        for t, a, b in zip(result["rounds"], result["mh"], result["mr"], strict=True)
    ]
    header = ["rounds", "ln F+F- of MH", "of MR", "ln(F+ + F-) of MH", "of MR"]
    return [
        Paragraph(
            "AdaBoost.MH and AdaBoost.MR are to each other as AdaBoost and RankBoost are: 300 "
            "examples with three labels each that cannot be separated. F+ and F- are sums over the "
            "entries (example, label); the paper prints F_MR as a difference, which is meant to be "
            "a product."
        ),
        Grid(header, lines),
        claims_part(result["claims"]),
    ]


_R_AND_S = "of Rudin & Schapire"
EXPERIMENTS = (
    Experiment(
        "margin-bound",
        f"Theorem 2 {_R_AND_S}: the margin bound",
        _margin_bound,
        _describe_margin_bound,
        full={"sizes": [50, 200, 1000], "repeats": 200},
        quick={"sizes": [50, 200], "repeats": 20},
    ),
    Experiment(
        "lemma-20",
        f"Figure 2 and Lemma 20 {_R_AND_S}",
        _surface,
        _describe_surface,
        _draw_surface,
        "The surface of B over r and g lies above one half, and falls to it where g meets r",
        full={"points": 44, "fine": 120},
        quick={"points": 20, "fine": 30},
    ),
    Experiment(
        "smooth-margin",
        f"Theorems 7 and 8 {_R_AND_S}: smooth margin ranking, round by round",
        _growth,
        _describe_growth,
        full={"rounds": 2000},
        quick={"rounds": 300},
        data=("wdbc",),
    ),
    Experiment(
        "labels",
        f"Section 5.1 {_R_AND_S}: AdaBoost.MH and AdaBoost.MR",
        _labels,
        _describe_labels,
        full={"rounds": [10, 100, 1000, 3000]},
        quick={"rounds": [10, 1000]},
    ),
)
