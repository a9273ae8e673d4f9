"""What a source says about its passes in the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Progress:
    """Counts the passes over a source, and prints a line for each if asked to."""

    def __init__(self, verbose: int):
        self.verbose = verbose
        self.passes = 0

    @contextmanager
    def one_pass(self, name: str, n_blocks: int) -> Iterator[None]:
        """Print what was done and how long it took, on the error stream."""
        started = time.perf_counter()
        yield
        self.passes += 1
        if self.verbose:
            took = time.perf_counter() - started
            line = f"toprank: pass {self.passes} ({name}) over {n_blocks} blocks, {took:.2f} s"
            print(line, file=sys.stderr, flush=True)
