"""How the threads of a GPU share out a table of so many columns; chosen on an H200."""

from __future__ import annotations

from dataclasses import dataclass, replace

#: Columns up to which a lane may take a whole row, and up to which it does by columns, by the size
#: of an entry.
_NARROW = 12
_NARROW_BY_COLUMN = {2: 20, 4: 17, 8: 32}
#: Warps of a block.
_WARPS = 4
#: Threads that a multiprocessor should hold; fewer, where each of them needs more registers.
_RESIDENT = 512
_RESIDENT_WIDE = 384
#: Bytes of shared memory that the blocks of a multiprocessor have, less what each block costs.
_SHARED = 227 * 1024
_SHARED_PER_BLOCK = 1024
#: Places for rows that are asked for ahead in shared memory.
_STAGES = 3
#: Bytes that are copied to shared memory at once.
_PIECE = 16


@dataclass(frozen=True)
class Plan:
    """How warps share out a table of this many columns, rows being held in registers.

    Attributes
    ----------
    lanes, slots : int
        Lanes of a warp that share a row, columns that each of them takes.
    warps, teams : int
        Warps that share a row, and how many such teams a block has.
    batch : int
        Rows that a lane works on at once.
    resident : int
        Threads that a multiprocessor should hold.
    ahead : bool
        Whether the next rows are asked for before these are worked on.
    stages : int
        Places of shared memory that rows are asked for into, ahead; 0 if none.
    """

    lanes: int
    slots: int
    warps: int
    teams: int
    batch: int
    resident: int = _RESIDENT
    ahead: bool = False
    stages: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.warps * self.teams * 32

    @property
    def rows(self) -> int:
        """Rows that a block works on at once."""
        return self.batch * (32 // self.lanes) * self.teams

    def shared(self, columns: int, size: int) -> int:
        """Bytes of shared memory that a block asks for."""
        in_team = self.rows // self.teams
        pieces = -(-in_team * columns * size // _PIECE) + 1
        return self.stages * self.teams * pieces * _PIECE

    def blocks(self, columns: int, size: int) -> int:
        """Blocks that a multiprocessor should hold."""
        wanted = max(1, self.resident // self.threads)
        swapped = 2 * max(1, self.batch // self.lanes) * self.warps * 256
        each = self.shared(columns, size) + swapped + _SHARED_PER_BLOCK
        return max(1, min(wanted, _SHARED // each)) if self.stages else wanted


@dataclass(frozen=True)
class TilePlan:
    """How blocks share out a wide table that lies by columns.

    Attributes
    ----------
    rows : int
        Rows of a tile.
    warps, resident : int
        Warps of a block, blocks that a multiprocessor should hold.
    groups : int
        Groups of a warp's lanes, each of which scores columns of its own.
    sharing : int
        Lanes that share a column when it is summed.
    stages : int
        Tiles that shared memory has room for.
    """

    rows: int
    warps: int
    resident: int
    groups: int = 1
    sharing: int = 4
    stages: int = 1
    teams: int = 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.warps * 32

    def held(self, columns: int) -> int:
        """Columns of a warp."""
        abreast = self.warps * self.groups
        return -(-columns // abreast) * self.groups

    def parts(self, columns: int) -> int:
        """Parts of a tile's columns, each of which is asked for when it has been summed."""
        turns = -(-self.held(columns) * self.sharing // 32)
        return 2 if self.stages == 1 and turns >= 4 else 1

    def shared(self, columns: int, size: int) -> int:
        """Bytes of shared memory that a block asks for, wherever its columns begin."""
        unit, own = _PIECE // size, self.rows * self.groups // 32
        sheet = (self.rows + unit) // own * (own + 1) + own + 1
        kept = (self.rows + unit) // unit * (unit + 1) * (2 if size == 2 else 1)
        of_column = self.stages * self.rows * size + (8 if size == 2 else 16)
        of_row = 9 * self.stages  # its label, and its weight where there are any
        ends = 32  # two that are even
        return (
            self.warps * (self.held(columns) * of_column + 8 * sheet)
            + 16 * kept
            + of_row * self.rows
            + ends
        )

    def blocks(self, columns: int, size: int) -> int:
        """Blocks that a multiprocessor should hold."""
        each = self.shared(columns, size) + _SHARED_PER_BLOCK
        return max(1, min(self.resident, _SHARED // each))


@dataclass(frozen=True)
class TurnedPlan:
    """How warps share out a table by rows that they go over twice, first by rows, then by columns.

    Attributes
    ----------
    tile : int
        Rows that a warp holds in shared memory.
    stages : int
        Tiles that a warp has room for.
    resident : int
        Blocks that a multiprocessor should hold.
    per_lane : int
        Rows that a lane scores.
    together : int
        Turns of a loop over rows that are summed together.
    taken : int
        Bytes that a lane reads at once to sum columns; 0 where each lane sums rows of its own, and
        has read them already.
    teams : int
        Warps of a block, each of which is a team of its own.
    left : int
        The last columns, which each lane sums over the rows that it has scored.
    adjacent : bool
        Whether the rows of a lane lie side by side, so that it reads several at once.
    """

    tile: int
    stages: int
    resident: int
    per_lane: int = 1
    together: int = 4
    taken: int = 0
    teams: int = 4
    left: int = 0
    adjacent: bool = False
    warps: int = 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.teams * 32

    @property
    def rows(self) -> int:
        """Rows that a block works on at once."""
        return self.tile * self.teams

    def shared(self, columns: int, size: int) -> int:
        """Bytes of shared memory that a block asks for."""
        row = columns * size
        if row % _PIECE == 0:
            stage = self.tile * (row // _PIECE | 1) * _PIECE
        else:
            stage = (-(-self.tile * row // _PIECE) + 1) * _PIECE
        slopes = (columns + 1) // 2 * 16
        if self.adjacent:
            stage = self.tile * row
        each = self.stages * stage + self.tile * 16
        return 32 + slopes + self.teams * each

    def blocks(self, columns: int, size: int) -> int:
        """Blocks that a multiprocessor should hold."""
        each = self.shared(columns, size) + _SHARED_PER_BLOCK
        return max(1, min(self.resident, _SHARED // each))


#: The most columns, and the plan for tables by rows of no more, by the size of an entry: first
#: lanes that sum rows of their own, then those that sum columns.
_ALONE = {
    2: (
        (3, None),
        (7, TurnedPlan(128, 3, 4, 4)),
        (8, TurnedPlan(128, 3, 3, 4)),
        (11, TurnedPlan(64, 2, 4, 2)),
        (12, TurnedPlan(64, 2, 3, 2)),
        (17, TurnedPlan(64, 3, 3, 2)),
        (24, TurnedPlan(32, 2, 3)),
        (32, TurnedPlan(32, 4, 2)),
    ),
    4: ((65, None),),
}
#: The same of entries of 16 bits that lie by columns: where a lane reads one row, of which none is
#: copied to shared memory, and where it may read four side by side, or two of so many columns.
_ALONE_BY_COLUMN = (
    (3, None),
    (6, TurnedPlan(128, 1, 4, 4)),
    (11, TurnedPlan(64, 1, 4, 2)),
    (20, TurnedPlan(64, 1, 2, 2)),
    (24, None),
    (32, TurnedPlan(32, 1, 2)),
)
_ADJACENT = (
    (3, None),
    (5, TurnedPlan(128, 1, 4, 4)),
    (13, TurnedPlan(128, 2, 3, 4, adjacent=True)),
    (32, TurnedPlan(128, 2, 2, 4, adjacent=True)),
    (36, TurnedPlan(64, 2, 2, 2, adjacent=True)),
)
_ENOUGH_FOR_TWO = 13
_TURNED = {
    2: (
        (63, TurnedPlan(64, 2, 5, 2, 8)),
        (132, TurnedPlan(32, 2, 5, 1, 8)),
        (320, TurnedPlan(32, 1, 4)),
        (500, TurnedPlan(16, 1, 5)),
        (800, TurnedPlan(16, 1, 2, 1, 2)),
        (1024, TurnedPlan(8, 1, 3, 1, 2)),
    ),
    4: (
        (104, TurnedPlan(32, 2, 2)),
        (208, TurnedPlan(16, 2, 2)),
        (320, TurnedPlan(8, 1, 4, 1, 2)),
    ),
}
#: Entries of 16 bits whose columns the lanes share evenly, several side by side for each.
_SIDE_BY_SIDE = {512: TurnedPlan(16, 1, 2, 1, 2, 8), 1024: TurnedPlan(16, 1, 1, 1, 4, 8)}
#: The most columns that are left to the lanes that score rows where others sum one each, by the
#: size of an entry.
_MOST_LEFT = {2: 23, 4: 0}
#: The share of the lanes that must have a column to sum.
_BUSY = {2: 0.65, 4: 0.75}


def read_at_once(columns: int, size: int) -> int:
    """Bytes of a row that can be read at once, wherever the row begins in a dense table."""
    row = columns * size
    return min(_PIECE, row & -row)


def turned_plan_for(columns: int, size: int, by_column: bool, beside: int = 1) -> TurnedPlan | None:
    """Return a plan for warps that go over rows twice, None where others take less time.

    ``beside`` is how many rows side by side of a table by columns may be read at once.
    """
    by_row = _ALONE.get(size, ())
    adjacent = beside >= 4 or (beside == 2 and columns >= _ENOUGH_FOR_TWO)
    of_columns = (_ADJACENT if adjacent else _ALONE_BY_COLUMN) if size == 2 else ()
    for most, alone in of_columns if by_column else by_row:
        if columns <= most:
            if alone is None or not alone.adjacent:
                return alone
            rows = min(alone.per_lane, beside)
            return replace(alone, per_lane=rows, tile=32 * rows)
    if size == 2 and not by_column and columns in _SIDE_BY_SIDE:
        return _SIDE_BY_SIDE[columns]
    for most, plan in () if by_column else _TURNED.get(size, ()):
        if columns <= most:
            busy, taken, left = _take(columns, size)
            return replace(plan, taken=taken, left=left) if busy >= _BUSY[size] else None
    return None


def _take(columns: int, size: int) -> tuple[float, int, int]:
    """Return the largest share of lanes with a column to sum, and the bytes to take for it.

    The third number is that of the last columns, which lanes sum that have scored the rows: to sum
    one takes about a quarter of a turn of its own.
    """
    found, taken = (0.0, 0, 0), size
    turns, left = columns // 32, columns % 32
    if left and turns and left <= _MOST_LEFT[size] // turns:
        found = 1.0 - left / (4 * columns), -size, left
    while taken <= read_at_once(columns, size):
        takes = columns * size // taken
        busy = 32 // takes * takes / 32 if takes <= 16 else takes / (-(-takes // 32) * 32)
        found = max(found, (busy, -taken, 0))
        taken *= 2
    return found[0], -found[1], found[2]


#: The most columns, and the plan for tables by columns of no more, by the size of an entry.
_TILES = {
    4: (
        (90, TilePlan(128, 8, 2, 1, 32, 2)),
        (130, TilePlan(128, 8, 3, 1, 16)),
        (230, TilePlan(64, 8, 2, 1, 16)),
        (350, TilePlan(64, 8, 2, 2, 8)),
        (720, TilePlan(64, 16, 1, 1, 8)),
        (1024, TilePlan(32, 16, 1, 2, 2)),
    ),
    2: (
        (48, TilePlan(256, 8, 3, 1, 32, 2)),
        (72, TilePlan(256, 8, 2, 1, 32, 2)),
        (90, TilePlan(256, 8, 3, 1, 16)),
        (112, TilePlan(256, 8, 2, 1, 32)),
        (144, TilePlan(256, 8, 2, 1, 16)),
        (176, TilePlan(128, 8, 2, 1, 16, 2)),
        (208, TilePlan(128, 8, 2, 1, 16)),
        (275, TilePlan(128, 8, 2, 1, 8)),
        (350, TilePlan(128, 8, 2, 1, 4)),
        (460, TilePlan(64, 8, 2, 2, 8)),
        (680, TilePlan(64, 8, 2, 2, 4)),
        (900, TilePlan(64, 16, 1, 4, 8)),
        (1024, TilePlan(64, 16, 1, 2, 4)),
    ),
}
#: Columns up to which rows in registers take less time, by the size of an entry; fewer of 16 bits,
#: where a lane cannot read several rows side by side.
_FEW_FOR_TILES = {2: 36, 4: 50}
_FEW_READ_SINGLY = 32
#: Columns that lanes of a table by columns share without any left over.
_EVEN = 20


def tile_plan_for(columns: int, size: int, by_column: bool, beside: int = 1) -> TilePlan | None:
    """Return a plan for tiles in shared memory, None where rows in registers take less time.

    ``beside`` is how many rows side by side may be read at once.
    """
    if not by_column or size == 8:
        return None
    if columns <= (_FEW_READ_SINGLY if size == 2 and beside == 1 else _FEW_FOR_TILES[size]):
        return None
    for most, plan in _TILES[size]:
        if columns <= most:
            return plan
    raise ValueError(f"{columns} columns; expected at most 1,024.")


def plan_for(columns: int, size: int, by_column: bool) -> Plan:
    """Return a plan for entries of ``size`` bytes, in a table that lies by rows or by columns.

    The numbers are the best of about a hundred for each of eleven widths.
    """
    if by_column and columns > _NARROW_BY_COLUMN[size]:
        return _plan_by_column(columns, size)
    if columns <= _NARROW and size < 8 and (by_column or size == 2):
        batch = max(1, min(4, 20 // columns))
        ahead = size == 4 or not by_column or columns > 2
        resident = _RESIDENT_WIDE if columns > 4 else _RESIDENT
        return Plan(1, columns, 1, _WARPS, batch, resident if ahead else _RESIDENT, ahead)
    if by_column and size <= 4:
        return Plan(1, columns, 1, _WARPS, size // 2, _RESIDENT_WIDE, size == 2)
    if by_column and columns <= 16:
        return Plan(1, columns, 1, _WARPS, max(1, min(8, 20 // columns)))
    return _plan_by_row(columns, size) if size <= 4 else _plan_of_doubles(columns)


def _plan_by_column(columns: int, size: int) -> Plan:
    """Neighbouring lanes read neighbouring rows; fewer rows where there are many columns."""
    if size == 8 or (size == 2 and columns > 250):
        lanes = 2 if columns <= 512 else 4
        warps = -(-columns // ((10 if columns <= 128 else 16) * lanes))
        slots = -(-columns // (lanes * warps))
        return Plan(lanes, slots, warps, 1, 1 if size * slots > 64 else 2)
    if 44 < columns <= 220 and columns % _EVEN == 0:
        lanes, slots = (4, 5) if size == 4 else (2, 10)
        batch = 4 if size == 4 else 2
        return Plan(lanes, slots, columns // (lanes * slots), 1, batch, _RESIDENT_WIDE, True)
    lanes, share, batch = (1, 11, 2) if columns <= 80 else (4, 22, 4)
    if columns > 250:
        lanes, share, batch = (2, 30, 1) if columns <= 400 else (4, 64, 1)
    warps = -(-columns // share)
    return Plan(lanes, -(-columns // (lanes * warps)), warps, 1, batch, _RESIDENT_WIDE, True)


def _plan_by_row(columns: int, size: int) -> Plan:
    """A few lanes per row, or a warp, or several."""
    together = _lanes_for(columns, 7)
    slots = -(-columns // together)
    if together > 1 and slots * together > 1.15 * columns and columns <= 9 * (together // 2):
        together //= 2  # or too many of the lanes have nothing to do
    together = min(together, 128)  # warps that share a row
    slots = -(-columns // together)
    lanes, warps = min(32, together), max(1, together // 32)
    if together >= 64:  # several warps that share a row wait for each other, but not for memory
        batch = 8 if slots <= 5 else 4
        return Plan(lanes, slots, warps, 1, batch, _RESIDENT_WIDE, False, _STAGES)
    if slots > 7:
        few = together == 2
        return Plan(lanes, slots, 1, _WARPS, 2 if few else 4, _RESIDENT_WIDE, few)
    batch = 8 if (slots <= 4 and together >= 8) or (slots == 5 and 4 <= together < 32) else 4
    if size == 2 and slots == 4 and together >= 8:
        return Plan(lanes, slots, 1, _WARPS, batch, _RESIDENT_WIDE, False, _STAGES)
    ahead = slots * batch <= 20 or together == 32
    resident = _RESIDENT_WIDE if (ahead and columns > _NARROW) or slots == 5 else _RESIDENT
    return Plan(lanes, slots, 1, _WARPS, batch, resident, ahead)


def _plan_of_doubles(columns: int) -> Plan:
    together = _lanes_for(columns, 7)
    lanes, warps = min(32, together), max(1, together // 32)
    return Plan(lanes, -(-columns // together), warps, _WARPS if warps == 1 else 1, 4)


def _lanes_for(columns: int, most: int) -> int:
    """The smallest power of two of lanes that take at most so many columns each."""
    together = 1
    while -(-columns // together) > most:
        together *= 2
    return together
