"""A small fuzzer guided by coverage, for machines on which atheris cannot be installed.

Inputs are changed at random, and one that takes a step from line to line which none took before is
changed further. The step is the pair of two lines of toprank that ran one after the other, so a
branch counts although both its ends were reached before. All that is drawn comes from one seed.
"""

from __future__ import annotations

import faulthandler
import hashlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import CodeType, FrameType, TracebackType
from typing import Any, Protocol

#: Bytes of the largest input, and of the process after the largest input.
MOST = 600_000
MOST_MEMORY = 2 << 30
#: Seconds between two lines of the log.
_PULSE = 10.0


class Target(Protocol):
    """What a module under attack offers."""

    def seeds(self) -> dict[str, bytes]:
        """Files that are right, by name."""

    def attack(self, data: bytes) -> None:
        """Read the file; every exception that comes out is a finding."""

    def mutate(self, data: bytes, most: int, seed: int) -> bytes:
        """Return the file changed a little."""

    def splice(self, data: bytes, other: bytes, seed: int) -> bytes:
        """Return the file with a part of another one."""


class Steps:
    """The steps from line to line that ran inside of this context, in some files.

    Parameters
    ----------
    is_guide : callable
        Whether the lines of a file count, by its path.
    """

    def __init__(self, is_guide: Callable[[str], bool]) -> None:
        self._is_guide = is_guide
        self._numbers: dict[CodeType, int] = {}
        self._last = (0, 0)
        self._before: Any = None
        self.seen: set[tuple[tuple[int, int], tuple[int, int]]] = set()
        self.lines: set[tuple[int, int]] = set()

    def __enter__(self) -> Steps:
        self._before, self._last = sys.gettrace(), (0, 0)
        sys.settrace(self._enter)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        sys.settrace(self._before)

    def _enter(self, frame: FrameType, event: str, value: object) -> Any:
        number = self._numbers.get(frame.f_code)
        if number is None:
            guides = self._is_guide(frame.f_code.co_filename)
            number = self._numbers[frame.f_code] = len(self._numbers) + 1 if guides else 0
        return self._step if number else None

    def _step(self, frame: FrameType, event: str, value: object) -> Any:
        if event == "line":
            here = (self._numbers[frame.f_code], frame.f_lineno)
            self.seen.add((self._last, here))
            self.lines.add(here)
            self._last = here
        return self._step


class Engine:
    """Changes files of a corpus and keeps those that reach something new.

    Parameters
    ----------
    target : Target
        What reads the files.
    folder : Path
        The corpus is kept in its folder ``corpus``; ``current`` is the input that is being read, so
        that it is known if the process ends.
    seed : str
        Decides every change.
    steps : Steps
        What counts as new.
    keep : callable
        Takes an input and what it raised.
    hang : int
        Seconds that one input may take, after which the process is ended; more where files that are
        right take more than a fifth of it, on a machine that is slow or shared.
    """

    def __init__(
        self,
        target: Target,
        folder: Path,
        seed: str,
        steps: Steps,
        keep: Callable[[bytes, BaseException], None],
        hang: int,
    ) -> None:
        self.target, self.folder, self.steps, self.keep = target, folder, steps, keep
        self.hang, self.rng = hang, Random(seed)
        self.corpus: list[bytes] = []
        self.count = 0
        self._told = time.monotonic()

    def run(self, seconds: float, known: set[str]) -> None:
        """Read the corpus, then changed files until the time is over.

        Inputs whose `name_of` is in `known` are left out: they end the process.
        """
        end = time.monotonic() + seconds
        slowest, most = 0.0, self.hang
        self.hang = 20 * most
        for data in self._first_inputs():
            if name_of(data) not in known:
                started = time.monotonic()
                self._read(data)
                slowest = max(slowest, time.monotonic() - started)
                self.corpus.append(data)
        self.hang = max(most, round(5 * slowest))
        self._tell("INITED")
        while time.monotonic() < end:
            data = self._changed()
            if name_of(data) in known:
                continue
            if self._read(data):
                self.corpus.append(data)
                (self.folder / "corpus" / name_of(data)).write_bytes(data)
                self._tell("NEW")
            elif time.monotonic() - self._told > _PULSE:
                self._tell("pulse")
        self._tell("DONE")

    def _first_inputs(self) -> list[bytes]:
        seeds = list(self.target.seeds().values())
        self.target.attack(seeds[0])  # what is made once is made now, and guides nobody
        kept = [
            file.read_bytes()
            for name in ("corpus", "earlier")
            for file in sorted((self.folder / name).glob("*"))
            if not file.name.startswith("seed-") and file.suffix != ".txt"
        ]
        return seeds + kept

    def _changed(self) -> bytes:
        """A file of the corpus, one of the newest in every second case, changed once or more."""
        newest = self.corpus[-max(1, len(self.corpus) // 4) :]
        data = self.rng.choice(newest if self.rng.random() < 0.5 else self.corpus)
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            if self.rng.random() < 0.1:
                other = self.rng.choice(self.corpus)
                new = self.target.splice(data, other, self.rng.randrange(2**32))
            else:
                new = self.target.mutate(data, MOST, self.rng.randrange(2**32))
            data = new if len(new) <= MOST else data
        return data

    def _read(self, data: bytes) -> bool:
        """Whether an input reached something new; what it raises is kept."""
        before = len(self.steps.seen)
        (self.folder / "current").write_bytes(data)
        faulthandler.dump_traceback_later(self.hang, exit=True)
        try:
            with self.steps:
                self.target.attack(data)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.keep(data, error)
        finally:
            faulthandler.cancel_dump_traceback_later()
        if (peak := peak_memory()) > MOST_MEMORY:
            sys.exit(f"the process took {peak >> 20} MB")
        (self.folder / "current").unlink()
        self.count += 1
        return len(self.steps.seen) > before

    def _tell(self, what: str) -> None:
        """Print where it stands, in the form of libFuzzer."""
        self._told = time.monotonic()
        lines, steps = len(self.steps.lines), len(self.steps.seen)
        print(
            f"#{self.count} {what} cov: {lines} ft: {steps} corp: {len(self.corpus)}/", flush=True
        )


def name_of(data: bytes) -> str:
    """The name of an input."""
    return hashlib.sha256(data).hexdigest()[:16]


def peak_memory() -> int:
    """Bytes that this process took at its largest; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
