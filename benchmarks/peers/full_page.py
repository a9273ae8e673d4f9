"""The page of the peers at full size: ranks over sets, tests, who wins where, at what cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import stats

from .full import RANKERS, SPLITS_OF_FEW
from .marks import earlier
from .store import Store
from .tables import TEST_TO_TRAIN, by_split, costs, gap, markdown, mean, select, short, signed

OURS = "PushEnsemble"
TREES = "PushTrees"
SHOWN = (
    "average precision",
    "AUC up to 5% false positives",
    "precision in the first 1%",
    "positives above every negative",
)
#: What cells have kept only since later.
SINCE = "precision at the number of positives"
#: Fewer sets than these have no test across sets.
FEWEST_SETS = 5
LEVEL = 0.05


def results_of(store: Store) -> dict:
    """Values by (set, ranker), on the splits that every ranker shown has finished."""
    cells = select(store, "full")
    found: dict = {}
    for name, ranker in {key[:2] for key in cells}:
        own = [(number, cells[name, ranker, number]) for number in range(SPLITS_OF_FEW)
               if (name, ranker, number) in cells]  # fmt: skip
        found[name, ranker] = by_split(own)
    return found


def complete(results: dict, rankers: list[str]) -> tuple[list[str], dict]:
    """The sets on which all these rankers finished a split, and their values on common splits."""
    sets, common = [], {}
    for name in sorted({key[0] for key in results}):
        shared = set.intersection(*(set(results.get((name, one), {})) for one in rankers))
        if shared:
            sets.append(name)
            for one in rankers:
                common[name, one] = {k: results[name, one][k] for k in sorted(shared)}
    return sets, common


def ranks(sets: list[str], rankers: list[str], common: dict, metric: str) -> np.ndarray:
    """The rank of each ranker on each set, one is best, ties shared."""
    means = np.array([[mean(common[s, r], metric) for r in rankers] for s in sets])
    return np.array([stats.rankdata(-row) for row in means])


def critical_difference(n_rankers: int, n_sets: int) -> float:
    """Nemenyi's: mean ranks further apart than this differ at the level of 5% (Demšar 2006)."""
    q = stats.studentized_range.isf(LEVEL, n_rankers, 1e6) / np.sqrt(2)
    return float(q * np.sqrt(n_rankers * (n_rankers + 1) / (6 * n_sets)))


def wilcoxon(sets: list[str], common: dict, one: str, other: str, metric: str) -> tuple:
    """Sets won, sets lost, and the p-value of the signed-rank test; None with too few sets."""
    gaps = np.array([mean(common[s, one], metric) - mean(common[s, other], metric) for s in sets])
    won, lost = int(np.sum(gaps > 0)), int(np.sum(gaps < 0))
    if len(sets) < FEWEST_SETS or not np.any(gaps):
        return won, lost, None
    # the exact law of the ranks is that of gaps that are not zero
    return won, lost, float(stats.wilcoxon(gaps[gaps != 0]).pvalue)


def holm(p_values: list[float]) -> list[float]:
    """Holm's adjusted p-values."""
    order = np.argsort(p_values)
    n, adjusted, worst = len(p_values), [0.0] * len(p_values), 0.0
    for place, i in enumerate(order):
        worst = max(worst, min(1.0, (n - place) * p_values[i]))
        adjusted[i] = worst
    return adjusted


def page(store: Store, docs: Path) -> str:
    """Return the page, and draw its picture beside it."""
    results = results_of(store)
    rankers = _rankers_with_results(results)
    if OURS not in rankers:
        return "# The top of the list, at full size\n\nNothing has been run yet.\n"
    sets, common = complete(results, rankers)
    parts = [_head(store, results, rankers, common)]
    if sets:
        ours = {one for one in rankers if RANKERS[one].family == "ours"}
        draw(sets, rankers, common, ours, docs / "images" / "full_ranks.png")
        parts += [_ranks(sets, rankers, common), _against(sets, OURS, rankers, common)]
        if TREES in rankers:
            others = [one for one in rankers if OURS not in one]
            parts.append(_against(sets, TREES, others, common))
        parts += [_metric(sets, rankers, common, metric) for metric in SHOWN]
        parts += [*_metric_since(sets, rankers, common, SINCE), _costs(store, sets, rankers)]
    parts += _against_tuned(store, results, rankers)
    return "\n\n".join(parts) + "\n"


