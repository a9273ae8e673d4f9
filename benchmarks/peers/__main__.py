"""Every peer side by side.

    python -m benchmarks.peers run                   every set and ranker at hand, five splits
    python -m benchmarks.peers run --quick           two shipped sets, small: under two minutes
    python -m benchmarks.peers full                  full size, defaults and tuned: hours; resumes
    python -m benchmarks.peers toppush               the protocol of TopPush, thirty splits
    python -m benchmarks.peers when                  p against capacity, imbalance and sample size
    python -m benchmarks.peers when-full             p at full size, and with rarer positives
    python -m benchmarks.peers pages                 docs/evidence: peers, full_size, when_it_helps

Run it in the folder of the checkout. Results are appended to the record (--record), cell by cell;
a run that was stopped goes on where it was. The pages are made from the record alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from . import full, full_page, harness, pages, toppush, when, when_full, when_page
from .data import BESIDE, SHIPPED, names
from .harness import Plan, chosen, say
from .rankers import RANKERS
from .store import Store

RECORD = Path(__file__).parent / "record"
QUICK = Path("benchmarks") / "results" / "quick"
QUICK_SETS = ("magic", "spambase")
DOCS = Path(__file__).resolve().parents[2] / "docs"


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    record = options.record or (QUICK if options.quick else RECORD)
    commands = {"run": run, "full": run_full, "toppush": run_toppush, "when": run_when}
    commands |= {"when-full": run_when_full}
    {**commands, "pages": write_pages}[options.what](options, record)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["run", "full", "toppush", "when", "when-full", "pages"])
    parser.add_argument("--data", type=Path, default=BESIDE, help="folder of NAME.csv.gz files")
    parser.add_argument("--record", type=Path, help="folder of the results")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the pages go")
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--rankers", nargs="+")
    parser.add_argument("--splits", type=int)
    parser.add_argument("--train-rows", type=int)
    parser.add_argument(
        "--limit", type=float, default=60.0, help="seconds of processor time a cell may take"
    )
    parser.add_argument(
        "--again", action="store_true", help="full: measure cells of earlier code again"
    )
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace, record: Path) -> None:
    quick = options.quick
    known = QUICK_SETS if quick else names(options.data)
    rankers = [r.name for r in RANKERS.values() if not (quick and r.slow)]
    plan = Plan(
        chosen(options.sets, known, "sets"),
        chosen(options.rankers, rankers, "rankers"),
        options.splits or (2 if quick else 5),
        options.train_rows or (600 if quick else Plan.train_rows),
        options.limit,
    )
    store = Store(record / "peers.jsonl")
    harness.run(plan, options.data, store)
    (record / "peers.md").write_text(pages.peers(store, None), encoding="utf-8")
    say(f"results in {record / 'peers.jsonl'}, a page in {record / 'peers.md'}")


def run_full(options: argparse.Namespace, record: Path) -> None:
    sets = chosen(options.sets, SHIPPED if options.quick else names(options.data), "sets")
    rankers = chosen(options.rankers, full.RANKERS, "rankers")
    most = options.splits or full.SPLITS_OF_FEW
    full.run(Store(record / "full.jsonl"), options.data, sets, rankers, most, options.again)


def run_toppush(options: argparse.Namespace, record: Path) -> None:
    store = Store(record / "toppush.jsonl")
    sets = chosen(options.sets, toppush.PRINTED, "sets")
    grid = toppush.Grid((4, 64), (1e-2, 1e-4)) if options.quick else None
    sets = ("spambase",) if options.quick else sets
    n_splits = options.splits or (2 if options.quick else toppush.N_SPLITS)
    toppush.run(store, options.data, list(sets), n_splits, say, grid)
    print(toppush.table(store))


def run_when(options: argparse.Namespace, record: Path) -> None:
    known = SHIPPED if options.quick else names(options.data)
    sets = chosen(options.sets, known, "sets")
    n_splits = options.splits or (2 if options.quick else 5)
    store = Store(record / "when.jsonl")
    when.run(store, options.data, sets, n_splits, options.limit)


def run_when_full(options: argparse.Namespace, record: Path) -> None:
    known = SHIPPED if options.quick else names(options.data)
    sets = chosen(options.sets, known, "sets")
    store = Store(record / "when.jsonl")
    when_full.run(store, options.data, sets, options.splits or when_full.SPLITS)


def write_pages(options: argparse.Namespace, record: Path) -> None:
    stores = {name: Store(record / f"{name}.jsonl") for name in ("peers", "toppush", "when")}
    evidence = options.docs / "evidence"
    evidence.mkdir(parents=True, exist_ok=True)
    peers = pages.peers(stores["peers"], stores["toppush"], evidence)
    (evidence / "peers.md").write_text(peers, encoding="utf-8")
    full = Store(record / "full.jsonl")
    at_size = full_page.page(full, evidence)
    full_page.put_ranks_on_home(full, options.docs / "index.md", "evidence/full_size.md")
    readme = options.docs.parent / "README.md"
    full_page.put_ranks_on_home(full, readme, "docs/evidence/full_size.md")
    (evidence / "full_size.md").write_text(at_size, encoding="utf-8")
    helps = when_page.when_it_helps(stores["peers"], stores["when"], evidence)
    (evidence / "when_it_helps.md").write_text(helps, encoding="utf-8")


if __name__ == "__main__":
    main()
