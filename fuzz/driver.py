"""Fuzz a target for some minutes, and keep what is found.

A Python exception is kept, with the smallest input that raises it, and the run goes on. What ends
the process (a crash in native code, an input that takes longer than 10 s, more than 2 GB) is kept
too, and the run is started again for the time that is left.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import random
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from fuzz.engine import MOST, MOST_MEMORY, Engine, Steps, name_of

TARGETS = ("readers", "model_loader")
#: Modules whose branches guide the fuzzer.
_GUIDES = ("toprank.cli", "toprank.models", "toprank.blocks.parquet", "toprank.datasets")
_LIBRARIES = ("toprank", "skops", "csv", "gzip", "bz2", "zipfile")
_LINE = re.compile(r"#(\d+)\s+(\w+).*?cov: (\d+) ft: (\d+) corp: (\d+)/")


def main(arguments: list[str] | None = None) -> int:
    """Fuzz one target, or read one file; the exit status is 1 if anything was found."""
    given = _options(arguments)
    if given.replay is not None:
        return _replay(given.target, given.replay)
    folder = given.folder / given.target
    for name in ("corpus", "findings", "earlier"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    if given.seconds_inside is not None:
        fuzz = _fuzz_by_atheris if given.engine == "atheris" else _fuzz
        fuzz(given.target, folder, given)
        return 0
    if given.engine is None:
        given.engine = "atheris" if importlib.util.find_spec("atheris") else "own"
    if given.seed is None:
        given.seed = random.randrange(2**31)
    return _supervise(folder, given)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--folder", type=Path, default=Path("fuzzed"), help="corpus and findings")
    parser.add_argument("--hang", type=int, default=10, help="seconds that one input may take")
    parser.add_argument(
        "--engine", choices=("atheris", "own"), help="atheris by default, where it is installed"
    )
    parser.add_argument(
        "--seed", type=int, help="of the changes; with the same corpus they are the same"
    )
    parser.add_argument("--replay", type=Path, metavar="FILE", help="read this one input, and stop")
    parser.add_argument("--seconds-inside", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--run", type=int, default=1, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _replay(name: str, file: Path) -> int:
    target: Any = importlib.import_module(f"fuzz.{name}")
    try:
        target.attack(file.read_bytes())
    except BaseException:
        traceback.print_exc()
        return 1
    print(f"{file}: read, or refused in a sentence")
    return 0


def _supervise(folder: Path, given: argparse.Namespace) -> int:
    print(f"{given.engine} engine, seed {given.seed}, {given.minutes:g} minutes", flush=True)
    for file in (folder / "findings").iterdir():
        file.rename(folder / "earlier" / file.name)
    end, runs, started, stuck = time.monotonic() + 60 * given.minutes, 0, True, False
    while started and (runs == 0 or end - time.monotonic() > 5):
        runs += 1
        left = max(1, int(end - time.monotonic()))
        command = [sys.executable, "-m", "fuzz", given.target, "--folder", str(given.folder)]
        command += ["--hang", str(given.hang), "--seed", str(given.seed), "--run", str(runs)]
        command += ["--engine", given.engine, "--seconds-inside", str(left)]
        log = folder / f"run-{runs}.log"
        with log.open("w") as file:
            most = left + 30 * given.hang  # the engines end by themselves
            try:
                subprocess.run(command, stdout=file, stderr=file, check=False, timeout=most)
            except subprocess.TimeoutExpired:
                stuck = True
                print(f"run {runs}: it was ended, {most - left} seconds late; see {log}")
        started = keep_current(folder, log) or bool(_LINE.search(log.read_text(errors="replace")))
    _report(folder, runs, given)
    return int(stuck or not started or any((folder / "findings").iterdir()))


def keep_current(folder: Path, log: Path) -> bool:
    """Keep the input during which the process ended, with the end of its log, if there is one."""
    current = folder / "current"
    if not current.exists():
        return False
    kept = folder / "findings" / f"ended-{name_of(current.read_bytes())}.bin"
    current.replace(kept)
    kept.with_suffix(".txt").write_text(log.read_text(errors="replace")[-4000:])
    return True


def _report(folder: Path, runs: int, given: argparse.Namespace) -> None:
    total, reached = 0, 0
    for run in range(1, runs + 1):
        log = folder / f"run-{run}.log"
        text = log.read_text(errors="replace")
        lines = _LINE.findall(text)
        if not lines:
            print(f"run {run}: it ended before it began; see {log}\n{text[-2000:]}")
            continue
        begun = next((line for line in lines if line[1] == "INITED"), lines[0])
        last = lines[-1]
        total, reached = total + int(last[0]), max(reached, int(last[2]))
        print(
            f"run {run}: {last[0]} executions, coverage {begun[2]} -> {last[2]}, features "
            f"{begun[3]} -> {last[3]}, corpus {begun[4]} -> {last[4]}"
        )
    found = [file for file in sorted((folder / "findings").iterdir()) if file.suffix != ".txt"]
    for file in found:
        told = file.with_suffix(".txt")
        last_line = told.read_text().strip().splitlines()[-1:] if told.exists() else []
        print(f"{file} ({file.stat().st_size} bytes) {''.join(last_line)}")
    print(
        f"{len(found)} findings in {total} files ({given.engine} engine, seed {given.seed}), "
        f"coverage {reached}"
    )


def _fuzz(name: str, folder: Path, given: argparse.Namespace) -> None:
    """Change files with the engine of this folder."""
    target: Any = importlib.import_module(f"fuzz.{name}")
    home = _home_of("toprank").parent
    guides = tuple(str(home.joinpath(*guide.split("."))) for guide in _GUIDES)

    def keep_it(data: bytes, error: BaseException) -> None:
        keep(folder / "findings", data, error)

    steps = Steps(lambda file: file.startswith(guides))
    engine = Engine(target, folder, f"{given.seed}-{given.run}", steps, keep_it, given.hang)
    ended = {file.stem.removeprefix("ended-") for file in (folder / "findings").glob("ended-*.bin")}
    engine.run(given.seconds_inside, ended)


def _fuzz_by_atheris(name: str, folder: Path, given: argparse.Namespace) -> None:
    """Hand this process over to libFuzzer, which ends it."""
    import atheris

    # the modules under attack must be imported here for the first time
    with atheris.instrument_imports(include=list(_LIBRARIES), exclude=_aside()):
        target = importlib.import_module(f"fuzz.{name}")
    corpus = folder / "corpus"
    if not list(corpus.glob("seed-*")):
        for seed, data in target.seeds().items():
            (corpus / f"seed-{seed.replace(' ', '-')}").write_bytes(data)
    target.attack(next(corpus.glob("seed-*")).read_bytes())  # what is made once is made now

    def once(data: bytes) -> None:
        try:
            target.attack(data)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            keep(folder / "findings", data, error)

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        found = target.mutate(data, most, seed, lambda old: atheris.Mutate(old, max(len(old), 64)))
        return found if len(found) <= most else data

    options = [f"-rss_limit_mb={MOST_MEMORY >> 20}", f"-max_len={MOST}", "-len_control=0"]
    options += [f"-timeout={given.hang}", f"-max_total_time={given.seconds_inside}"]
    options += [f"-seed={given.seed + given.run}", f"-artifact_prefix={folder}/findings/"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], once, custom_mutator=mutated)
    atheris.Fuzz()


def _home_of(package: str) -> Path:
    """The folder of a package, which is not imported."""
    found = importlib.util.find_spec(package)
    assert found is not None and found.submodule_search_locations
    return Path(found.submodule_search_locations[0])


def _aside() -> list[str]:
    """The modules of toprank that read no files; compiled kernels are among them."""
    home = _home_of("toprank")
    files = (file.relative_to(home.parent).with_suffix("") for file in home.rglob("*.py"))
    names = (".".join(file.parts).removesuffix(".__init__") for file in files)
    return [name for name in names if not name.startswith(_GUIDES)]


def keep(folder: Path, data: bytes, error: BaseException) -> None:
    """Write an input and its traceback, unless a smaller one raised the same."""
    name = hashlib.sha256(_place(error).encode()).hexdigest()[:12]
    file = folder / f"{name}.bin"
    if not file.exists() or file.stat().st_size > len(data):
        file.write_bytes(data)
        text = "".join(traceback.format_exception(error))
        file.with_suffix(".txt").write_text(text)


def _place(error: BaseException) -> str:
    """Where in toprank or in this folder an error came out: one finding each."""
    frames: list[Any] = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/toprank/" in f.filename or "/fuzz/" in f.filename]
    last = (ours or frames)[-1]
    return f"{type(error).__name__} {last.filename} {last.lineno}"
