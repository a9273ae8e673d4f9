"""Attack on the readers of tables: a file is read whole and right, or refused in a sentence."""

from __future__ import annotations

import atexit
import bz2
import gzip
import io
import os
import shutil
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet

from fuzz.guard import harmless
from fuzz.model_loader import table
from fuzz.mutation import Mutate, bytes_changed, bytes_spliced, text_changed
from toprank.blocks import from_parquet
from toprank.cli.choose_p import read_rows
from toprank.cli.io.source import Reading
from toprank.cli.io.tables import open_table
from toprank.cli.ranked_rows import read_top
from toprank.cli.terminal import Failure
from toprank.models import ModelError, ModelWarning, Schema, fit_table

#: The first byte of an input says what the file is called, the second how it is to be read.
ENDINGS = (".csv", ".tsv", ".csv.gz", ".parquet", ".feather", ".arrow", "")
READINGS = (
    Reading(),
    Reading(encoding="latin-1"),
    Reading(encoding="utf-16"),
    Reading(delimiter=";"),
    Reading(decimal=","),
    Reading(missing=("?", "Rome")),
    Reading(encoding="utf-8-sig", delimiter="\t"),
    Reading(encoding="shift_jis"),
    Reading(encoding="cp037"),
    Reading(encoding="utf-7"),
)


@cache
def _model() -> Any:
    frame = table().drop(columns="note")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_table(frame, "bought", id="customer", p=4)


@cache
def _folder() -> Path:
    memory = Path("/dev/shm")
    home = memory if os.access(memory, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="toprank-fuzz-", dir=home))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def seeds() -> dict[str, bytes]:
    """Small tables of every kind that the command line reads."""
    frame = table().head(6)
    text = frame.to_csv(index=False).encode()
    arrow = pyarrow.Table.from_pandas(frame, preserve_index=False)
    numbers = pyarrow.table({"a": [1, 2, 3], "b": [0.5, float("inf"), -1e300], "y": [0, 1, 0]})
    odd = pyarrow.table(
        {
            "list": [[1], [2, 3]],
            "struct": [{"x": 1}, {"x": None}],
            "words": pyarrow.array(["a", "b"]).dictionary_encode(),
            "money": pyarrow.array([1, 2]).cast(pyarrow.decimal128(30, 2)),
            "day": pyarrow.array([1, None], pyarrow.date32()),
            "hour": pyarrow.array([1, 2], pyarrow.time64("ns")),
            "zone": pyarrow.array([1, 2], pyarrow.timestamp("us", "Europe/Rome")),
            "blob": [b"\xff", None],
            "span": pyarrow.array([1, 2], pyarrow.duration("ms")),
            "nothing": pyarrow.nulls(2),
            "half": pyarrow.array(np.array([1, 2], dtype=np.float16)),
            "big": pyarrow.array([2**64 - 1, 0], pyarrow.uint64()),
        }
    )
    semicolons = text.replace(b",", b";").replace(b".", b",")
    return {
        "csv": _input(0, 0, text),
        "crlf": _input(0, 0, text.replace(b"\n", b"\r\n")),
        "mark": _input(0, 0, b"\xef\xbb\xbf" + text),
        "quotes": _input(0, 0, b'a,"b ""c"", d",y\n1,"x\ny",0\n2,"",1\n'),
        "utf-16": _input(0, 0, text.decode().encode("utf-16")),
        "latin": _input(0, 1, "näme;y\nJosé;1\nZoë;0\n".encode("latin-1")),
        "semicolons": _input(0, 0, semicolons),
        "tabs": _input(1, 0, text.replace(b",", b"\t")),
        "gzip": _input(2, 0, gzip.compress(text, mtime=0)),
        "bzip2": _input(0, 0, bz2.compress(text)),
        "parquet": _input(3, 0, _parquet(arrow)),
        "numbers": _input(3, 0, _parquet(numbers)),
        "odd parquet": _input(3, 0, _parquet(odd)),
        "feather": _input(4, 0, _feather(arrow)),
        "odd feather": _input(4, 0, _feather(odd)),
        "stream": _input(5, 0, _stream(arrow)),
    }


def _input(ending: int, reading: int, content: bytes) -> bytes:
    return bytes([ending, reading]) + content


def _parquet(rows: Any) -> bytes:
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(rows, buffer, compression="none", row_group_size=2)
    return buffer.getvalue()


def _feather(rows: Any) -> bytes:
    buffer = io.BytesIO()
    pyarrow.feather.write_feather(rows, buffer, compression="uncompressed")
    return buffer.getvalue()


