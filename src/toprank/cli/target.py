"""Which value of the target belongs at the top; asked of the user where it is not plain."""

from __future__ import annotations

from typing import Any

import typer

from toprank.cli.terminal import can_ask, safe
from toprank.models import ModelError, Target, frames


def learn_target(rows: Any, column: str, positive: str | None) -> Target:
    """The values of the target; the user is asked only where they do not say which is on top."""
    values = frames.column(rows, column)
    try:
        return Target.learn(column, values, positive)
    except ModelError as error:
        choices = getattr(error.__cause__, "choices", ())
        if not choices or not can_ask():
            raise
    return Target.learn(column, values, _ask(column, choices))


def _ask(column: str, choices: tuple[str, str]) -> str:
    first, second = map(safe, choices)
    question = f"Which belongs at the top of '{safe(column)}': '{first}' or '{second}'?"
    while (answer := typer.prompt(question, err=True)) not in choices:
        pass
    return str(answer)
