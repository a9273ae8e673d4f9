"""How much memory a command may take, and what it does with a table that needs more."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toprank._extras import require
from toprank.cli.clusters import open_cluster
from toprank.cli.io.source import Source
from toprank.cli.terminal import Failure, note, usual_jobs

if TYPE_CHECKING:
    import pyarrow as pa

    from toprank.models.block_rows import Sampling

#: Bytes that a fit in memory takes for each value of the table: seen with 3,000,000 x 21.
_PER_VALUE = 64
#: Bytes that a measurement takes for each row.
PER_SCORED_ROW = 200
#: Rows of the samples of a fit in blocks, at least and at most.
_FEWEST, _MOST, _MOST_LINEAR = 10_000, 1_000_000, 200_000

Memory = Annotated[
    str | None,
    typer.Option(
        help="Memory to use at most for the table, such as 4GB: a larger one is read in blocks.",
        show_default="half of what is free",
    ),
]

_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def parse_memory(text: str | None) -> int:
    """The bytes that --memory allows; half of what is free where it is not given."""
    if text is None:
        return free_memory() // 2
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", text.lower())
    if found is None or not float(found[1]) > 0:
        raise Failure(f"--memory {text!r}: expected an amount such as 4GB or 500MB.")
    return int(float(found[1]) * _UNITS[found[2]])


def jobs_within(jobs: int | None, rows: int, columns: int, memory: str | None) -> int | None:
    """The threads asked for; otherwise every core, where --memory has room for what each copies.

    Examples
    --------
    >>> jobs_within(None, 1_000_000, 20, "500GB"), jobs_within(None, 1_000_000, 20, "1GB")
    (-1, None)
    >>> jobs_within(2, 1_000_000, 20, "500GB")
    2
    """
    copied = _PER_VALUE * rows * columns * (os.cpu_count() or 1)
    if jobs is None and copied <= parse_memory(memory):
        return -1
    return usual_jobs(jobs, rows)


def free_memory() -> int:
    """Bytes of memory that are free, within the limit of a container."""
    free = 8 << 30
    with suppress(OSError, ValueError, AttributeError):
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable"))
        free = 1024 * int(line.split()[1])
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        used = int((group / "memory.current").read_text(encoding="ascii"))
        free = min(free, max(0, limit - used))
    return free


def size_in_memory(source: Source, columns: int | None = None) -> int:
    """Bytes, about, that a fit to a table takes in memory."""
    width = len(source.columns) if columns is None else columns
    if source.place is None:
        return 7 * source.file.stat().st_size if source.file.is_file() else 0
    return _PER_VALUE * source.count_rows() * max(1, width)


def in_words(size: float, digits: int = 2) -> str:
    """An amount of memory for people to read.

    Examples
    --------
    >>> in_words(4.26e9), in_words(2.5e7), in_words(120_000), in_words(1.234e6, 4)
    ('4.3 GB', '25 MB', '120 kB', '1.234 MB')
    """
    unit, name = (1e9, "GB") if size >= 1e9 else (1e6, "MB") if size >= 1e6 else (1e3, "kB")
    amount = size / unit
    return f"{amount:.0f} {name}" if amount >= 10 ** (digits - 1) else f"{amount:.{digits}g} {name}"


def beyond_in_words(size: float, allowed: float) -> str:
    """An amount and the smaller one that is allowed, in as many digits as tell the two apart.

    Examples
    --------
    >>> beyond_in_words(4.26e9, 5e8)
    'about 4.3 GB in memory, and 500 MB are allowed (--memory)'
    >>> beyond_in_words(1.234e6, 1.228e6)
    'about 1.234 MB in memory, and 1.228 MB are allowed (--memory)'
    """
    digits = next((n for n in range(2, 15) if in_words(size, n) != in_words(allowed, n)), 15)
    least = in_words(allowed, digits)
    return f"about {in_words(size, digits)} in memory, and {least} are allowed (--memory)"


def fits_in_memory(source: Source, memory: str | None, quiet: bool) -> bool:
    """Whether a table is read as a whole; says so of tables in several files.

    A table that is too large and cannot be read in blocks is refused, with the ways out.
    """
    allowed, size = parse_memory(memory), size_in_memory(source)
    if source.place is None:
        if size > (allowed if memory is not None else 2 * allowed):
            raise Failure(
                f"{source.name} takes {beyond_in_words(size, allowed)}. Write it as Parquet, "
                "which is read in blocks; allow more; or take some of its rows."
            )
        return True
    if size <= allowed:
        if not source.file.is_file():
            note(
                f"{source.name}: {source.count_rows()} rows are read into memory, about "
                f"{in_words(size)} of the {in_words(allowed)} allowed (--memory).",
                quiet,
            )
        return True
    return False


def rows_of_sample(source: Source, memory: str | None, linear: bool) -> int:
    """Rows of the sample that a fit in blocks draws for what needs rows in memory."""
    room = parse_memory(memory) // (2 * _PER_VALUE * max(1, len(source.columns)))
    return int(min(_MOST_LINEAR if linear else _MOST, max(_FEWEST, room)))


def rows_of_block(source: Source, memory: str | None) -> int:
    """Rows that a block has at most, so that a few of them fit into memory."""
    width = max(1, len(source.columns))
    room = parse_memory(memory) // (16 * _PER_VALUE * width)
    return int(max(1024, min((1 << 21) // width, room)))


def place_in_blocks(source: Source) -> Path | str:
    """Where the workers of a cluster find a table; Failure if they cannot read it in blocks."""
    if source.place is None:
        raise Failure(f"--cluster: {source.name} is not Parquet; write it as Parquet first.")
    return source.place


def read_within(
    source: Source,
    columns: Sequence[str] | None,
    memory: str | None,
    what: str,
    cluster: str | None = None,
    types: Mapping[str, pa.DataType] | None = None,
) -> tuple[pa.Table, str]:
    """All rows of a table; of one too large for memory a sample, and what is said of that.

    Parameters
    ----------
    source : Source
    columns : sequence of str, optional
        The columns wanted; all if not given.
    memory : str, optional
        What --memory allows.
    what : str
        What is done with the rows, such as "measured on".
    cluster : str, optional
        What --cluster names: its workers read the table, and send the rows that are taken.
    types : mapping, optional
        Types of columns of text, by name; others are guessed.
    """
    wanted = list(source.columns if columns is None else columns)
    if cluster is not None:
        return _read_on_cluster(source, wanted, memory, what, cluster)
    size = size_in_memory(source, len(wanted))
    allowed = parse_memory(memory)
    if source.place is None or size <= allowed:
        return source.read(wanted, types), ""
    total = source.count_rows()
    rows = sample_rows(source, wanted, allowed / size)
    return rows, _say_sample(source, what, (rows.num_rows, total), size, allowed)


def _say_sample(source: Source, what: str, rows: tuple[int, int], size: float, allowed: int) -> str:
    """Say that some of the rows were taken, of how many and why."""
    said = (
        f"{what} a sample of {rows[0]} of the {rows[1]} rows: all of them take "
        f"{beyond_in_words(size, allowed)}."
    )
    note(f"{source.name}: {said}", source.quiet)
    return said[0].upper() + said[1:]


def _read_on_cluster(
    source: Source, columns: list[str], memory: str | None, what: str, cluster: str
) -> tuple[pa.Table, str]:
    from toprank.blocks import from_tables
    from toprank.models.block_samples import sample_of_blocks

    place, allowed = place_in_blocks(source), parse_memory(memory)
    row = _PER_VALUE * max(1, len(columns))
    with open_cluster(cluster) as where:
        parts = from_tables(place, columns=columns, cluster=where)
        rows, total = sample_of_blocks(parts, lambda n: min(1.0, allowed / (row * n)))
    if row * total <= allowed:
        return rows, ""
    return rows, _say_sample(source, what, (rows.num_rows, total), row * total, allowed)


def sample_rows(source: Source, columns: Sequence[str], share: float) -> pa.Table:
    """A share of the rows, drawn by a checksum of their number: always the same ones."""
    from toprank.models.block_rows import Sampling

    drawn: Sampling = Sampling(share)
    parts = [drawn.of(chunk.rows, chunk.start) for chunk in source.chunks(list(columns), {})]
    arrow = require("pyarrow", "frames")
    return arrow.concat_tables(parts, promote_options="permissive").combine_chunks()
