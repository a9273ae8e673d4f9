"""Attack on the model loader: whatever a file holds, it is a model that works, or a ModelError."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from sklearn.base import clone

from fuzz.guard import harmless
from fuzz.mutation import (
    Mutate,
    bytes_changed,
    bytes_spliced,
    json_changed,
    members_of,
    sealed,
    text_changed,
    zipped,
)
from toprank.cli import show as cards
from toprank.models import DriftWatch, ModelError, ModelWarning, fit_table
from toprank.models.loader import from_bytes
from toprank.models.storage import to_bytes

#: What archives that are none raise.
_UNREADABLE = (zipfile.BadZipFile, KeyError, ValueError, OSError, NotImplementedError, RuntimeError)
#: Models that an earlier version saved; larger ones take seconds each.
_SAVED = Path(__file__).resolve().parents[1] / "tests" / "models" / "saved" / "0.1.0"
_LARGEST_SAVED = 40_000


@cache
def table() -> pd.DataFrame:
    """Columns of every kind, with gaps."""
    rng, n = np.random.default_rng(0), 80
    words = ["quick", "slow", "red", "blue", "house", "garden", "cat", "dog"]
    frame = pd.DataFrame(
        {
            "customer": [f"c{i:03d}" for i in range(n)],
            "age": rng.normal(40, 12, n).round(1),
            "member": rng.random(n) > 0.5,
            "city": rng.choice(["Rome", "Oslo", "Bern"], n),
            "since": np.datetime64("2024-03-01", "us") + rng.integers(0, 500, n) * 86_400_000_000,
            "note": [" ".join(rng.choice(words, 4)) + f" {i}" for i in range(n)],
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[::11, "city"] = None
    frame.loc[::9, "since"] = pd.NaT
    chance = frame.age.fillna(40) / 12 + 1.5 * (frame.city == "Rome") + rng.normal(size=n)
    frame["bought"] = np.where(chance > np.quantile(chance, 0.7), "yes", "no")
    return frame


KINDS = ("pnorm", "ir", "proper", "rankboost", "trees", "xgboost", "full", "refitted")


@cache
def model(kind: str) -> Any:
    """A model of one kind; smooth margin ranking's are large, and like RankBoost's."""
    plain = table().drop(columns=["since", "note"])
    p = {} if kind in ("ir", "proper") else {"p": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few rows have much to be warned of
        if kind == "full":
            return fit_table(table(), "bought", id="customer", **p)
        if kind == "refitted":
            return fit_table(plain, "bought", from_model=model("trees"), **p)
        if kind == "xgboost":
            other = model("trees")
            ranker = clone(other.ranker).set_params(backend="xgboost", n_estimators=4)
            return replace(other, ranker=ranker.fit(other.numbers(plain), plain.bought))
        return fit_table(plain, "bought", id="customer", model=kind, **p)


@cache
def seed(kind: str) -> bytes:
    """The file of such a model, sealed."""
    return sealed(_small(members_of(to_bytes(model(kind)))))


def seeds() -> dict[str, bytes]:
    """Files of models of every kind, made now and by an earlier version."""
    saved = {
        f"saved {file.stem}": sealed(_small(members_of(file.read_bytes())))
        for file in sorted(_SAVED.glob("*.toprank"))
        if file.stat().st_size < _LARGEST_SAVED
    }
    return {kind: seed(kind) for kind in KINDS} | saved


def _small(members: dict[str, bytes]) -> dict[str, bytes]:
    """Without the blanks of the JSON and the packing of the payload."""
    payload = zipped(members_of(members["payload.skops"]))
    return {
        name: json.dumps(json.loads(content)).encode() if name.endswith(".json") else content
        for name, content in {**members, "payload.skops": payload}.items()
    }


def attack(data: bytes) -> None:
    """Load, show and use a model; anything but a ModelError is a finding."""
    with harmless(), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ModelWarning)
        try:
            model = from_bytes(data)
        except ModelError:
            return
        _show(model)
        for use in (_score, _explain, _watch, _export):
            try:
                use(model)
            except ModelError:
                pass


def _show(model: Any) -> None:
    """As `toprank show` and a notebook do."""
    screen, cards.console = cards.console, lambda: Console(file=io.StringIO(), width=100)
    try:
        cards.show_card(model, Path("model"))
    finally:
        cards.console = screen
    json.dumps({**model.card, "schema": cards.schema_as_dict(model)}, allow_nan=False)
    assert isinstance(repr(model) + model._repr_html_(), str)


def _score(model: Any) -> None:
    rows = table().head(5)
    scores, chances = model.score(rows), model.predict_proba(rows)
    assert scores.shape == (5,) and np.all(np.isfinite(scores)), "scores that are no numbers"
    assert chances.shape == (5, 2), "probabilities of another shape"
    assert np.all((chances >= 0) & (chances <= 1)), "probabilities outside of 0 and 1"


def _explain(model: Any) -> None:
    for reasons in model.reasons(table().head(2), 2):
        assert all(np.isfinite(reason.contribution) for reason in reasons)


def _watch(model: Any) -> None:
    watch = DriftWatch(model)
    watch.add(table().head(20), model.score(table().head(20)))
    for drift in (*watch.columns(), watch.scores()):
        assert np.isfinite(drift.psi), "a drift that is no number"


def _export(model: Any) -> None:
    model.labels(table().head(3))
    model.to_sql("t")


def mutate(data: bytes, most: int, seed: int, mutate_bytes: Mutate | None = None) -> bytes:
    """Change something inside of the archive, and make the checksum right again."""
    rng = Random(seed)
    raw = mutate_bytes or (lambda old: bytes_changed(old, rng))
    try:
        members = members_of(data)
        if rng.random() < 0.03:
            return raw(data)[:most]
        name = rng.choice([*members, "payload.skops", "payload.skops"])
        members[name] = _member_changed(name, members[name], rng, raw)
        if rng.random() < 0.02:
            members[rng.choice(["trees-0", "trees-1", "x"])] = members.pop(name)
        return sealed(members)
    except _UNREADABLE:
        return raw(data)[:most]


def splice(data: bytes, other: bytes, seed: int) -> bytes:
    """A model with a member of another, or with a part of its payload."""
    rng = Random(seed)
    try:
        members, others = members_of(data), members_of(other)
        name = rng.choice([*others])
        if name == "payload.skops":
            parts = members_of(others[name])
            part = rng.choice([*parts])
            members[name] = zipped({**members_of(members[name]), part: parts[part]})
        else:
            members[name] = others[name]
        return sealed(members)
    except _UNREADABLE:
        return bytes_spliced(data, other, rng)


def _member_changed(name: str, content: bytes, rng: Random, raw: Mutate) -> bytes:
    if rng.random() < 0.1:
        return raw(content)
    if name.endswith(".json"):
        return json_changed(content, rng)
    if name.startswith("trees"):
        text = content.startswith(b"tree")
        return text_changed(content, rng) if text else bytes_changed(content, rng)
    inner = members_of(content)
    part = rng.choice([*inner, "schema.json", "schema.json"])
    change = json_changed if part.endswith(".json") else bytes_changed
    return zipped({**inner, part: change(inner[part], rng)})
