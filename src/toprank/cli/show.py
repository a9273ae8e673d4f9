"""`toprank show`: the card of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from toprank.cli.io.tables import check_exists
from toprank.cli.options import Json, Model
from toprank.cli.terminal import cells, console, names, print_json, safe, short_number, table

if TYPE_CHECKING:
    from toprank._arrays import JsonObject
    from toprank.models import TableModel
    from toprank.models.read_card import CardFile

_MOST_COLUMNS = 30


def show(model: Model, as_json: Json = False) -> None:
    """Show what a model is: how it was made, from what, and how good it was.

    Nothing of the model is run. The card also names the columns that a table must have.
    """
    # the library is loaded here, because --help need not wait for it
    from toprank.models.read_card import read_card, readable_card

    check_exists(model)
    loaded = read_card(model)
    if as_json:
        print_json(
            {"file": str(model), **readable_card(loaded.card), "schema": schema_as_dict(loaded)}
        )
    else:
        show_card(loaded, model)


def schema_as_dict(model: TableModel | CardFile) -> JsonObject:
    """The columns that a table must have, and those with other roles in training."""
    schema = model.schema
    return {
        "columns": {column.name: column.kind for column in schema.columns},
        "roles": schema.roles,
        "left_out": schema.left_out,
    }


def show_card(model: TableModel | CardFile, path: Path) -> None:
    """Print the card of a model."""
    from toprank.models.read_card import describe_ranker

    screen, card = console(), model.card
    training, target = card["training"], model.target
    screen.print(
        f"\n{safe(path)}: {safe(describe_ranker(card))}{_strength_text(card)}. It puts "
        f"{safe(target.column)} = {safe(target.positive)} at the top.",
        style="bold",
        soft_wrap=True,
    )
    screen.print(
        f"Made {safe(card['made'])} from {training['rows']:d} rows, {training['positives']:d} "
        f"of them positive, by toprank {safe(card['versions'].get('toprank', ''))}."
    )
    if training.get("sample"):
        fitted, sample = training.get("fitted_to"), training["sample"]
        screen.print(
            f"Fitted to {safe(fitted)} of them; chosen and measured on a sample of {safe(sample)}."
        )
    if card.get("choice"):
        screen.print(safe(card["choice"].splitlines()[-1]))
    _show_members(screen, card.get("members"))
    _show_columns(screen, model)
    _show_metrics(screen, card["metrics"])
    for text in card.get("warnings", ()):
        screen.print(f"Note: {safe(text)}", style="dim")


def _strength_text(card: JsonObject) -> str:
    return "" if card.get("p") is None else f" (p = {short_number(card['p'])})"


def _show_members(screen: Console, members: object) -> None:
    """What each member of an ensemble brings; a file may hold anything here."""
    rows = [row for row in members if isinstance(row, dict)] if isinstance(members, list) else []
    if not rows:
        return
    numbers = {"weight": "weight", "score": "alone", "loss_without": "loss without it"}
    numbers["seconds"] = "seconds"
    drawn = table(["member", *numbers.values(), "note"], left=["member", "note"])
    for row in rows:
        found = [row.get(name) for name in numbers]
        texts = [short_number(v) if isinstance(v, int | float) else "" for v in found]
        drawn.add_row(*cells(str(row.get("name", "")), *texts, str(row.get("note", ""))))
    screen.print(drawn)


def _show_columns(screen: Console, model: TableModel | CardFile) -> None:
    weights = model.card.get("importances", {})
    ordered = sorted(model.schema.columns, key=lambda column: -weights.get(column.name, 0.0))
    drawn = table(["column", "kind", "moves the score by"], left=["column", "kind"])
    for column in ordered[:_MOST_COLUMNS]:
        drawn.add_row(*cells(column.name, column.kind, short_number(weights.get(column.name, 0.0))))
    screen.print(drawn)
    if len(ordered) > _MOST_COLUMNS:
        screen.print(f"... and {len(ordered) - _MOST_COLUMNS} more columns", style="dim")
    left_out = [f"{name} ({why})" for name, why in model.schema.left_out.items()]
    if left_out:
        screen.print(f"Left out: {safe(names(left_out))}.", style="dim")


def _show_metrics(screen: Console, metrics: JsonObject) -> None:
    drawn = table(["metric", "value", "95% interval"], left=["metric", "95% interval"])
    for one in metrics["intervals"]:
        span = f"{short_number(one['low'])} to {short_number(one['high'])}"
        drawn.add_row(*cells(one["metric"], short_number(one["estimate"]), span))
    if metrics["intervals"]:
        screen.print(drawn)
    for text in metrics["notes"]:
        screen.print(safe(text), style="dim")
    screen.print(f"Measured {safe(metrics['how'])}." if metrics["rows"] else "Not measured.")
