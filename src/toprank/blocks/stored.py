"""The stored entries of a sparse tensor, by rows and once more by columns.

Scores add up a row's entries, gradients those of a column: each is one read of the entries in the
order in which they lie, with sums in a fixed order. The second copy takes 4 bytes and a value
per entry; it is made when the first gradient is asked for. Zeros are never filled in.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from toprank._lazy import cached_property
from toprank.blocks.kernels_stored import sum_segments

if TYPE_CHECKING:
    import torch
    from torch import Tensor

#: Entries of a piece of a column, at most: columns of very different lengths make equal work.
_PIECE = 1024
_LARGEST_INT32 = 2**31 - 1


class StoredRows:
    """A sparse CSR tensor as plain ones: where rows start, and the column and value of each entry.

    torch's own tensors of that kind have few operations, no slices of rows among them.

    Parameters
    ----------
    starts : int64 tensor of shape (n + 1,)
    columns : int tensor of shape (nnz,)
    values : tensor of shape (nnz,)
    n_columns : int
    """

    #: The class of designs that reads it; see `toprank.blocks.design.design_kind`.
    design_class = "toprank.blocks.device_sparse:StoredDesign"

    def __init__(self, starts: Tensor, columns: Tensor, values: Tensor, n_columns: int):
        self.starts = starts
        self.columns = columns
        self.values = values
        self.shape = (len(starts) - 1, n_columns)
        self.device = values.device
        self.dtype = values.dtype

    @classmethod
    def of(cls, tensor: Tensor) -> StoredRows:
        """Take the entries of a tensor of the layout sparse_csr, values without a copy."""
        torch = importlib.import_module("torch")
        starts, columns = tensor.crow_indices().long(), tensor.col_indices()
        _check_places(starts, columns, int(tensor.shape[1]))
        if tensor.shape[1] <= _LARGEST_INT32:
            columns = columns.to(torch.int32)
        return cls(starts, columns, tensor.values().detach(), int(tensor.shape[1]))

    def __len__(self) -> int:
        return self.shape[0]

    def scores(self, beta: Tensor) -> Tensor:
        """Return the product with a float64 vector of one number per column."""
        return sum_segments(self.starts, self.columns, self.values, beta)

    def take(self, rows: Tensor) -> StoredRows:
        """Return some rows, numbered by a tensor of the same device."""
        torch = importlib.import_module("torch")
        first = self.starts[rows]
        lengths = self.starts[rows + 1] - first
        starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        at = torch.repeat_interleave(first - starts[:-1], lengths)
        at += torch.arange(len(at), device=self.device)
        return StoredRows(starts, self.columns[at], self.values[at], self.shape[1])

    def dense(self, kind: torch.dtype) -> Tensor:
        """Return the rows with their zeros, as a tensor of a type of floating-point numbers."""
        torch = importlib.import_module("torch")
        filled = torch.zeros(self.shape, dtype=kind, device=self.device)
        place = self.row_numbers * self.shape[1] + self.columns
        filled.view(-1).scatter_add_(0, place, self.values.to(kind))
        return filled

    @property
    def row_numbers(self) -> Tensor:
        """The row of every entry, int64."""
        torch = importlib.import_module("torch")
        rows = torch.arange(len(self), device=self.device)
        return torch.repeat_interleave(rows, self.starts.diff(), output_size=len(self.values))

    @cached_property
    def by_column(self) -> StoredColumns:
        return StoredColumns(self)


def _check_places(starts: Tensor, columns: Tensor, n_columns: int) -> None:
    """Refuse places outside the tensor: torch does not check them, and no kernel may read there."""
    if int(starts[0]) != 0 or int(starts[-1]) != len(columns) or bool((starts.diff() < 0).any()):
        raise ValueError(
            f"The starts of the rows of X (crow_indices) do not rise from 0 to {len(columns)}, the "
            "number of its entries. Build the tensor with check_invariants=True to see what is "
            "wrong."
        )
    if len(columns):
        lowest, highest = (int(end) for end in columns.aminmax())
        if lowest < 0 or highest >= n_columns:
            raise ValueError(
                f"X has entries in the columns {lowest} to {highest}, expected 0 to "
                f"{n_columns - 1}: its shape and its col_indices do not agree."
            )


class StoredColumns:
    """The entries of `StoredRows` in the order of their columns, cut into pieces."""

    def __init__(self, rows: StoredRows):
        torch = importlib.import_module("torch")
        n, d = rows.shape
        order = torch.argsort(rows.columns, stable=True)
        numbers = rows.row_numbers
        self.rows = (numbers.to(torch.int32) if n <= _LARGEST_INT32 else numbers)[order]
        self.values = rows.values[order]
        lengths = torch.bincount(rows.columns, minlength=d)
        zero = lengths.new_zeros(1)
        #: Where the entries of each column start, and where its pieces do.
        self.starts = torch.cat([zero, lengths.cumsum(0)])
        pieces = (lengths + (_PIECE - 1)) // _PIECE
        self.first_piece = torch.cat([zero, pieces.cumsum(0)])
        column = torch.repeat_interleave(torch.arange(d, device=rows.device), pieces)
        place = torch.arange(len(column), device=rows.device) - self.first_piece[column]
        self.pieces = torch.cat([self.starts[column] + _PIECE * place, self.starts[-1:]])
        # pieces are added up as they stand: one times each
        self._ones = torch.ones(1, dtype=torch.float64, device=rows.device)
        self._none = torch.zeros(len(column), dtype=torch.int32, device=rows.device)

    def sums(
        self, vector: Tensor, *, by_sign: bool = False, values: Tensor | None = None
    ) -> Tensor:
        """Return the sum over each column of its values times a number per row.

        ``by_sign`` as in `sum_segments`; ``values`` stand for those of the entries.
        """
        entries = self.values if values is None else values
        partial = sum_segments(self.pieces, self.rows, entries, vector, by_sign=by_sign)
        if not by_sign:
            return self._join(partial)
        high, low = (self._join(part) for part in partial)
        torch = importlib.import_module("torch")
        return torch.stack([high, low])

    def _join(self, partial: Tensor) -> Tensor:
        return sum_segments(self.first_piece, self._none, partial, self._ones)
