"""Break the mathematics on purpose, one operator at a time: do the tests of level 1 notice?

    python benchmarks/mutants.py --count 200 --seed 0
    python benchmarks/mutants.py --rooms metrics inference --json mutants.json

A mutant is a copy of the package in which one comparison, one arithmetic operator, one number, one
truth value or one condition is another. It is killed if the tests of its room, or the contracts,
fail, or if they do not end in time; ``--whole`` gives those that live the whole of level 1 too.
Mutants that cannot change an answer (the size of a block, say) live, so the share is never 100%.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("objective", "pair_sums", "metrics", "inference")
#: What else sees a room: its users' tests that are quick.
ALSO = {
    "objective": ["tests/solvers", "tests/contracts"],
    "pair_sums": ["tests/objective"],
    "metrics": ["tests/contracts"],
    "inference": [],
}
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
    annotations = {
        id(part)
        for node in ast.walk(tree)
        for name in ("annotation", "returns")
        if getattr(node, name, None) is not None
        for part in ast.walk(getattr(node, name))
    }
    for node in ast.walk(tree):
        if id(node) in annotations:
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


def draw(rooms: tuple[str, ...], count: int, seed: int) -> list[tuple[Path, int, str]]:
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


def survives(tree: Path, tests: list[str], limit: float) -> bool:
    """Whether the tests pass on a broken tree."""
    variables = {**os.environ, "PYTHONPATH": str(tree / "src"), "CI": "1", "MPLBACKEND": "Agg"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        answer = subprocess.run(
            command, cwd=ROOT, env=variables, timeout=limit, capture_output=True
        )
    except subprocess.TimeoutExpired:
        return False
    return answer.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Break the mathematics: do the tests notice?")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), choices=ROOMS)
    parser.add_argument("--whole", action="store_true", help="all of level 1 for those that live")
    parser.add_argument("--limit", type=float, default=600, help="seconds per run of the tests")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    mutants = draw(tuple(options.rooms), options.count, options.seed)
    alive: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
        started = time.time()
        for done, (path, number, what) in enumerate(mutants, 1):
            room = path.parts[2]
            (tree / path).write_text(mutated(path, number), encoding="utf-8")
            lives = survives(tree, [f"tests/{room}", *ALSO[room]], options.limit)
            if lives and options.whole:
                lives = survives(tree, [], 3 * options.limit)
            shutil.copy(ROOT / path, tree / path)
            alive += [f"{path} {what}"] if lives else []
            print(
                f"[{done}/{len(mutants)}] {time.time() - started:.0f} s  "
                f"{'LIVES ' if lives else 'killed'} {path} {what}",
                flush=True,
            )
    share = 1 - len(alive) / max(1, len(mutants))
    if options.json:
        options.json.write_text(json.dumps({"killed": share, "alive": alive}, indent=1))
    print(f"{share:.1%} of {len(mutants)} mutants killed (seed {options.seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
