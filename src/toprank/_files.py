"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a neighbour of `path` for writing and move it there once all is written."""
    if path.exists() and not path.is_file():  # a device would be replaced by a file
        raise OSError(f"'{path}' is not a file that can be replaced.")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # else a crash could leave the new name on an empty file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