def _stream(rows: Any) -> bytes:
    buffer = io.BytesIO()
    with pyarrow.ipc.new_stream(buffer, rows.schema) as writer:
        writer.write_table(rows)
    return buffer.getvalue()


def attack(data: bytes) -> None:
    """Read the file in every way there is; anything but a documented refusal is a finding."""
    if len(data) < 3:
        return
    path = _folder() / f"t{ENDINGS[data[0] % len(ENDINGS)]}"
    path.write_bytes(data[2:])
    reading = READINGS[data[1] % len(READINGS)]
    with harmless(), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ModelWarning)
        rows = _read(path, reading)
        _rank(path, reading)
        if rows is not None:
            _learn(rows)
            with _refused(Failure, ModelError), redirect_stderr(io.StringIO()):
                read_rows(path, rows.column_names[0], reading=reading)
        if data[2:6] == b"PAR1":
            _blocks(path)


@contextmanager
def _refused(*documented: type[Exception]) -> Iterator[None]:
    try:
        yield
    except documented as error:
        assert str(error).strip(), "a refusal without a word"


def _read(path: Path, reading: Reading) -> Any:
    """The table, if it can be read; whole or in parts, it is the same."""
    whole = None
    with _refused(Failure), open_table(path, reading, quiet=True) as source:
        columns = source.columns
        whole = source.read()
        assert tuple(whole.column_names) == columns
        parts = [chunk.rows for chunk in source.chunks(columns, {})]
        assert sum(part.num_rows for part in parts) == whole.num_rows, "rows lost in parts"
        assert source.count_rows() == whole.num_rows, "rows lost in counting"
    return whole


def _rank(path: Path, reading: Reading) -> None:
    with _refused(Failure, ModelError), open_table(path, reading, quiet=True) as source:
        found = read_top(_model(), source, 3, [], 2, lambda *_: None)
        assert np.all(np.isfinite(found.scores)) and np.all(np.diff(found.scores) <= 0)


def _learn(rows: Any) -> None:
    with _refused(ModelError):
        schema = Schema.learn(rows)
        problems = schema.match(rows).problems
        assert not problems, f"the table it was learned from does not match: {problems}"


def _blocks(path: Path) -> None:
    with _refused(ValueError, OSError):
        try:
            source = from_parquet(path)
            seen = sum(len(np.asarray(block.X)) for block in source.read())
            assert seen == source.n_rows, "rows lost in blocks"
        except (pyarrow.ArrowException, UnicodeError) as error:
            raise AssertionError(f"{type(error).__name__} came out of Arrow") from error


def mutate(data: bytes, most: int, seed: int, mutate_bytes: Mutate | None = None) -> bytes:
    """Change the content below the packing, or the bytes as they are."""
    rng = Random(seed)
    raw = mutate_bytes or (lambda old: bytes_changed(old, rng))
    if len(data) < 3:
        return bytes([0, 0]) + raw(data)
    head, content = data[:2], data[2:]
    if rng.random() < 0.05:
        head = bytes([rng.randrange(len(ENDINGS)), rng.randrange(len(READINGS))])
    try:
        if content.startswith(b"\x1f\x8b") and rng.random() < 0.7:
            content = gzip.compress(text_changed(gzip.decompress(content), rng), mtime=0)
        elif content.startswith(b"BZ") and rng.random() < 0.7:
            content = bz2.compress(text_changed(bz2.decompress(content), rng))
        elif _is_text(content) and rng.random() < 0.6:
            content = text_changed(content, rng)
        else:
            content = (raw if rng.random() < 0.5 else lambda c: bytes_changed(c, rng))(content)
    except (OSError, EOFError, ValueError, zlib.error):
        content = raw(content)
    return (head + content)[:most]


def splice(data: bytes, other: bytes, seed: int) -> bytes:
    """The beginning of a table and the end of another; of texts, at the ends of lines."""
    rng = Random(seed)
    if not (_is_text(data[2:]) and _is_text(other[2:])):
        return data[:2] + bytes_spliced(data[2:], other[2:], rng)
    lines, rest = data[2:].splitlines(True), other[2:].splitlines(True)
    return data[:2] + b"".join(
        lines[: rng.randint(0, len(lines))] + rest[rng.randint(0, len(rest)) :]
    )


def _is_text(content: bytes) -> bool:
    return content[:4] not in (b"PAR1", b"ARRO", b"\xff\xff\xff\xff")
