"""`toprank bounds`: what the theorems say about a sample of this size."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from toprank.cli.options import Json, parse_numbers
from toprank.cli.terminal import Failure, print_json

if TYPE_CHECKING:
    from toprank._arrays import JsonObject
    from toprank.bounds import Bound


def bounds(
    positives: Annotated[float, typer.Option(min=1, help="Number of positives.")],
    negatives: Annotated[float, typer.Option(min=1, help="Number of negatives.")],
    features: Annotated[int, typer.Option(min=1, help="Number of features of a linear score.")],
    ps: Annotated[str, typer.Option("--ps", help="Powers of the push, with commas.")] = "1,2,4,8",
    theta: Annotated[float, typer.Option(help="Margin of the risk on the sample.")] = 0.1,
    epsilon: Annotated[
        float, typer.Option(help="Excess of the risk that the sample size is asked for.")
    ] = 0.1,
    probability: Annotated[
        float, typer.Option(help="Probability with which the statement may fail.")
    ] = 0.05,
    r_min: Annotated[
        float, typer.Option(min=0, max=1, help="Least true risk of any score (Theorem 3).")
    ] = 0.0,
    coef_norm: Annotated[
        float, typer.Option(help="Largest norm of the coefficients (sum of absolute values).")
    ] = 1.0,
    row_norm: Annotated[
        float, typer.Option(help="Largest absolute entry of any row that can occur.")
    ] = 1.0,
    as_json: Json = False,
) -> None:
    """Say what the theorems guarantee for a linear push on a sample of this size.

    For each p: by how much the true risk can exceed the one on the sample, and how many rows it
    takes to keep the excess small (Rudin 2009, Theorem 2; with --r-min Theorem 3). At usual sizes
    the theorems say nothing for large p, and the table says so; `toprank choose-p` looks at the
    data instead.
    """
    # the library is loaded here, because --help need not wait for it
    from toprank.bounds import LinearClass, pnorm_push, pnorm_push_sample_size

    powers = parse_numbers(ps, "--ps")
    if not powers:
        raise Failure("--ps: no power was given.")
    cover = LinearClass(features, coef_norm, row_norm)
    share = positives / (positives + negatives)
    excess = partial(
        pnorm_push,
        theta=theta,
        probability=probability,
        n_pos=positives,
        n_neg=negatives,
        log_covering_number=cover,
        r_min=r_min,
    )
    rows = partial(
        pnorm_push_sample_size,
        theta=theta,
        epsilon=epsilon,
        probability=probability,
        prevalence=share,
        log_covering_number=cover,
        r_min=r_min,
    )
    found = [(p, excess(p=p), rows(p=p)) for p in powers]
    if as_json:
        print_json([_bound_as_dict(*line) for line in found])
        return
    _show_bounds(Console(), found, positives, negatives, epsilon, probability)


def _bound_as_dict(p: float, excess: Bound, rows: Bound) -> JsonObject:
    return {
        "p": p,
        "excess": excess.value,
        "vacuous": bool(excess.vacuous),
        "statement": excess.statement,
        "assumes": list(excess.assumes),
        "rows_needed": rows.value,
    }


def _show_bounds(
    console: Console,
    found: list[tuple[float, Bound, Bound]],
    positives: float,
    negatives: float,
    epsilon: float,
    probability: float,
) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("p", justify="right")
    table.add_column("true risk exceeds the sample's by at most", justify="right")
    table.add_column("", no_wrap=True)
    table.add_column(f"rows needed for {epsilon:g}", justify="right")
    for p, excess, rows in found:
        says = "says nothing" if excess.vacuous else "informative"
        needed = f"{rows.value:,.0f}" if rows.value < 1e15 else f"{rows.value:.2g}"
        table.add_row(f"{p:g}", f"{excess.value:.3g}", says, needed)
    console.print(
        f"\n{positives:g} positives and {negatives:g} negatives; each statement may fail with "
        f"probability {probability:g}.",
        highlight=False,
    )
    console.print(table)
    informative = [p for p, excess, _ in found if not excess.vacuous]
    verdict = (
        f"The theorem is informative up to p = {max(informative):g} at this sample size."
        if informative
        else "At this sample size the theorem says nothing for any of these p."
    )
    console.print(verdict, style="bold", highlight=False)
    console.print("Assumes: " + "; ".join(found[0][1].assumes) + ".", style="dim", highlight=False)
