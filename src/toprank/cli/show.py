"""`toprank show`: the card of a model."""

from __future__ import annotations

from toprank.cli.options import Json, Model
from toprank.cli.terminal import print_json


def show(model: Model, as_json: Json = False) -> None:
    """Show what a model is: how it was made, from what, and how good it was.

    Nothing of the model is run. The card also names the columns that a table must have.
    """
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.cards import columns_of, show_card
    from toprank.cli.scoring import load_model

    loaded = load_model(model)
    if as_json:
        print_json({"file": str(model), **loaded.card, "schema": columns_of(loaded)})
    else:
        show_card(loaded, model)