def _rankers_with_results(results: dict) -> list[str]:
    """Those at defaults that finished on at least half of the sets of the ensemble."""
    ours = {key[0] for key, values in results.items() if key[1] == OURS and values}
    plain = [one for one in RANKERS if RANKERS[one].family != "tuned"]
    return [one for one in plain if sum(bool(results.get((s, one))) for s in ours) > len(ours) / 2]


def _tuned_with_results(results: dict) -> list[str]:
    ran = {key[1] for key, values in results.items() if values}
    return [one for one in RANKERS if RANKERS[one].family == "tuned" and one in ran]


def _against_tuned(store: Store, results: dict, rankers: list[str]) -> list[str]:
    """The tuned peers by themselves: they take long, and fewer of their cells have been run."""
    tuned = _tuned_with_results(results)
    if not tuned:
        return []
    sets = sorted({s for (s, one), values in results.items() if one in tuned and values})
    head = ["against", f"sets won : lost, {SHOWN[0]}", f"the same, {SHOWN[1]}", *sets]
    parts = [
        f"## {OURS} at its defaults against tuned peers",
        f"{SHOWN[0].capitalize()} of {OURS} less that of the peer, on the splits that both have "
        "finished, in brackets how many: on a single split a difference is mostly noise. p as "
        f"above, from five sets on. {_not_beaten(results)}".rstrip(),
        markdown(head, [_tuned_row(results, sets, one) for one in tuned]),
        *_not_tuned(results),
        *_settings_kept(store, tuned),
    ]
    everyone = [*rankers, *tuned]
    shared, common = complete(results, everyone)
    if len(shared) >= FEWEST_SETS:
        parts.append(f"Mean ranks of all over {', '.join(shared)}:")
        parts.append(_ranks_table(shared, everyone, common))
    parts.append("Seconds, those of the ten trials in three folds and of the last fit together:")
    return [*parts, _seconds(store, sets, [OURS, *tuned])]


def _among_tuned(results: dict, rankers: list[str]) -> str:
    """The mean ranks of the ensemble with tuned peers beside those at defaults, or nothing."""
    everyone = [*rankers, *_tuned_with_results(results)]
    shared, common = complete(results, everyone)
    if len(everyone) == len(rankers) or len(shared) < FEWEST_SETS:
        return ""
    means = [ranks(shared, everyone, common, m).mean(axis=0) for m in SHOWN[:2]]
    ours = everyone.index(OURS)
    best = ", the best in both" if all(np.argmin(each) == ours for each in means) else ""
    shown = " and ".join(f"{each[ours]:.1f}" for each in means)
    count = len(everyone) - len(rankers)
    return (
        f"With {count} tuned peers beside them ({len(shared)} sets, fewer splits) the mean ranks "
        f"of {OURS} are {shown} among {len(everyone)}{best}. "
    )


def _not_beaten(results: dict) -> str:
    """The tuned peers that the ensemble is not ahead of by the test over the sets, in a metric."""
    named = []
    for metric in SHOWN[:2]:
        for one in _tuned_with_results(results):
            found, common = complete(results, [OURS, one])
            won, lost, p = wilcoxon(found, common, OURS, one, metric)
            if p is None or p >= LEVEL or won < lost:
                named.append(f"{one.removesuffix(', tuned')} ({won} : {lost}, {metric})")
    if not named:
        return ""
    return (
        "Tuned peers have been run on few splits; of these the ensemble is not shown to be ahead "
        f"of (sets won : lost): {', '.join(named)}."
    )


