"""Passes that are kept, so that a fit goes on after its driver was lost.

A fit over blocks is a sequence of passes, and what it learns from a pass is small: counts, sums, a
sample. A source with a checkpoint writes the outcome of every pass to a folder before it hands it
on. A fit that is started again is handed the outcomes that are there, step by step, and so comes to
where the last one stood with the same bits and without reading a row, whatever the solver is; from
there on it reads.

The first pass, over the labels, is always made: it tells whether the labels and weights are still
the same. A feature that changed is noticed where a source knows its rows without reading them
(`BlockSource.identity`): Parquet files by their footers. What
every outcome is the answer to is kept with it, so that another ranker, or other parameters, are not
taken for the same fit.

An outcome is written once the fit has taken it, which the next pass shows. So rows that are refused
for what a pass found in them leave nothing that a later fit to mended rows would be handed.
"""

from __future__ import annotations

import hashlib
import io
import pickle  # nosec B403
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from os import PathLike
from pathlib import Path

from toprank._files import path_on_disk, replace_file
from toprank._numerics import FloatArray
from toprank.blocks.source import Block, BlockSource, Partial, Scores, State, Sweep

_MAGIC = b"toprank pass 1\n"
_DIGEST = 32
#: Outcomes of more bytes are not kept: such a pass is made again.
_MOST_BYTES = 1 << 28
#: Passes that look at the rows, labels and columns: refused rows show there.
_LOOKS = 2
#: What an outcome may be made of, beside classes of this library.
_KNOWN = {
    "builtins": {"complex", "frozenset", "range", "set", "slice"},
    "collections": {"Counter", "OrderedDict", "deque"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "numpy.core.numeric": {"_frombuffer"},
    "scipy.sparse._csr": {"csr_array", "csr_matrix"},
}


class KeptPasses(BlockSource):
    """A source whose passes are kept in a folder; `with_checkpoint` makes one."""

    def __init__(self, source: BlockSource, passes: Passes):
        self.source = source
        self.passes = passes
        for name in ("n_features", "feature_names", "n_jobs", "keeps_samples", "reads_anew"):
            setattr(self, name, getattr(source, name))
        self.checked, self.in_memory = source.checked, source.in_memory
        self.grouped = source.grouped

    def map_reduce(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        outcome: Partial = self.passes.answer(
            (sweep, state), lambda: self.source.map_reduce(sweep, state)
        )
        return outcome

    def start_threads(self, n_jobs: int | None = None) -> AbstractContextManager[object]:
        return self.source.start_threads(n_jobs)

    def expect_passes(self) -> None:
        self.source.expect_passes()

    def name_of(self, index: int) -> str:
        return self.source.name_of(index)

    def identity(self) -> bytes:
        return self.source.identity()

    def thin(self, pick: Callable[[Block], Block]) -> BlockSource:
        return KeptPasses(self.source.thin(pick), self.passes)

    def cheap_curvature(self, n_rows: int) -> bool:
        return self.source.cheap_curvature(n_rows)

    def write_scores(
        self, score: Callable[..., FloatArray], to: str | PathLike[str] | None = None
    ) -> Scores:
        return self.source.write_scores(score, to)


class Passes:
    """The outcomes of one fit, a file each.

    Passes are told apart by the order in which they are made, other outcomes by a name.

    Parameters
    ----------
    folder : path
    identity : bytes
        Of the rows, from `BlockSource.identity`.
    """

    def __init__(self, folder: Path, identity: bytes = b""):
        self.folder = folder
        self.identity = identity
        self.made = 0
        #: How many outcomes came from the folder.
        self.replayed = 0
        #: What is to be written once the fit has taken it: files, questions, outcomes.
        self._waiting: list[tuple[Path, bytes, bytes]] = []

    def answer(self, question: object, make_pass: Callable[[], Partial]) -> Partial:
        """Return the kept outcome of the next pass, or make the pass and keep its outcome."""
        path = self.folder / f"{self.made:05d}.pass"
        asked = _digest(packed_bytes(question))
        is_first, self.made = self.made == 0, self.made + 1
        if self.made > _LOOKS:
            self.write_waiting()
        if not path.exists():
            outcome = make_pass()
            packed = packed_bytes(outcome) + (self.identity if is_first else b"")
            too_large = len(packed) > _MOST_BYTES and not is_first
            self._waiting.append((path, asked, b"" if too_large else packed))
            return outcome
        kept = self._read(path, asked)
        if is_first or not kept:
            outcome = make_pass()
            if is_first and kept != packed_bytes(outcome) + self.identity:
                raise ValueError(
                    f"The rows are not those that the checkpoint {self.folder} was made from: "
                    "their number, labels or weights differ, or their files were written again. "
                    "Start anew in another folder."
                )
            return outcome
        self.replayed += 1
        return _Outcome(io.BytesIO(kept)).load()

    def recall(self, name: str, question: object) -> object:
        """Return what was last kept under a name; None where nothing was."""
        path = self.folder / f"{name}.pass"
        if not path.exists():
            return None
        return _Outcome(io.BytesIO(self._read(path, _digest(packed_bytes(question))))).load()

    def replace(self, name: str, question: object, outcome: object) -> None:
        """Keep an outcome under a name, in the place of the one that is there."""
        path = self.folder / f"{name}.pass"
        self._waiting.append((path, _digest(packed_bytes(question)), packed_bytes(outcome)))
        self.write_waiting()

    def write_waiting(self) -> None:
        """Write the outcomes that the fit has taken."""
        while self._waiting:
            path, asked, packed = self._waiting[0]
            with replace_file(path) as file:
                file.write(_MAGIC + asked + _digest(packed))
                file.write(packed)
            del self._waiting[0]

    def _read(self, path: Path, asked: bytes) -> bytes:
        held = path.read_bytes()
        start = len(_MAGIC)
        of_question = held[start : start + _DIGEST]
        of_outcome = held[start + _DIGEST : start + 2 * _DIGEST]
        packed = held[start + 2 * _DIGEST :]
        if not (held.startswith(_MAGIC) and of_outcome == _digest(packed)):
            raise ValueError(
                f"{path} is damaged, or no file of a checkpoint. Delete it and those after it: "
                "the fit goes on from the one before."
            )
        if of_question != asked:
            raise ValueError(
                f"The checkpoint {self.folder} is that of another fit: other parameters, another "
                "ranker, another version, or other columns. Use the same ones to go on with it, or "
                "another folder."
            )
        return packed


def _digest(packed: bytes) -> bytes:
    return hashlib.blake2b(packed, digest_size=_DIGEST).digest()


def packed_bytes(outcome: object) -> bytes:
    """Return an outcome, or a question, as the bytes that are kept or compared."""
    return pickle.dumps(outcome, protocol=5)


class _Outcome(pickle.Unpickler):  # the only reader of kept outcomes
    """Reads numbers, arrays and classes of this library, and calls nothing else."""

    def find_class(self, module: str, name: str) -> object:
        if module.partition(".")[0] == "toprank":
            found = super().find_class(module, name)
            if isinstance(found, type):
                return found
        elif name in _KNOWN.get(module, ()):
            return super().find_class(module, name)
        raise ValueError(
            f"The checkpoint holds {module}.{name}, which no fit writes. Do not use it."
        )


def with_checkpoint(
    source: BlockSource, folder: str | PathLike[str], *, resume: bool = False
) -> KeptPasses:
    """Return the same rows, with every pass over them kept in a folder.

    Parameters
    ----------
    source : BlockSource
        The rows, wherever they lie.
    folder : str or path
        Where the outcomes of passes go, one small file each; made if it is not there. A fit that
        ended has no more use for it.
    resume : bool, default=False
        Go on with the passes that are there: a fit with the same parameters to the same rows
        comes to the same bits. Without it the folder must be empty.

    Examples
    --------
    >>> import tempfile
    >>> from toprank import PNormPush, blocks
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = blocks.with_checkpoint(blocks.from_arrays(X, y), f"{folder}/fit")
    ...     first = PNormPush(p=4).fit_blocks(rows)
    ...     rows = blocks.with_checkpoint(blocks.from_arrays(X, y), f"{folder}/fit", resume=True)
    ...     again = PNormPush(p=4).fit_blocks(rows)  # reads the labels, and nothing else
    >>> bool((first.coef_ == again.coef_).all())
    True
    """
    if not isinstance(source, BlockSource):
        raise TypeError(
            f"source is a {type(source).__name__}; expected a source of toprank.blocks, such as "
            "blocks.from_parquet(folder, target='y')."
        )
    return KeptPasses(source, open_passes(folder, resume, source.identity()))


@contextmanager
def keep_passes(
    source: BlockSource, checkpoint: str | PathLike[str] | None, resume: bool
) -> Iterator[BlockSource]:
    """The source of a fit, with a folder for the outcomes of its passes where one is named."""
    check_resume(checkpoint, resume)
    if checkpoint is not None:
        source = with_checkpoint(source, checkpoint, resume=resume)
    yield source
    if isinstance(source, KeptPasses):
        source.passes.write_waiting()


def open_passes(folder: str | PathLike[str], resume: bool, identity: bytes = b"") -> Passes:
    """Return the outcomes in a folder; refuse one that holds some where none are to be resumed."""
    place = path_on_disk(folder, "checkpoint")
    if place.exists() and not place.is_dir():
        raise ValueError(f"{place} is a file; expected a folder for the outcomes of passes.")
    place.mkdir(parents=True, exist_ok=True)
    if not resume and any(place.glob("*.pass")):
        raise ValueError(
            f"{place} holds the passes of an earlier fit. Pass resume=True to go on with it, or "
            "give an empty folder."
        )
    return Passes(place, identity)


def check_resume(checkpoint: str | PathLike[str] | None, resume: bool) -> None:
    """Refuse to go on with a fit where nobody says which."""
    if resume and checkpoint is None:
        raise ValueError("resume=True needs the folder of the passes: checkpoint='folder'.")
