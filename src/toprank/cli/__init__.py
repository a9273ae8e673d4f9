"""The command line `toprank`. No mathematics here; it needs the extra `cli`."""

from __future__ import annotations

import io
import sys

from toprank._extras import require

__all__ = ["main"]


def main() -> None:
    """Run the command line; say what to install if its libraries are missing."""
    try:
        for module in ("typer", "rich"):
            require(module, "cli")
    except ImportError as error:
        sys.exit(f"toprank: {error}")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a pipe may not know the sign ±
    try:
        from toprank.cli.app import app

        app(prog_name="toprank")
    except KeyboardInterrupt:  # before or after a command, which says so itself
        sys.exit(130)