def _not_tuned(results: dict) -> list[str]:
    """Which tuned peers are missing on which of the ensemble's sets."""
    everyone = [one for one in RANKERS if RANKERS[one].family == "tuned"]
    said = []
    for name in sorted({s for (s, one), values in results.items() if one == OURS and values}):
        absent = [one for one in everyone if not results.get((name, one))]
        if absent:
            which = ", ".join(one.removesuffix(", tuned") for one in absent)
            said.append(f"{name} (all)" if absent == everyone else f"{name} ({which})")
    return ["**Tuned peers that were not run:** " + "; ".join(said) + "."] if said else []


def _settings_kept(store: Store, tuned: list[str]) -> list[str]:
    """Of how many cells of tuned peers the record has the settings that were chosen."""
    cells = [c for k, c in select(store, "full").items() if k[1] in tuned]
    kept = sum("settings" in cell for cell in cells)
    if not kept:
        return []
    return [f"The settings that a search chose are in the record, of {kept} of {len(cells)} cells."]


def _tuned_row(results: dict, sets: list[str], one: str) -> list[str]:
    of_pair = {key: values for key, values in results.items() if key[1] in (OURS, one)}
    found, common = complete(of_pair, [OURS, one])
    line = [one]
    for metric in SHOWN[:2]:
        won, lost, p = wilcoxon(found, common, OURS, one, metric)
        line.append(f"{won} : {lost}" + ("" if p is None else f", p = {p:.3g}"))
    for s in sets:
        if s in found:
            ours, theirs = (mean(common[s, r], SHOWN[0]) for r in (OURS, one))
            line.append(f"{signed(ours - theirs)} ({len(common[s, one])})")
        else:
            line.append("")
    return line


def _head(store: Store, results: dict, rankers: list[str], common: dict) -> str:
    facts = {key[0]: cell["values"] for key, cell in select(store, "full set").items()}
    left_out = [one for one in RANKERS if one not in [*rankers, *_tuned_with_results(results)]]
    counts = {s: len(common.get((s, OURS), ())) for s in facts}
    lines = [
        "# The top of the list, at full size",
        "Who ranks the top best, on the same splits of the same data. This page is made from the "
        "record by `python -m benchmarks.peers pages`; `python -m benchmarks.peers full` goes on "
        "where the record ends. Peers are at their libraries' defaults or tuned (ten settings "
        "drawn at random, three inner folds, average precision); training parts have up to 10,000 "
        "rows, test parts are whole. Splits are those that all rankers at their defaults have "
        "finished. Seconds are processor time on one thread.",
    ]
    table = [
        [s, str(f["rows"]), str(f["positives"]), str(f["train"]), str(f["train_positives"]),
         f"{counts[s]} of {f['splits']}", "yes" if counts[s] else "no"]
        for s, f in facts.items()
    ]  # fmt: skip
    head = ["set", "rows", "positives", "trained on", "positives in it", "splits", "compared"]
    lines += ["## What was run", markdown(head, table)]
    kept = [s for s, f in facts.items() if f["kept"]]
    if kept:
        lines.append(
            "More positives than in proportion were kept for training, so that there are a "
            f"hundred where the set has them: {', '.join(kept)}."
        )
    if left_out:
        lines.append(
            "**Not run, or not on enough sets:** " + ", ".join(left_out) + ". Read the tests below "
            "with that in mind."
        )
    lines.append("LibAUC is not among the peers here.")
    lines += _earlier_code(store, rankers)
    return "\n\n".join(lines)


