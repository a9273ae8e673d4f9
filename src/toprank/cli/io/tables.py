"""Which kind of table a file is, or several files are."""

from __future__ import annotations

import difflib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

from toprank._extras import require
from toprank.cli.io.excel import ExcelTable, is_workbook
from toprank.cli.io.folder import ParquetFiles, place_of_files
from toprank.cli.io.source import ArrowStreamTable, ArrowTable, ParquetTable, Reading, Source
from toprank.cli.io.text import TextTable
from toprank.cli.terminal import Failure

_KINDS: dict[bytes, type[Source]] = {
    b"PAR1": ParquetTable,
    b"ARRO": ArrowTable,
    b"\xff\xff\xff\xff": ArrowStreamTable,
}
_PROMISED = {".parquet": "Parquet", ".pq": "Parquet", ".feather": "Arrow", ".arrow": "Arrow"}
_FOREIGN = {
    b"PK\x03\x04": "no table but a zip archive, a model or a damaged Excel workbook; unpack an "
    "archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the table as CSV",
    b"\x28\xb5\x2f\xfd": "packed with zstd; unpack it, or pack it with gzip",
    b"\xfd7zX": "packed with xz; unpack it, or pack it with gzip",
    b"FEA1": "an old Feather file (version 1); write it again with a newer library",
}


@contextmanager
def open_table(path: Path, reading: Reading | None = None, quiet: bool = False) -> Iterator[Source]:
    """The table in a file; its content says its kind.

    What can be read only once, such as standard input, is copied to a file first.

    Parameters
    ----------
    path : Path
        The file, a folder of Parquet files, a pattern of their names, or an address such as
        ``s3://bucket/folder``; "-" is standard input.
    reading : Reading, optional
        What the user says of the text.
    quiet : bool, default=False
        Whether to leave out what was assumed in reading.
    """
    require("pyarrow", "frames")
    reading = Reading() if reading is None else reading
    is_stdin = str(path) == "-"
    name = "standard input" if is_stdin else f"'{path}'"
    if not is_stdin:
        if (place := place_of_files(path)) is not None:
            yield ParquetFiles(place, reading, quiet)
            return
        check_exists(path)
        if path.is_file():
            yield _open_source(name, path, reading, quiet)
            return
    with _stream(path, is_stdin) as stream, _keep_copy(stream, name) as file:
        yield _open_source(name, file, reading, quiet)


@contextmanager
def _keep_copy(stream: IO[bytes], name: str) -> Iterator[Path]:
    """A copy of a stream; where the system allows it one without a name, which no kill leaves."""
    with ExitStack() as stack:
        try:
            if Path("/proc/self/fd").is_dir():
                copy: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())
                file = Path(f"/proc/self/fd/{copy.fileno()}")
            else:
                folder = tempfile.TemporaryDirectory(prefix="toprank-")
                file = Path(stack.enter_context(folder)) / "table"
                copy = stack.enter_context(file.open("wb"))
            shutil.copyfileobj(stream, copy)
            copy.flush()
        except OSError as error:
            with suppress(OSError):  # the rest of its buffer is lost anyway
                stack.close()
            raise Failure(
                f"{name} could not be kept in '{tempfile.gettempdir()}' while it is read "
                f"({error.strerror}); free some space there, or name another folder in the "
                "environment variable TMPDIR."
            ) from error
        yield file


def _stream(path: Path, is_stdin: bool) -> AbstractContextManager[IO[bytes]]:
    return nullcontext(sys.stdin.buffer) if is_stdin else path.open("rb")


def check_exists(path: Path) -> None:
    """Refuse, with a near name, what is not a file."""
    if path.is_dir():
        raise Failure(f"'{path}' is a folder; name a file in it.")
    if (place := place_of_files(path)) is not None and "://" in place:
        raise Failure(f"'{place}' is an address; expected a file of this machine here.")
    if not path.exists():
        beside = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, beside, 1)
        hint = f"; did you mean '{path.with_name(near[0])}'?" if near else "."
        raise Failure(f"there is no file '{path}'{hint}")


def _open_source(name: str, file: Path, reading: Reading, quiet: bool) -> Source:
    with file.open("rb") as stream:
        head = stream.read(4)
    if head == b"PK\x03\x04" and is_workbook(file):
        return ExcelTable(name, file, reading, quiet)
    if head in _FOREIGN:
        raise Failure(f"{name} is {_FOREIGN[head]}.")
    if not head:
        raise Failure(f"{name} is empty; expected a table with column names.")
    kind = _KINDS.get(head, TextTable)
    promised = _PROMISED.get(file.suffix.lower())
    if kind is TextTable and promised is not None:
        raise Failure(f"{name} could not be read: it is not a file of {promised}.")
    return kind(name, file, reading, quiet)
