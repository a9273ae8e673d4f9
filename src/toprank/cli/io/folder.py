"""A table in several Parquet files: a folder, a pattern, or an address of a store."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toprank._extras import require
from toprank.cli.io.source import Batches, Reading, Source
from toprank.cli.terminal import Failure

if TYPE_CHECKING:
    import pyarrow as pa

    from toprank.blocks.parquet_files import ParquetPart

_WILD = re.compile(r"[*?\[]")
#: s3://bucket/table, and what a path keeps of it: one slash.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/+)(.+)")


class GivenPath(type(Path())):  # type: ignore[misc]
    """A path that remembers how it was typed: of the slashes of an address a path keeps one."""

    text: str

    @classmethod
    def of(cls, text: str) -> Path:
        """Return the path of a text."""
        path: GivenPath = cls(text)
        path.text = text
        return path


def place_of_files(path: Path) -> str | None:
    """Where several files may lie, or one in a store; None for a file of this machine."""
    if address := _ADDRESS.fullmatch(getattr(path, "text", str(path))):
        if len(address[2]) >= 2:
            return f"{address[1]}:{address[2]}{address[3]}"
        root = "/" if address[1].lower() == "file" else ""  # there is no host before the path
        return f"{address[1]}://{root}{address[3]}"
    if path.is_dir() or (_WILD.search(str(path)) and not path.exists()):
        return str(path)
    return None


class ParquetFiles(Source):
    """Parquet files with the same columns, in order of their names.

    The names of folders such as ``day=3`` are columns, as Hive, Spark and Dask write them.
    """

    def __init__(self, place: str, reading: Reading, quiet: bool = False) -> None:
        # the library is loaded here, because --help need not wait for it
        from toprank.blocks.parquet_files import read_footer
        from toprank.blocks.places import find_files

        self.name, self.reading, self.quiet = f"'{place}'", reading, quiet
        self._place = place
        self.file = Path(place)
        self._model_reading = Reading()
        try:
            found = find_files(place)
        except FileNotFoundError as error:
            what = "is a folder without" if self.file.is_dir() else "stands for no"
            raise Failure(f"{self.name} {what} Parquet files (*.parquet).") from error
        except (ImportError, OSError, ValueError) as error:
            raise Failure(f"{self.name}: {str(error).rstrip('.')}.") from error
        try:
            footers = [read_footer(file) for file in found]
        except (ImportError, OSError, ValueError) as error:
            raise Failure(f"{self.name}: {str(error).rstrip('.')}.") from error
        self.parts: list[ParquetPart] = [part for part, _ in footers]
        self.schema = footers[0][1]
        for part, schema in footers[1:]:
            self._check_same(schema, part, self.parts[0])

    def _check_same(self, schema: pa.Schema, part: ParquetPart, first: ParquetPart) -> None:
        """Refuse a file with other columns than the first; types may differ where a cast serves."""
        ours, theirs = self.schema.names, schema.names
        here, there = set(ours), set(theirs)
        missing = [name for name in ours if name not in there]
        more = [name for name in theirs if name not in here]
        if missing or more:
            name, has, has_not = (
                (missing[0], first.path, part.path) if missing else (more[0], part.path, first.path)
            )
            raise Failure(
                f"{self.name}: '{has}' has the column '{name}' and '{has_not}' has not; all files "
                "of a table must have the same columns."
            )

    @property
    def place(self) -> str:
        return self._place

    def _names(self) -> Sequence[str]:
        return list(self.schema.names)

    def _whole(self, columns: list[str], types: Mapping[str, pa.DataType]) -> pa.Table:
        tables = [table for table, _, _ in self._batches(columns, types, 1 << 20)]
        none = self._wanted(columns).empty_table()  # files may have no rows
        return require("pyarrow", "frames").concat_tables([none, *tables]).combine_chunks()

    def _batches(self, columns: list[str], types: Mapping[str, pa.DataType], rows: int) -> Batches:
        arrow = require("pyarrow", "frames")
        wanted, done, total = self._wanted(columns), 0, self.count_rows()
        for part in self.parts:
            for batch in self._read(part, columns, rows):
                batch.validate(full=True)
                table = arrow.Table.from_batches([part.add_keys(batch, columns)])
                done += table.num_rows
                yield self._cast(table.select(columns), wanted, part), done, total
        if done != total:
            raise Failure(f"{self.name} has {done} of the {total} rows that its files announce.")

    def _read(self, part: ParquetPart, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        stored = [name for name in columns if name not in part.keys]
        try:
            with part.open_pass() as file:
                yield from file.iter_batches(rows, columns=stored)
        except (RuntimeError, ValueError, FileNotFoundError) as error:
            raise Failure(f"{self.name}: {str(error).rstrip('.')}.") from error

    def _wanted(self, columns: list[str]) -> pa.Schema:
        arrow = require("pyarrow", "frames")
        return arrow.schema([self.schema.field(name) for name in columns]).remove_metadata()

    def _cast(self, table: pa.Table, wanted: pa.Schema, part: ParquetPart) -> pa.Table:
        arrow = require("pyarrow", "frames")
        try:
            return table.cast(wanted)
        except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
            raise Failure(
                f"{self.name}: '{part.path}' has other types than '{self.parts[0].path}' "
                f"({str(error).splitlines()[0].rstrip('.')}); write both with the same types."
            ) from error

    def _check_unchanged(self) -> None:
        """Every pass over a file has looked at its size and time before and after."""

    def count_rows(self) -> int:
        return sum(sum(part.row_groups) for part in self.parts)
