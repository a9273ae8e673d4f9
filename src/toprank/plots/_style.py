"""Lines that are told apart by the colour-blind, and in black and white."""

from __future__ import annotations

from typing import Any

# Okabe and Ito's palette without its yellow and sky blue, which are too pale for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00")
DASHES: tuple[Any, ...] = (
    "-",
    (0, (6, 2)),
    (0, (6, 2, 1, 2)),
    (0, (1.5, 1.5)),
    (0, (3, 1.5, 1, 1.5, 1, 1.5)),
    (0, (10, 3)),
    (0, (3, 3)),
)


def style(index: int) -> dict[str, Any]:
    """Colour and dashes of the curve of this number; they repeat together after 42 curves."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": DASHES[index % len(DASHES)],
        "linewidth": 1.8,
    }


def marked(ax: Any, gid: str) -> list[Any]:
    """The lines and patches of the axes that a display has drawn under this mark."""
    return [artist for artist in (*ax.lines, *ax.patches) if artist.get_gid() == gid]
