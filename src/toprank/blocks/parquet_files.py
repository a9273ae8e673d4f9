"""Parquet files behind a block source: which they are, what columns they have, what is wrong.

Everything that can be refused is refused from the footers, before a row is read, and names the
file and the column. A file is stamped with its size and time, so that one that changes between
two passes is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toprank._extras import require
from toprank._files import Stamp
from toprank.blocks.places import FoundFile, Place
from toprank.blocks.retries import StoreError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

#: Bytes of each column chunk that are read at once.
_BUFFER = 1 << 19


@dataclass(frozen=True)
class ParquetPart:
    """One file: its row groups, its stamp, and what the names of its folders say of its rows."""

    path: Place
    row_groups: tuple[int, ...]  #: rows of each
    stamp: Stamp
    keys: Mapping[str, object]  #: columns whose one value is in the names of the folders

    @contextmanager
    def open_pass(self) -> Iterator[pq.ParquetFile]:
        """Open the file for one pass."""
        self.stamp.check()
        with stream_parquet(self.path) as file:
            yield file
        self.stamp.check()  # nor may it have changed during the pass

    def add_keys(self, batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """Add the columns that are in the names of the folders to rows of the file."""
        own = [name for name in names if name in self.keys]
        if not own:
            return batch
        arrow = require("pyarrow", "frames")
        columns = [arrow.repeat(self.keys[name], batch.num_rows) for name in own]
        return arrow.record_batch([*batch.columns, *columns], names=[*batch.schema.names, *own])


def stream_parquet(path: Place) -> AbstractContextManager[pq.ParquetFile]:
    """Open a file whose column chunks are streamed and whose checksums are looked at.

    A row group may be larger than the memory there is.
    """
    return _open_parquet(
        path, pre_buffer=False, buffer_size=_BUFFER, page_checksum_verification=True
    )


@contextmanager
def _open_parquet(path: Place, **options: object) -> Iterator[pq.ParquetFile]:
    parquet = require("pyarrow.parquet", "frames")
    with name_in_errors(path), ExitStack() as stack:
        source = path if isinstance(path, Path) else stack.enter_context(path.open_input())
        yield stack.enter_context(parquet.ParquetFile(source, **options))


@contextmanager
def name_in_errors(path: Place) -> Iterator[None]:
    """Say which file could not be read."""
    arrow = require("pyarrow", "frames")
    try:
        yield
    except MemoryError as error:  # of Arrow too: the file is not to blame
        raise MemoryError(
            f"There is not enough memory to read a block of {path} ({str(error).strip()}). Free "
            "some, pass a smaller block_rows=, or write the file in smaller row groups."
        ) from error
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, FileNotFoundError | StoreError):
            raise
        raise ValueError(
            f"{path} cannot be read as Parquet: {str(error).strip()} The file may be damaged or "
            "half written; write it again, or leave it out."
        ) from error


def footer_bytes(path: Place) -> bytes:
    """Return what the footer of a file says."""
    sink = require("pyarrow", "frames").BufferOutputStream()
    with _open_parquet(path) as file:
        file.metadata.write_metadata_file(sink)
    return bytes(sink.getvalue().to_pybytes())


def read_footer(found: FoundFile) -> tuple[ParquetPart, pa.Schema]:
    """Read the footer of a file: its row groups, and its schema with the names of its folders."""
    arrow = require("pyarrow", "frames")
    path, stamp = found.place, Stamp.of(found.place)
    with _open_parquet(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
        rows = tuple(metadata.row_group(g).num_rows for g in range(metadata.num_row_groups))
    keys = {name: value for name, value in found.keys.items() if name not in schema.names}
    for name, value in keys.items():
        schema = schema.append(arrow.field(name, arrow.scalar(value).type))
    return ParquetPart(path, rows, stamp, keys), schema
