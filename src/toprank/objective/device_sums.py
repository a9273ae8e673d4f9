"""Sums over rows on a GPU in one read of them, by the kernels of `toprank.blocks.kernels_triton`.

What comes back to the host is as large as a coefficient vector, or a histogram.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from toprank._extras import has_triton, require
from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.blocks.device import DeviceDesign
from toprank.blocks.kernels_chosen import draw_rows
from toprank.blocks.kernels_cuda import FusedReader
from toprank.blocks.kernels_moments import GOLDEN, drawn_moments
from toprank.blocks.recorded import Recording
from toprank.blocks.statistics import Units
from toprank.objective.sums import BIN, BINS, EndPartial, ScoreHistogram, Standard, Tilted, Tilts

if TYPE_CHECKING:
    from types import ModuleType

    from torch import Tensor

#: Rows that tell where the largest exponents lie, roughly.
_SAMPLE_ROWS = 4096
#: Entries of rows that second moments are taken from at once.
_ROUGH_ENTRIES = 1 << 25
#: Rows of a sparse tensor up to which starting kernels takes longer than they do.
_RECORDED_ROWS = 1 << 20
#: Masses within these bounds lost nothing: float64 reaches from 1e-308 to 1e308, and a kernel takes
#: weights times 2^504 or less, and entries over the square of that (`toprank.blocks.cuda_turned`).
_ROOM = (1e-100, 1e120)
#: Weights are counted in whole quanta, so that no order of adding up can change a bit.
_QUANTA = 2.0**60

#: The least share of the rows of a Hessian that each class has.
_LEAST_SHARE = 0.25
#: Room for rows that are drawn, relative to how many there should be, and sixteens beside that.
_ROOM_FOR_DRAWN, _SPARE = 1.25, 256

Pair = tuple[float, float]


class FusedSums:
    """Tilted sums of a tensor's rows by one kernel, relative to tops that it remembers.

    Parameters
    ----------
    design : DeviceDesign
    positive : bool tensor of shape (n,)
    log_weight : float64 tensor of shape (n,), optional
    """

    def __init__(self, design: DeviceDesign, positive: Tensor, log_weight: Tensor | None):
        self.design = design
        self.positive = positive
        self.log_weight = log_weight
        #: About where the largest exponents of (positives, negatives) lie, by tilts.
        self._tops: dict[Pair, Pair] = {}
        #: What `start_tilted` was asked for, and the tops that it took.
        self._begun: tuple[object, Pair] | None = None

    def tilted_ends(
        self, coef: FloatArray, tilts: Tilts, scores: Tensor | None = None
    ) -> list[EndPartial]:
        """Return for each end the tilted sums of positives and negatives.

        ``scores``, a float64 vector, receives the scores of the rows where it is given.
        """
        return [self._end(coef, of_end, scores) for of_end in tilts]

    def start_tilted(
        self, coef: FloatArray, tilts: Pair, tops: Pair | None, scores: Tensor | None
    ) -> bool:
        """Start on what `tilted_ends` will be asked for next; the host does not wait for it.

        ``tops`` are about where the largest exponents lie, where that is known. Returns whether it
        was started: then ``scores``, where given, are written too.
        """
        if not isinstance(self._reader, FusedReader):
            return False
        tops = tops or self._about(coef, tilts)
        self._reader.start(coef, (*tilts, *tops), scores)
        self._begun = (coef.tobytes(), tilts), tops
        return True

    def _about(self, coef: FloatArray, tilts: Pair) -> Pair:
        """The tops of the last evaluation, or of a sample."""
        if not coef.any():
            return 0.0, 0.0
        step = max(1, self.design.n_rows // _SAMPLE_ROWS)
        return self._tops.pop(tilts, None) or self._largest(coef, tilts, step)

    def _end(self, coef: FloatArray, tilts: Pair, scores: Tensor | None) -> EndPartial:
        """One read of X, relative to tops that are known, or about so."""
        begun, self._begun = self._begun, None
        found = self._reader.finish() if begun and isinstance(self._reader, FusedReader) else None
        if begun and found is not None and begun[0] == (coef.tobytes(), tilts) and scores is None:
            end = _end_of(found, begun[1])
        else:
            end = self._read(coef, tilts, self._about(coef, tilts), scores)
        if not self._is_sound(end):
            end = self._read(coef, tilts, self._largest(coef, tilts, 1), scores)
        if self._is_sound(end):
            self._tops[tilts] = _log_masses(end)
        return end

    def _read(self, coef: FloatArray, tilts: Pair, tops: Pair, scores: Tensor | None) -> EndPartial:
        return _end_of(self._table(coef, tilts, tops, scores), tops)

    def _table(
        self, coef: FloatArray, tilts: Pair, tops: Pair, scores: Tensor | None
    ) -> FloatArray:
        """(mass, moments) of positives and negatives, relative to their tops."""
        return self._reader(coef, (*tilts, *tops), scores)

    @cached_property
    def present(self) -> tuple[bool, bool]:
        """Whether there are positives, and negatives, of weight above zero."""
        return _present(self.positive, self.log_weight)

    @cached_property
    def _reader(self) -> Callable[[FloatArray, tuple[float, ...], Tensor | None], FloatArray]:
        from toprank.blocks.kernels_triton import tilted_reader

        return tilted_reader(self.design.X, self.positive, self.log_weight, self.design.centre)

    def curvature(self, scores: Tensor, tilts: Pair, end: EndPartial, n_rows: int) -> Tensor:
        """Return sum_c |tilt_c| covariance of class c, from about so many rows of each class.

        They are drawn by their weight, see `toprank.blocks.kernels_moments`; more of the class that
        counts more often. ``end`` holds the masses and means of all rows, or about them; their
        second moments are not looked at. The host does not wait for the device where it can be
        helped.
        """
        design, torch = self.design, self.design.torch
        each = _rows_to_draw(tilts, n_rows)
        drawn_by = np.array([*tilts, *_log_masses(end), *each, GOLDEN])
        sent = design.small(np.concatenate([*map(_mean, end), drawn_by]))  # in one copy
        means, about = sent[:-7].view(2, -1), sent[-7:]
        middles = means if design.centre is None else means + design.centre
        compiled = design.kernel == "triton" and design.X.dtype != torch.float64
        if compiled:
            room = min(len(scores), 16 * (int(_ROOM_FOR_DRAWN * sum(each)) // 16 + _SPARE))
            drawn = draw_rows(scores, self.positive, self.log_weight, about, room)
            if drawn is not None:
                rows, count, total = drawn
                return drawn_moments(design.X, rows, count, middles.float(), total)
        rows, count = self._draw(scores, about)
        if compiled:
            return drawn_moments(design.X, rows, count.float(), middles.float())
        return _second_moments(design, rows, count, middles)

    def factored(self, hessian: Tensor, penalty: FloatArray | float) -> Tensor:
        """Return what `factored` makes of a Hessian and the penalty on each coefficient."""
        there = self.design.small(penalty) if isinstance(penalty, np.ndarray) else penalty
        return factored(hessian, there)

    def _draw(self, scores: Tensor, about: Tensor) -> tuple[Tensor, Tensor]:
        """What `draw_rows` returns, in float64, where its kernels do not run."""
        torch, positive = self.design.torch, self.positive
        tilt, top, each = (torch.where(positive, about[k], about[k + 1]) for k in (0, 2, 4))
        exponents = tilt * scores - top
        if self.log_weight is not None:
            exponents += self.log_weight
        share = exponents.exp_()
        number = torch.arange(1, len(share) + 1, dtype=torch.float64, device=share.device)
        rows = ((number * about[6]).frac_() < each * share).nonzero()[:, 0]
        count = share[rows].maximum(1.0 / each[rows]) * tilt[rows].abs()
        return rows, torch.where(positive[rows], count, -count)

    def _is_sound(self, end: EndPartial) -> bool:
        """Whether the sums have neither over- nor underflown; float64 goes to 1e308."""
        # whether a class is there takes a pass over the labels: asked only where it matters
        return all(
            _ROOM[0] < part.mass < _ROOM[1] or not self.present[which]
            for which, part in enumerate(end)
        )

    def _largest(self, coef: FloatArray, tilts: Pair, step: int) -> Pair:
        """The largest exponent of each class, among every so many rows."""
        sample = self.design.every(step)
        scores, positive = sample.scores(coef).tensor, self.positive[::step]
        tops = []
        for tilt, members in zip(tilts, (positive, ~positive), strict=True):
            exponents = tilt * scores
            if self.log_weight is not None:
                exponents = exponents + self.log_weight[::step]
            tops.append(exponents.where(members, -np.inf).max())
        found = self.design.torch.stack(tops).cpu().numpy()
        of_pos, of_neg = (float(top) if np.isfinite(top) else 0.0 for top in found)
        return of_pos, of_neg


def _rows_to_draw(tilts: Pair, n_rows: int) -> Pair:
    """Rows to draw of (positives, negatives), n_rows on average, in proportion to the tilts.

    So the error of the sum of |tilt| times the covariances is least, where it counts most.
    """
    of_pos, of_neg = map(abs, tilts)
    share = min(max(of_pos / (of_pos + of_neg), _LEAST_SHARE), 1.0 - _LEAST_SHARE)
    return 2.0 * n_rows * share, 2.0 * n_rows * (1.0 - share)


def factored(hessian: Tensor, penalty: Tensor | float) -> Tensor:
    """Return a Hessian, a penalty added to its diagonal, and its factor, in units of unit diagonal.

    Above the diagonal lies the Hessian in those units, on and below it the factor; below
    them one line of the units and one of zeros, or of other numbers where there is no factor.
    """
    torch, d = require("torch", "torch"), len(hessian)
    diagonal = hessian.diagonal()
    diagonal += penalty
    scale = torch.where(diagonal > 0, diagonal, 1.0).rsqrt()
    scaled = hessian * scale[:, None]
    scaled *= scale
    lower, failed = torch.linalg.cholesky_ex(scaled)
    found = hessian.new_empty((d + 2, d))
    torch.add(lower, scaled.triu(1), out=found[:d])
    found[d] = scale
    found[d + 1] = failed
    return found


def _end_of(found: FloatArray, tops: Pair) -> EndPartial:
    """The sums of positives and negatives from a table of them, relative to tops."""
    pos, neg = (
        Tilted(line[1:], None, top if line[0] else -np.inf, float(line[0]))
        for line, top in zip(found, tops, strict=True)
    )
    return pos, neg


def _log_masses(end: EndPartial) -> Pair:
    of_pos, of_neg = (part.log_mass if part.mass > 0 else 0.0 for part in end)
    return float(of_pos), float(of_neg)


def _mean(part: Tilted) -> FloatArray:
    return part.mean if part.mass > 0 else np.zeros_like(part.moment)


def _present(positive: Tensor, log_weight: Tensor | None) -> tuple[bool, bool]:
    if log_weight is None:
        return bool(positive.any()), not bool(positive.all())
    held = log_weight > -np.inf
    return bool((positive & held).any()), bool((~positive & held).any())


class StoredSums(FusedSums):
    """The same of a sparse tensor, in two reads of its entries.

    One gives a score per row, the other a sum per column; what lies between has one number per row.
    Scores are not kept: they take as long to read as the few entries of a row.
    On a GPU these are some twenty small kernels, which are recorded and started together.
    """

    def _table(
        self, coef: FloatArray, tilts: Pair, tops: Pair, scores: Tensor | None
    ) -> FloatArray:
        shift = self.design.units.shift(coef)  # of a model that was fitted to dense rows
        raised = [top + tilt * shift for tilt, top in zip(tilts, tops, strict=True)]
        given = np.concatenate([tilts, raised, coef])
        found: FloatArray = self._recorded(given).cpu().numpy()
        return found

    @cached_property
    def _recorded(self) -> Callable[[FloatArray], Tensor]:
        """A function of (tilts, tops, coefficients)."""
        X = self.design.X
        if X.device.type == "cuda" and has_triton() and len(X) <= _RECORDED_ROWS:
            return Recording(self._sums, self.design.small(np.zeros(4 + X.shape[1])))
        return lambda given: self._sums(self.design.small(given))

    def _sums(self, given: Tensor) -> Tensor:
        """(mass, moments) of positives and negatives, relative to their tops."""
        torch, positive = self.design.torch, self.positive
        own = self.design.X.scores(given[4:])
        tilt, top = (torch.where(positive, given[k], given[k + 1]) for k in (0, 2))
        exponents = tilt.mul_(own).sub_(top)
        if self.log_weight is not None:
            exponents += self.log_weight
        weight = exponents.exp_()
        masses = [torch.where(members, weight, 0.0).sum() for members in (positive, ~positive)]
        signed = torch.where(positive, weight, -weight)
        moments = self.design.X.by_column.sums(signed, by_sign=True)
        found: Tensor = torch.cat([torch.stack(masses)[:, None], moments], 1)
        return found


def _second_moments(design: DeviceDesign, rows: Tensor, count: Tensor, middles: Tensor) -> Tensor:
    """What `drawn_moments` returns, for rows of any kind: some of them at a time."""
    torch, d = design.torch, design.n_features
    kind = torch.float64 if design.X.dtype == torch.float64 else torch.float32
    total = torch.zeros((d, d), dtype=torch.float64, device=rows.device)
    at_once = max(1, _ROUGH_ENTRIES // d)
    for some, counts in zip(rows.split(at_once), count.split(at_once), strict=True):
        x = design.dense_rows(some, kind)
        x -= middles[(counts < 0).long()].to(kind)
        x *= counts.abs().sqrt()[:, None].to(kind)
        total += (x.T @ x).double()
    return total


def device_histogram(
    design: DeviceDesign,
    positive: Tensor,
    weight: Tensor | None,
    coef: FloatArray,
    shift: float,
    standard: Standard,
    scores: Tensor | None = None,
) -> ScoreHistogram:
    """Return the histogram of the scores X @ coef + shift of a tensor's rows.

    Counted in whole quanta of weight, so that no order of adding up can change a bit. Where the
    scores X @ coef are known, X is not read.
    """
    known = scores
    if scores is not None:
        design, coef = DeviceDesign(scores[:, None], Units()), np.ones(1)
    heaviest = float(design.n_rows if weight is None else weight.sum())
    quanta = _QUANTA / max(heaviest, 1e-300)
    centred = Standard(standard.centre - shift, standard.spread)
    found, beyond = count_scores(design, positive, weight, coef, centred, quanta, known)
    counts = found / quanta
    centres = (np.arange(BINS) + 0.5 - BINS / 2) * BIN
    total = ScoreHistogram(counts[0], counts[0] * np.tile(centres, 2) + counts[1] * BIN)
    if beyond:
        u = (design.scores(coef).tensor - centred.centre) / centred.spread
        far = ~(u.abs() < BIN * BINS / 2)
        ones = u.new_ones(len(u)) if weight is None else weight
        outside = (part[far].cpu().numpy() for part in (u, positive, ones))
        total.outside.append(tuple(outside))
    return total


def count_scores(
    design: DeviceDesign,
    positive: Tensor,
    weight: Tensor | None,
    coef: FloatArray,
    standard: Standard,
    quanta: float,
    scores: Tensor | None = None,
) -> tuple[FloatArray, int]:
    """Count standardised scores in the bins of a `ScoreHistogram`, in quanta of weight.

    Returns the quanta in each bin, negatives before positives, and below them the summed
    distances from the bins' centres, in bins; and how many rows lie beyond the bins. ``scores``
    are X @ coef, where they are known.
    """
    counts = None
    if scores is not None and design.kernel == "triton":
        counts = _counted_at_once(scores, positive, weight, standard, quanta)
    if counts is None and design.kernel == "triton":
        from toprank.blocks.kernels_triton import counted_scores

        about = (-standard.centre, standard.spread), BINS, 1.0 / BIN, quanta
        rows = (design.X, positive, weight, design.small(coef), design.centre)
        counts = counted_scores(*rows, *about)
    elif counts is None:
        u = (design.scores(coef).tensor - standard.centre) / standard.spread
        counts = _counted(design.torch, u, positive, weight, quanta)
    found = counts.cpu().numpy()
    return found[:-1].reshape(2, 2 * BINS).astype(np.float64), int(found[-1])


def _counted_at_once(
    scores: Tensor, positive: Tensor, weight: Tensor | None, standard: Standard, quanta: float
) -> Tensor | None:
    """The same from scores by a kernel that has all bins at hand; None where there is none."""
    from toprank.blocks.kernels_counts import counted_in_shared_memory

    torch = require("torch", "torch")
    about = np.array([-standard.centre, standard.spread, 1.0 / BIN, quanta])
    there = torch.from_numpy(about).to(scores.device, non_blocking=True)
    return counted_in_shared_memory(scores, positive.view(torch.uint8), weight, there, BINS)


def _counted(
    torch: ModuleType, u: Tensor, positive: Tensor, weight: Tensor, quanta: float
) -> Tensor:
    place = u / BIN + BINS // 2
    within = (place > 0) & (place < BINS)
    held = torch.full_like(u, quanta) if weight is None else weight * quanta
    held, place, kind = held[within], place[within], positive[within]
    number = place.long()
    offset = held * (place - number - 0.5)
    number += BINS * kind
    counts = torch.zeros(4 * BINS + 1, dtype=torch.int64, device=u.device)
    counts.index_add_(0, number, held.long())
    counts.index_add_(0, number + 2 * BINS, offset.long())
    counts[-1] = len(u) - len(number)
    return counts
