"""Files of scores: either complete or not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from toprank._files import replacing


@contextmanager
def scores_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file of scores, which is put in place once it is complete.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from toprank.blocks.writing import scores_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with scores_file(Path(folder, "scores.bin")) as file:
    ...         _ = file.write(b"0.5")
    ...     Path(folder, "scores.bin").read_bytes()
    b'0.5'
    """
    try:
        with replacing(path) as file:
            yield file
    except OSError as error:
        if error.errno is None:  # not the system's, but a source's own word on rows it cannot read
            raise
        raise OSError(
            error.errno,
            f"The scores could not be written to {path} ({error.strerror or error}). No half file "
            "is left; free space, or choose another place with to=.",
        ) from error
