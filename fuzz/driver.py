"""Run a target under atheris for some minutes, and keep what it finds.

A Python exception is kept, with the smallest input that raises it, and the run goes on. What ends
the process (a crash in native code, an input that takes longer than 10 s, more than 2 GB) is kept
by libFuzzer, and the run is started again for the time that is left.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

TARGETS = ("readers", "model_loader")
_LIMITS = ("-rss_limit_mb=2048", "-max_len=600000", "-len_control=0")
#: Modules whose branches guide the fuzzer.
_GUIDES = ("toprank.cli", "toprank.models", "toprank.blocks.parquet", "toprank.datasets")
_LIBRARIES = ("toprank", "skops", "csv", "gzip", "bz2", "zipfile")
_LINE = re.compile(r"#(\d+)\s+(\w+).*?cov: (\d+) ft: (\d+) corp: (\d+)/")


def main(arguments: list[str] | None = None) -> int:
    """Fuzz one target; the number of findings is the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--folder", type=Path, default=Path("fuzzed"), help="corpus and findings")
    parser.add_argument("--hang", type=int, default=10, help="seconds that one input may take")
    parser.add_argument("--seconds-inside", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    folder = given.folder / given.target
    for name in ("corpus", "findings"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    if given.seconds_inside is not None:
        _fuzz(given.target, folder, given.seconds_inside, given.hang)
    return _supervise(given.target, given.folder, 60 * given.minutes, given.hang)


def _supervise(target: str, home: Path, seconds: float, hang: int) -> int:
    folder, end, runs = home / target, time.monotonic() + seconds, 0
    while (left := int(end - time.monotonic())) > 5:
        runs += 1
        command = [sys.executable, "-m", "fuzz", target, "--folder", str(home)]
        command += ["--hang", str(hang)]
        with (folder / f"run-{runs}.log").open("w") as log:
            subprocess.run([*command, "--seconds-inside", str(left)], stdout=log, stderr=log)
        time.sleep(1)
    _report(folder, runs)
    return len(list((folder / "findings").glob("*.bin")))


def _report(folder: Path, runs: int) -> None:
    total = 0
    for run in range(1, runs + 1):
        lines = _LINE.findall((folder / f"run-{run}.log").read_text(errors="replace"))
        if not lines:
            print(f"run {run}: it did not start; see {folder}/run-{run}.log")
            continue
        begun = next((line for line in lines if line[1] == "INITED"), lines[0])
        last = lines[-1]
        total += int(last[0])
        print(
            f"run {run}: {last[0]} executions, edges {begun[2]} -> {last[2]}, features {begun[3]} "
            f"-> {last[3]}, corpus {begun[4]} -> {last[4]}"
        )
    print(f"{total} executions in {runs} run(s)")
    for file in sorted((folder / "findings").glob("*")):
        last_line = file.read_text().strip().splitlines()[-1] if file.suffix == ".txt" else ""
        print(f"{file.name} ({file.stat().st_size} bytes) {last_line}")


def _fuzz(name: str, folder: Path, seconds: int, hang: int) -> None:
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

    options = [*_LIMITS, f"-timeout={hang}", f"-max_total_time={seconds}"]
    options += [f"-artifact_prefix={folder}/findings/"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], once, custom_mutator=mutated)
    atheris.Fuzz()


def _aside() -> list[str]:
    """The modules of toprank that read no files; compiled kernels are among them."""
    home = Path(importlib.util.find_spec("toprank").submodule_search_locations[0])
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
