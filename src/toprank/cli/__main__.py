"""The program `toprank`, also as `python -m toprank.cli`: a process of its own, soon over."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading

from toprank.cli import main

#: Objects made before Python looks for unreachable ones. Loading libraries makes hundreds of
#: thousands that all stay; at the usual 700 the looking takes a tenth of a short command.
_OBJECTS_BETWEEN = 50_000


def run() -> None:
    """Run the command line as a program, and leave without taking the libraries down.

    To take scikit-learn and pandas down takes longer than `toprank show` does.
    """
    gc.set_threshold(_OBJECTS_BETWEEN, 20, 100)
    try:
        main()
    except SystemExit as end:
        _leave(end.code)
        raise


def _leave(code: object) -> None:
    """End the process, all it has promised done; return where Python must end it itself."""
    if not (code is None or isinstance(code, int)) or threading.active_count() > 1:
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # Python says so, with an exit code of its own
        return
    atexit._run_exitfuncs()
    os._exit(code or 0)


if __name__ == "__main__":
    run()
