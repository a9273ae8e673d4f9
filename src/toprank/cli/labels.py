"""Which value of the target belongs at the top."""

from __future__ import annotations

from typing import Any

import numpy as np
import typer

from toprank.cli.failures import Failure
from toprank.cli.terminal import can_ask, safe
from toprank.models import ModelError, Target, frames, kinds


def settle_positive(rows: Any, target: str, given: str | None) -> str | None:
    """The value that belongs at the top; asked for only where it is not plain."""
    values = frames.column(rows, target)
    try:
        return Target.learn(target, values, given).positive
    except ModelError:
        if given is not None or np.any(kinds.missing(values)):
            raise
        words = _two_words(values)
        if not words:
            raise
    first, second = words
    if not can_ask():
        raise Failure(
            f"'{target}' is '{first}' or '{second}', and it is not plain which belongs at the top: "
            f"add --positive '{first}' or --positive '{second}'."
        )
    question = f"Which belongs at the top of '{safe(target)}': '{safe(first)}' or '{safe(second)}'?"
    while (answer := typer.prompt(question, err=True)) not in words:
        pass
    return str(answer)


def _two_words(values: Any) -> list[str]:
    """The two values as words; none if they are more, fewer, or no words."""
    try:
        words = sorted(set(kinds.as_words(values).tolist()))
    except kinds.Unreadable:
        return []
    return words if len(words) == 2 else []