def _earlier_code(store: Store, rankers: list[str]) -> list[str]:
    """Which cells were measured with other code than the last of their ranker."""
    said, before = [], []
    for one in rankers:
        stale, unmarked = earlier(store, one)
        if stale:
            found = ", ".join(f"{name} ({n})" for name, n in sorted(stale.items()))
            said.append(f"**Of earlier code:** {one} on {found}; in brackets the splits.")
        if unmarked:
            before.append(f"{one} ({unmarked})")
    if before:
        said.append(
            "Cells carry a mark of the code they were measured with. From before there were marks, "
            f"in brackets how many cells: {', '.join(before)}."
        )
    return said


def put_ranks_on_home(store: Store, home: Path, link: str) -> None:
    """Renew the short table of mean ranks on a first page, between its two marks."""
    results = results_of(store)
    rankers = _rankers_with_results(results)
    sets, common = complete(results, rankers) if OURS in rankers else ([], {})
    if not sets or not home.exists():
        return
    columns = {m: ranks(sets, rankers, common, m).mean(axis=0) for m in SHOWN[:2]}
    order = np.argsort(columns[SHOWN[0]], kind="stable")
    rows = [[f"**{rankers[i]}**" if rankers[i] == OURS else rankers[i],
             *(f"{columns[m][i]:.1f}" for m in columns)] for i in order]  # fmt: skip
    said = (
        "Ours against what you use now, everything at its defaults: mean rank over "
        f"{len(sets)} data sets, 1 is best ([how it was measured, and what was not]({link})). "
        + _among_tuned(results, rankers)
        + _not_beaten(results)
    ).rstrip()
    text = home.read_text(encoding="utf-8")
    before, mark, rest = text.partition("<!-- ranks -->\n")
    _, end, after = rest.partition("<!-- end of ranks -->\n")
    if mark and end:
        table = f"{said}\n\n{markdown(['', *columns], rows)}\n"
        home.write_text(before + mark + table + end + after, encoding="utf-8")


def _ranks(sets: list[str], rankers: list[str], common: dict) -> str:
    apart = critical_difference(len(rankers), len(sets))
    return "\n\n".join(
        [
            f"## Mean ranks over {len(sets)} sets",
            "![Mean ranks with the critical difference](images/full_ranks.png)",
            _ranks_table(sets, rankers, common),
            f"Two mean ranks differ at the level of 5% where they are more than {apart:.2f} apart "
            "(Nemenyi's critical difference, Demšar 2006).",
        ]
    )


def _ranks_table(sets: list[str], rankers: list[str], common: dict) -> str:
    columns = {m: ranks(sets, rankers, common, m).mean(axis=0) for m in SHOWN[:2]}
    order = np.argsort(columns[SHOWN[0]], kind="stable")
    rows = [[rankers[i], *(f"{columns[m][i]:.2f}" for m in columns)] for i in order]
    return markdown(["ranker", *columns], rows)


def _against(sets: list[str], one: str, rankers: list[str], common: dict) -> str:
    """One ranker against each of the others."""
    rows = []
    for other in rankers:
        if other == one:
            continue
        line = [other]
        for metric in SHOWN[:2]:
            won, lost, p = wilcoxon(sets, common, one, other, metric)
            line.append(f"{won} : {lost}" + ("" if p is None else f", p = {p:.3g}"))
        clear = [gap(common[s, one], common[s, other], SHOWN[0]) for s in sets]
        known = [(s, g) for s, g in zip(sets, clear, strict=True) if g is not None]
        adjusted = holm([g.p_value for _, g in known])
        up = [s for (s, g), p in zip(known, adjusted, strict=True) if p < LEVEL and g.mean > 0]
        down = [s for (s, g), p in zip(known, adjusted, strict=True) if p < LEVEL and g.mean < 0]
        nothing = "none" if known else "not known: one split"
        rows.append([*line, ", ".join(up) or nothing, ", ".join(down) or nothing])
    head = ["against", f"sets won : lost, {SHOWN[0]}", f"the same, {SHOWN[1]}"]
    head += ["clearly better on", "clearly worse on"]
    return "\n\n".join(
        [
            f"## {one} against each",
            "p is that of Wilcoxon's signed-rank test over the sets. The last columns name sets "
            "where average precision differs by the corrected resampled t-test over the splits "
            f"(rows tested over trained on {TEST_TO_TRAIN:.2f}), Holm's correction over the sets.",
            markdown(head, rows),
        ]
    )


