"""Files of every older format are brought to the present one, step by step."""

import json
from pathlib import Path

import numpy as np
import pytest

from toprank.models import ModelError, archive, load, migration

SAVED = Path(__file__).parent / "saved" / "0.1.0"
NOW = archive.FORMAT


def test_every_older_format_has_its_step():
    assert set(migration.STEPS) == set(range(1, archive.FORMAT))


@pytest.fixture
def two_formats_ago(monkeypatch, fitted, tmp_path):
    """A model of this version, read by one that has changed the format twice."""
    path = tmp_path / "old"
    fitted("pnorm").save(path)
    taken = []

    def step(number):
        def take(members):
            taken.append(number)
            card = json.loads(members["card.json"])
            card["notes"] = [*card.get("notes", []), f"from format {number}"]
            members["card.json"] = json.dumps(card).encode()
            return members

        return take

    monkeypatch.setattr(archive, "FORMAT", NOW + 2)
    monkeypatch.setattr(migration, "STEPS", {NOW: step(NOW), NOW + 1: step(NOW + 1)})
    return path, taken


def test_an_old_file_goes_through_every_step_in_order(two_formats_ago, fitted, table):
    path, taken = two_formats_ago
    model = load(path)
    assert taken == [NOW, NOW + 1]
    assert model.card["notes"] == [f"from format {NOW}", f"from format {NOW + 1}"]
    np.testing.assert_array_equal(model.score(table), fitted("pnorm").score(table))


def test_a_migrated_model_is_saved_in_the_present_format(two_formats_ago, tmp_path):
    path, taken = two_formats_ago
    load(path).save(tmp_path / "new")
    del taken[:]
    notes = load(tmp_path / "new").card["notes"]
    assert notes == [f"from format {NOW}", f"from format {NOW + 1}"]
    assert taken == []


def test_a_step_may_make_a_member_that_older_files_lack(monkeypatch, fitted, tmp_path):
    fitted("pnorm").save(tmp_path / "m")
    monkeypatch.setattr(archive, "MEMBERS", archive.MEMBERS | {"limits.json"})
    with pytest.raises(ModelError, match=r"lacks 'limits.json'"):
        load(tmp_path / "m")
    monkeypatch.setattr(archive, "FORMAT", NOW + 1)
    monkeypatch.setattr(
        migration, "STEPS", {NOW: lambda members: {**members, "limits.json": b"{}"}}
    )
    load(tmp_path / "m")


def test_the_committed_files_are_of_the_first_format():
    saved = list(SAVED.glob("*.toprank"))
    assert saved
    for path in saved:
        members = archive.read_members(path.read_bytes(), archive.MOST_BYTES)
        assert json.loads(members["toprank.json"])["format"] == 1
