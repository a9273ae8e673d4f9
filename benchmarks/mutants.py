"""Break the mathematics on purpose, one operator at a time: do the tests of level 1 notice?

    python benchmarks/mutants.py --count 200 --seed 0 --json mutants.json
    python benchmarks/mutants.py --rooms metrics inference
    python benchmarks/mutants.py --replay mutants.json --checkout ../before

A mutant is a copy of the package in which one comparison, one arithmetic operator, one number, one
truth value or one condition is another. It is killed if the level-1 tests of its room, or the
contracts of what lives there (`ALSO`), fail, or if they do not end in time; ``--whole`` gives those
that live the whole of level 1 too. Types, decorators and texts are left alone; other mutants that
cannot change an answer (the size of a block, a tolerance) live, so the share is never 100%.

``--replay`` takes the mutants that a file says live, and ``--checkout`` the tests of another
checkout: so two states of the tests are compared on the same mutants. Each mutant is tried in a
fork of a process that has loaded the other libraries.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: A file, the number of the place in it that is broken, and what is done there.
Mutant = tuple[Path, int, str]
ROOMS = ("objective", "pair_sums", "metrics", "inference")
#: What else sees a room: its contracts, and its users' tests that are quick.
ALSO = {
    "objective": ["tests/contracts/test_prices.py", "tests/solvers", "tests/tuning/test_grid.py"],
    "pair_sums": ["tests/objective"],
    "metrics": ["tests/contracts/test_metrics.py", "tests/inference"],
    "inference": ["tests/contracts/test_metrics.py"],
}
#: Loaded once, before the forks; neither toprank nor what starts threads.
LOADED = ("pytest", "numpy", "scipy.stats", "scipy.sparse", "pandas")
LOADED += ("sklearn.utils.estimator_checks", "sklearn.linear_model", "sklearn.ensemble")
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.USub: ast.UAdd,
}


def places(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield the nodes that can be broken, and what would be done to them."""
    without_answer = {id(part) for node in beside_the_answer(tree) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in without_answer:
            continue
        operator = getattr(node, "op", None)
        if operator is None and isinstance(node, ast.Compare):
            operator = node.ops[0]
        if type(operator) in SWAPS:
            yield node, f"{type(operator).__name__} -> {SWAPS[type(operator)].__name__}"
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, f"{node.value!r} -> {node.value + 1!r}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, f"{node.value} -> {not node.value}"
        elif isinstance(node, ast.If):
            yield node, "condition -> its opposite"


def beside_the_answer(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what no answer hangs on: types, decorators, texts with numbers in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node
        yield from getattr(node, "decorator_list", ())
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                yield getattr(node, name)


def break_node(node: ast.AST) -> None:
    """Change a node in place."""
    if isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[call-overload]
    elif hasattr(node, "op"):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.If):
        node.test = ast.UnaryOp(ast.Not(), node.test)


def draw(rooms: tuple[str, ...], count: int, seed: int) -> list[Mutant]:
    """Draw mutants: a file, the number of the place in it, and what is done there."""
    known = []
    for room in rooms:
        for path in sorted((ROOT / "src/toprank" / room).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            known += [
                (path.relative_to(ROOT), number, f"line {node.lineno}: {what}")  # type: ignore[attr-defined]
                for number, (node, what) in enumerate(places(tree))
            ]
    return random.Random(seed).sample(known, min(count, len(known)))


def mutated(path: Path, number: int) -> str:
    """Return the text of a file with one place broken."""
    tree = copy.deepcopy(ast.parse((ROOT / path).read_text(encoding="utf-8")))
    node = next(node for at, (node, _) in enumerate(places(tree)) if at == number)
    break_node(node)
    return ast.unparse(ast.fix_missing_locations(tree))


def tests_for(path: Path, checkout: Path) -> list[str]:
    """Return the tests of a room, those that name the broken file first."""
    room, module = path.parts[2], path.stem
    files = sorted((checkout / "tests" / room).rglob("test_*.py"))
    if "device" in module:
        files += sorted((checkout / "tests/device").glob("test_*.py"))
    named = {file: module in file.read_text(encoding="utf-8") for file in files}
    ordered = sorted(files, key=lambda file: (module not in file.stem, not named[file]))
    return [str(file.relative_to(checkout)) for file in ordered] + ALSO[room]


def survives(tree: Path, checkout: Path, tests: list[str], limit: float) -> bool:
    """Whether the tests pass on a broken tree; they run in a fork of this process."""
    child = os.fork()
    if child == 0:
        os.setsid()
        os._exit(run_tests(tree, checkout, tests))
    ends = time.monotonic() + limit
    while time.monotonic() < ends:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.1)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def run_tests(tree: Path, checkout: Path, tests: list[str]) -> int:
    """Run tests on the package of a tree, in this process; return pytest's status."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    os.chdir(checkout)
    sys.path.insert(0, str(tree / "src"))
    os.environ["PYTHONPATH"] = str(tree / "src")  # for the processes that tests start
    sys.dont_write_bytecode = True  # of a broken file nothing is to be left
    import pytest

    options = ["-x", "-q", "-n", "0", "--assert=plain", "-p", "no:cacheprovider"]
    return int(pytest.main([*options, "-o", "timeout=0", *tests]))


def main() -> int:
    parser = argparse.ArgumentParser(description="Break the mathematics: do the tests notice?")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), choices=ROOMS)
    parser.add_argument("--whole", action="store_true", help="all of level 1 for those that live")
    parser.add_argument("--limit", type=float, default=600, help="seconds per run of the tests")
    parser.add_argument("--json", type=Path, help="write which live and which are killed")
    parser.add_argument("--replay", type=Path, help="try those that live in this file")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="whose tests are run")
    options = parser.parse_args()
    os.environ |= {"CI": "1", "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    for name in LOADED:
        importlib.import_module(name)
    if options.replay:
        kept = json.loads(options.replay.read_text())
        mutants = [(Path(path), number, what) for path, number, what in kept["alive"]]
        total, dead = kept["count"], kept["count"] - len(mutants)
    else:
        mutants = draw(tuple(options.rooms), options.count, options.seed)
        total, dead = len(mutants), 0
    alive = try_each(mutants, options)
    share = (dead + len(mutants) - len(alive)) / max(1, total)
    if options.json:
        told = {"killed": share, "count": total, "alive": [[str(p), n, w] for p, n, w in alive]}
        options.json.write_text(json.dumps(told, indent=1))
    print(f"{share:.1%} of {total} mutants killed (seed {options.seed})")
    return 0


def try_each(mutants: list[Mutant], options: argparse.Namespace) -> list[Mutant]:
    """Return the mutants that live."""
    alive: list[Mutant] = []
    checkout = options.checkout.resolve()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
        started = time.time()
        for path in {path.parts[2]: path for path, _, _ in mutants}.values():
            if not survives(tree, checkout, tests_for(path, checkout), options.limit):
                sys.exit(f"the tests of {path.parts[2]} fail although nothing is broken")
        print(f"nothing broken: all passed in {time.time() - started:.0f} s", flush=True)
        for done, (path, number, what) in enumerate(mutants, 1):
            (tree / path).write_text(mutated(path, number), encoding="utf-8")
            lives = survives(tree, checkout, tests_for(path, checkout), options.limit)
            if lives and options.whole:
                lives = survives(tree, checkout, [], 3 * options.limit)
            shutil.copy(ROOT / path, tree / path)
            alive += [(path, number, what)] if lives else []
            print(
                f"[{done}/{len(mutants)}] {time.time() - started:.0f} s  "
                f"{'LIVES ' if lives else 'killed'} {path} {what}",
                flush=True,
            )
    return alive


if __name__ == "__main__":
    sys.exit(main())