def _metric(sets: list[str], rankers: list[str], common: dict, metric: str) -> str:
    rows = []
    for one in rankers:
        values = [mean(common[s, one], metric) for s in sets]
        rows.append([one, *(short(v) for v in values)])
    for j in range(len(sets)):
        best = max(float(row[j + 1]) for row in rows)
        for row in rows:
            if float(row[j + 1]) == best:
                row[j + 1] = f"**{row[j + 1]}**"
    return "\n\n".join([f"## {metric[0].upper()}{metric[1:]}", markdown(["", *sets], rows)])


def _metric_since(sets: list[str], rankers: list[str], common: dict, metric: str) -> list[str]:
    """A metric that cells of earlier days lack, on the splits where every ranker has it."""
    known: dict = {}
    for s in sets:
        shared = [k for k in common[s, OURS] if all(metric in common[s, r][k] for r in rankers)]
        if shared:
            known |= {(s, r): {k: common[s, r][k] for k in shared} for r in rankers}
    has = [s for s in sets if (s, OURS) in known]
    if not has:
        return []
    table = _metric(has, rankers, known, metric)
    fewer = [s for s in has if len(known[s, OURS]) < len(common[s, OURS])]
    if not fewer:
        return [table]
    splits = ", ".join(f"{s} ({len(known[s, OURS])})" for s in fewer)
    said = f"Kept since later than the others, so of fewer splits, in brackets how many: {splits}."
    return [table, said]


def _costs(store: Store, sets: list[str], rankers: list[str]) -> str:
    return "\n\n".join(["## Seconds", _seconds(store, sets, rankers)])


def _seconds(store: Store, sets: list[str], rankers: list[str]) -> str:
    cells = select(store, "full")

    def seconds(one: str, name: str) -> str:
        found = costs((c for k, c in cells.items() if k[:2] == (name, one)), "fit_s")
        return "" if found is None else f"{found:.3g}"

    rows = [[one, *(seconds(one, s) for s in sets)] for one in rankers]
    return markdown(["median of fit", *sets], rows)


def draw(sets: list[str], rankers: list[str], common: dict, ours: set[str], path: Path) -> None:
    """Mean ranks on a line; a bar joins rankers closer than the critical difference."""
    from matplotlib.figure import Figure

    found = ranks(sets, rankers, common, SHOWN[0]).mean(axis=0)
    order = np.argsort(found, kind="stable")
    apart = critical_difference(len(rankers), len(sets))
    figure = Figure(figsize=(8, 0.34 * len(rankers) + 1.2), layout="constrained")
    panel = figure.subplots()
    for place, i in enumerate(order):
        colour = "C3" if rankers[i] in ours else "0.35"
        panel.plot(found[i], -place, "o", color=colour)
        panel.annotate(rankers[i], (found[i], -place), xytext=(8, -3),
                       textcoords="offset points", color=colour, fontsize=9)  # fmt: skip
    best = found[order[0]]
    panel.plot([best, best + apart], [0.8, 0.8], color="C0", linewidth=3)
    panel.annotate("critical difference", (best, 0.8), xytext=(0, 5), textcoords="offset points",
                   color="C0", fontsize=8)  # fmt: skip
    panel.set(yticks=[], xlabel=f"mean rank over {len(sets)} sets, {SHOWN[0]}; 1 is best")
    panel.set_xlim(0.8, max(len(rankers), best + apart) + 1.5)
    panel.set_ylim(-len(rankers), 1.6)
    for side in ("left", "right", "top"):
        panel.spines[side].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
