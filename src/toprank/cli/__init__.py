"""The command line `toprank`. No mathematics here; it needs the extra `cli`."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from io import TextIOWrapper  # the name io is that of the folder beside
from typing import NoReturn

from toprank._extras import require
from toprank.cli.exit_codes import INTERRUPTED, INTERRUPTED_NOTE

__all__ = ["main"]


def main() -> None:
    """Run the command line; say what to install if its libraries are missing."""
    try:
        _run_app()
    except KeyboardInterrupt:  # before or after a command, which says so itself
        sys.stderr.write(f"toprank: {INTERRUPTED_NOTE}\n")
        _leave_at_once()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _leave_at_once()
        # all is done: an interrupt while Python leaves would end it by the signal
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        raise


def _run_app() -> None:
    try:
        for module in ("typer", "rich"):
            require(module, "cli")
    except ImportError as error:
        sys.exit(f"toprank: {error}")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a pipe may not know the sign ±
    from toprank.cli import terminal
    from toprank.cli.app import build_app

    terminal.OWN_PROCESS = True
    sys.excepthook = terminal.show_traceback
    build_app(sys.argv[1:])(prog_name="toprank")


def _leave_at_once() -> NoReturn:
    """Leave without taking the libraries down, which takes longer than all that went before."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody reads it any more
            continue
    os._exit(INTERRUPTED)
