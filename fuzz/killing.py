"""Kills processes while they write files, and looks at what is left.

``python -m fuzz.killing FOLDER KILLS CRASHES SEED`` prints what it found as JSON. Everything that
toprank writes is prepared once (with the word ``lists`` at the end, ranked lists and scores alone);
each attack forks a child that writes one of these files again and again, in two versions, and kills
it after a random time (SIGKILL), or lets the system end it at an exact byte (a limit on the size of
files). The file must then be one of the versions, whole.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import random
import resource
import shutil
import signal
import sys
import time
import urllib.request
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Written:
    """A file that is written in versions 0 and 1, and what tells whether it is whole."""

    name: str
    folder: Path
    write: Callable[[int], None]
    whole: Callable[[], bool]
    seconds: float = 0.0
    limits: tuple[int, ...] = ()  #: sizes at which a writer is ended; none where files are many


def files(folder: Path, what: str) -> list[Written]:
    """What is written, prepared in a folder: everything, or lists and scores alone."""
    made = [*listings(folder), scores(folder)]
    if what == "all":
        frame, models = fitted()
        made += [model_file(folder / "model", models)]
        made += [rank_command(folder / "rank", frame, models[0]), report(folder / "report", frame)]
        made += [reproduced(folder / "reproduce"), fetched(folder / "cache")]
    for one in made:
        one.seconds = min(timed(one, version) for version in (1, 0))
    return made


def timed(one: Written, version: int) -> float:
    """The seconds that writing takes."""
    start = time.perf_counter()
    one.write(version)
    return time.perf_counter() - start


def compared(
    name: str, folder: Path, write: Callable[[int], None], names: tuple[str, ...]
) -> Written:
    """Files whose bytes must be those of one version or the other."""
    folder.mkdir(exist_ok=True)
    versions = []
    for version in (0, 1):
        write(version)
        versions.append({one: (folder / one).read_bytes() for one in names})
    assert versions[0] != versions[1]

    def whole() -> bool:
        return all(
            (folder / one).read_bytes() in (versions[0][one], versions[1][one]) for one in names
        )

    size = len(versions[1][names[0]])
    limits = tuple(size * j // 97 for j in range(97)) if len(names) == 1 else ()
    return Written(name, folder, write, whole, limits=limits)


def fitted() -> tuple[Any, list[Any]]:
    """A small table, and two models of it."""
    import numpy as np
    import pandas as pd

    from toprank.models import fit_table

    rng = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame({"id": [f"c{i}" for i in range(n)], "age": rng.normal(size=n).round(3)})
    frame["city"] = rng.choice(["Rome", "Oslo"], n)
    chance = frame.age + (frame.city == "Oslo") + rng.normal(size=n)
    frame["bought"] = np.where(chance > 1, "yes", "no")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return frame, [fit_table(frame, "bought", id="id", p=p) for p in (1, 4)]


def model_file(folder: Path, models: list[Any]) -> Written:
    """A model saved over another; its bytes hold the time, so its card tells."""
    from toprank.models import load

    folder.mkdir()
    path = folder / "model.toprank"
    cards = [model.card for model in models]

    def write(version: int) -> None:
        models[version].save(path)

    def whole() -> bool:
        return load(path).card in cards

    write(0)
    size = path.stat().st_size
    limits = tuple(size * j // 97 for j in range(97))
    return Written("model", folder, write, whole, limits=limits)


def listings(folder: Path) -> list[Written]:
    """Ranked lists in every format."""
    import numpy as np
    import pyarrow as pa

    from toprank.cli.listing import write_listing

    tables = [
        pa.table({"id": [f"{v}-{i}" for i in range(3_000)], "score": np.arange(3_000) / (v + 1.0)})
        for v in (0, 1)
    ]

    def made(name: str) -> Written:
        place = folder / name.replace(".", "-")
        place.mkdir()
        return compared(name, place, lambda v: write_listing(tables[v], place / name), (name,))

    return [made(name) for name in ("list.csv", "list.csv.gz", "list.parquet", "list.feather")]


def scores(folder: Path) -> Written:
    """Scores of row blocks."""
    import numpy as np

    from toprank import PNormPush
    from toprank.blocks import from_arrays

    place = folder / "scores"
    place.mkdir()
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    y = (X[:, 0] > 0).astype(int)
    rankers = [PNormPush(p=p).fit(X[:300], y[:300]) for p in (1, 2)]
    source = from_arrays(X)
    return compared(
        "scores", place, lambda v: rankers[v].score_blocks(source, place / "s.npy"), ("s.npy",)
    )


def rank_command(folder: Path, frame: Any, model: Any) -> Written:
    """The whole command `toprank rank`."""
    from toprank.cli.app import app

    folder.mkdir()
    model.save(folder / "model")
    frame.to_csv(folder / "table.csv", index=False)
    paths = [str(folder / one) for one in ("model", "table.csv")]

    def write(version: int) -> None:
        options = ["--top", str(50 + version), "-q", "-o", str(folder / "out.csv")]
        app(["rank", *paths, *options], standalone_mode=False)

    made = compared("toprank rank", folder, write, ("out.csv",))
    made.limits = ()  # the command would refuse to start: it tries the folder first
    return made


def report(folder: Path, frame: Any) -> Written:
    """The page of a report."""
    from toprank.report import build
    from toprank.report.builder import Report

    folder.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = build(frame, "bought", id="id", ps=(1, 4), cv=2, k=10)
    second = Report({**first.to_dict(), "notes": ["another version"]})
    path = folder / "report.html"
    return compared("report", folder, lambda v: (first, second)[v].save(path), ("report.html",))


def reproduced(folder: Path) -> Written:
    """Results, by which a run goes on, and pages of `reproduce`."""
    from toprank.reproduce import run

    folder.mkdir()

    def write(version: int) -> None:
        run(["table1", "table2"], folder, quick=True, seed=version, n_jobs=1, again=True)

    names = ("results/table1.json", "results/table2.json", "reproduce.md", "reproduce.html")
    return compared("reproduce", folder, write, names)


def fetched(folder: Path) -> Written:
    """The cache of `toprank.datasets.fetch`; whole, or as if nothing had been fetched."""
    from toprank.datasets import fetch

    place = ROOT / "tests" / "datasets" / "conftest.py"
    spec = importlib.util.spec_from_file_location("stand_in", place)
    assert spec is not None and spec.loader is not None
    stand_in = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stand_in)
    openml = stand_in.OpenML()
    rows = [(i, i % 7, "ab"[i % 2]) for i in range(2_000)]
    columns = {"x": "numeric", "z": "numeric", "y": ["a", "b"]}
    openml.add(77, columns, rows, target="y")
    opener = urllib.request.build_opener(openml)
    folder.mkdir()

    def read() -> Any:
        urllib.request.install_opener(opener)
        try:
            return fetch(data_id=77, positive="a", data_home=folder, return_X_y=True)
        finally:
            urllib.request.install_opener(None)

    def kept() -> dict[Path, bytes]:
        found = (path for path in folder.rglob("*") if path.is_file())
        return {path: gzip.decompress(path.read_bytes()) for path in found if path in expected}

    def write(version: int) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        read()

    read()
    expected = dict.fromkeys(path for path in folder.rglob("*") if path.is_file())
    assert len(expected) >= 3
    expected = kept()

    def whole() -> bool:
        """What is not there is fetched again; what is there is read as it is."""
        return all(expected[path] == content for path, content in kept().items())

    return Written("fetch", folder, write, whole)


def parts(folder: Path) -> set[Path]:
    """What writers that are gone have left behind."""
    return set(folder.rglob(".toprank-*.part"))


def forked(work: Callable[[], None]) -> int:
    """Run in a child that says nothing and ends without tidying up."""
    with warnings.catch_warnings():
        # the child of a process with threads; it touches none of them
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    try:
        signal.alarm(60)  # not to be waited for in vain
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        work()
    finally:
        os._exit(0)


def is_whole(one: Written) -> bool:
    """Whether a file can be read and is one of its versions."""
    try:
        return one.whole()
    except Exception:
        return False


def kill(one: Written, rng: random.Random) -> bool:
    """Kill a writer at a random time; True if it was in the middle of a file."""

    def write_for_ever() -> None:
        os.write(begin, b"!")  # on a busy machine a fork may take longer than the write
        version = 1
        while True:
            one.write(version)
            version = 1 - version

    before = parts(one.folder)
    begun, begin = os.pipe()
    child = forked(write_for_ever)
    os.close(begin)
    os.read(begun, 1)
    os.close(begun)
    time.sleep(rng.uniform(0, 1.5 * one.seconds + 0.002))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return bool(parts(one.folder) - before)


def crash(one: Written, size: int) -> bool:
    """Let the system end a writer when its file passes a size; True if it did."""

    def write_with_limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        one.write(1)

    status = os.waitpid(forked(write_with_limit), 0)[1]
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXFSZ


def attack(folder: Path, kills: int, crashes: int, seed: int, what: str = "all") -> dict[str, Any]:
    """Attack every kind of file in turn; return what was found."""
    rng = random.Random(seed)
    attacked = files(folder, what)
    found: dict[str, Any] = {"kills": 0, "in_the_middle": {}, "crashes": 0, "torn": []}
    for j in range(kills):
        one = attacked[j % len(attacked)]
        found["kills"] += 1
        found["in_the_middle"].setdefault(one.name, 0)
        found["in_the_middle"][one.name] += kill(one, rng)
        if not is_whole(one):
            found["torn"].append(f"{one.name}, kill {j}")
    limited = [(one, size) for one in attacked for size in one.limits]
    for one, size in rng.sample(limited, min(crashes, len(limited))):
        found["crashes"] += crash(one, size)
        if not is_whole(one):
            found["torn"].append(f"{one.name} at byte {size}")
    return found


def main() -> None:
    """Attack, and print what was found."""
    folder, kills, crashes, seed, *what = sys.argv[1:]
    found = attack(Path(folder), int(kills), int(crashes), int(seed), *what)
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
