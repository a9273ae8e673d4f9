"""Discounting factors: how much less a positive counts further down (Rudin 2009, Figure 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from toprank._numerics import FloatArray
from toprank.plots._display import draw_curve, new_axes, show_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_CURVE = "toprank-discount"
#: The three factors of Figure 3, the upper curve first.
DISCOUNTS: dict[str, Callable[[FloatArray], FloatArray]] = {
    r"DCG: $1/\ln(1+z)$": lambda z: 1 / np.log1p(z),
    r"AveR: $1/z$": lambda z: 1 / z,
    r"IR Push: $-\ln(1+z)$": lambda z: -np.log1p(z),
}


class DiscountDisplay:
    r"""Discounting factors against z, the rank or the reverse height of a positive.

    DCG sums 1 / ln(1 + rank) over the positives, AveR sums 1 / rank, and the IR Push maximises
    the sum of -ln(1 + reverse height): all fall fast near the top of the list, but only the last
    makes a convex objective (Rudin 2009, Section 7 and Figure 3).

    Parameters
    ----------
    z : array-like of shape (m,)
        Ranks or reverse heights, positive and ascending.
    discounts : mapping of str to array-like of shape (m,)
        The factors at z, by their names in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the curves are.
    figure_ : matplotlib Figure
        The figure of the axes.
    lines_ : list of matplotlib Line2D
        One per factor.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from toprank.plots import DiscountDisplay
    >>> [line.get_ydata()[0].round(3).item() for line in DiscountDisplay.of_the_paper().lines_]
    [1.443, 1.0, -0.693]
    """

    def __init__(self, *, z: ArrayLike, discounts: Mapping[str, ArrayLike]) -> None:
        self.z = z
        self.discounts = discounts

    @classmethod
    def of_the_paper(
        cls, z: ArrayLike | None = None, *, ax: Axes | None = None, **kwargs: object
    ) -> Self:
        """Draw Figure 3 of Rudin (2009).

        Parameters
        ----------
        z : array-like, optional
            Ranks; by default from 1 to 20.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        DiscountDisplay
            The display, drawn.
        """
        at = np.linspace(1, 20, 191) if z is None else np.asarray(z, dtype=np.float64)
        if at.ndim != 1 or at.size == 0 or not np.all((at > 0) & np.isfinite(at)):
            raise ValueError("z must hold positive numbers, in one dimension.")
        factors = {name: factor(at) for name, factor in DISCOUNTS.items()}
        return cls(z=at, discounts=factors).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: object) -> Self:
        """Draw the factors.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **kwargs
            For matplotlib's `plot`.

        Returns
        -------
        DiscountDisplay
            The display itself.
        """
        ax = new_axes(ax)
        self.lines_ = [
            draw_curve(ax, _CURVE, self.z, factor, {"label": name} | kwargs)
            for name, factor in self.discounts.items()
        ]
        ax.axhline(0.0, color="0.45", linewidth=0.7, zorder=1)
        ax.set(xlabel="z: rank or reverse height of a positive", ylabel="Discounting factor")
        ax.grid(alpha=0.25)
        show_legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
