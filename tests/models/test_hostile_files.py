"""Files that are no models, were damaged, or were made to harm: refused, and nothing is run."""

import copy
import hashlib
import io
import json
import os
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from toprank.models import ModelError, load
from toprank.models.storage import to_bytes


@pytest.fixture(scope="module")
def good(fitted):
    return to_bytes(fitted("pnorm"))


@pytest.fixture
def refused(tmp_path):
    """Load bytes as a file, expect a ModelError, and return its message."""

    def read(data, **kwargs):
        path = tmp_path / "model"
        path.write_bytes(data)
        with pytest.raises(ModelError) as caught:
            load(path, **kwargs)
        assert str(path) in str(caught.value)
        return str(caught.value)

    return read


def sealed(members, extra=()):
    """An archive of the given members with a checksum that is right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in [*members.items(), *extra]:
            archive.writestr(name, content)
        archive.comment = b"toprank model sha256:" + b"0" * 64
    data = buffer.getvalue()[:-64]
    return data + hashlib.sha256(data).hexdigest().encode()


def members_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


class Harm:
    """A pickle that would leave a file behind if it were opened."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def with_payload(good, change):
    """The model with its skops payload's tree changed, and the checksum made right again."""
    members = members_of(good)
    inner = members_of(members["payload.skops"])
    inner["schema.json"] = json.dumps(change(json.loads(inner["schema.json"]))).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in inner.items():
            archive.writestr(name, content)
    return sealed({**members, "payload.skops": buffer.getvalue()})


def test_a_file_made_by_the_helper_of_these_tests_loads(good, tmp_path, fitted, table):
    (tmp_path / "m").write_bytes(with_payload(good, lambda tree: tree))
    assert np.array_equal(load(tmp_path / "m").score(table), fitted("pnorm").score(table))


def test_a_pickle_by_another_name_is_not_opened(refused, tmp_path):
    assert "not a toprank model" in refused(pickle.dumps(Harm(tmp_path / "harmed")))
    assert not (tmp_path / "harmed").exists()


def test_a_pickle_inside_the_archive_is_not_opened(good, refused, tmp_path):
    members = members_of(good)
    refused(sealed({**members, "payload.skops": pickle.dumps(Harm(tmp_path / "harmed"))}))
    assert not (tmp_path / "harmed").exists()


def test_a_foreign_type_in_the_payload_is_named_and_refused(good, refused, tmp_path):
    skops = pytest.importorskip("skops.io")
    harm = Harm(tmp_path / "harmed")
    harmful = sealed({**members_of(good), "payload.skops": skops.dumps({"ranker": harm})})
    message = refused(harmful)
    assert "Harm" in message or "posix.system" in message
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize(
    ("loader", "module", "name"),
    [
        ("ObjectNode", "os", "system"),
        ("ReduceNode", "posix", "system"),
        ("FunctionNode", "os", "system"),
        ("MethodNode", "builtins", "function"),
        ("PartialNode", "functools", "partial"),
        ("OperatorFuncNode", "operator", "methodcaller"),
        ("TypeNode", "subprocess", "Popen"),
        ("ObjectNode", "sklearn.pipeline", "Pipeline"),
        ("ObjectNode", "sklearn.preprocessing._function_transformer", "FunctionTransformer"),
        ("JsonNode", "os", "system"),
        ("NoSuchNode", "builtins", "dict"),
        ("TreeNode", "sklearn.tree._tree", "Tree"),
    ],
)
def test_any_node_off_the_list_is_refused_by_name(good, refused, loader, module, name):
    def change(tree):
        deep = {"__class__": name, "__module__": module, "__loader__": loader, "content": {}}
        tree["content"]["ranker"]["content"]["content"]["hidden"] = [{"x": deep}]
        return tree

    assert f"{module}.{name}" in refused(with_payload(good, change))


def test_a_type_cannot_hide_behind_the_name_of_another_kind_of_node(good, refused):
    def change(tree):
        tree["content"]["centre"]["__class__"] = "list"
        return tree

    assert "numpy.list" in refused(with_payload(good, change))


@pytest.mark.parametrize("tenth", range(10))
def test_a_file_cut_short_is_refused(good, refused, tenth):
    refused(good[: tenth * len(good) // 10])
    refused(good[: len(good) - 1 - tenth])


def test_every_flipped_byte_is_noticed(good, refused):
    rng = np.random.default_rng(0)
    places = [0, 1, len(good) - 1, len(good) - 70, *rng.integers(0, len(good), 40).tolist()]
    for place in places:
        damaged = bytearray(good)
        damaged[place] ^= 1 << int(rng.integers(8))
        refused(bytes(damaged))


def test_bytes_put_before_or_after_are_noticed(good, refused):
    refused(good + b"\0")
    refused(b"PK" + good)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [50, 100])
def test_a_zip_bomb_is_refused_before_it_is_unpacked(good, refused, size):
    bomb = {**members_of(good), "card.json": b" " * (size << 20)}
    assert "would unpack to" in refused(sealed(bomb), most_bytes=40 << 20)


def test_a_bomb_inside_the_payload_is_refused_before_it_is_unpacked(good, refused):
    members = members_of(good)
    buffer = io.BytesIO(members["payload.skops"])
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.npy", b"\0" * (60 << 20))
    harmful = sealed({**members, "payload.skops": buffer.getvalue()})
    assert "would unpack to" in refused(harmful, most_bytes=40 << 20)


def test_a_file_that_is_too_large_is_not_even_read(good, refused):
    assert "more than the 10 allowed" in refused(good, most_bytes=10)


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/passwd", "a/../../b", "trees-x", "trees-00000", "C:\\x", "extra"]
)
def test_strange_names_in_the_archive_are_refused(good, refused, name):
    assert "the archive holds" in refused(sealed(members_of(good), [(name, b"x")]))


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_a_name_twice_in_the_archive_is_refused(good, refused):
    assert "twice" in refused(sealed(members_of(good), [("card.json", b"{}")]))


@pytest.mark.parametrize("lacking", ["card.json", "schema.json", "payload.skops", "toprank.json"])
def test_a_lacking_part_is_named(good, refused, lacking):
    members = members_of(good)
    del members[lacking]
    assert repr(lacking) in refused(sealed(members))


WRONG = (b"", b"[]", b"null", b"[" * 100_000, b"\xff")


@pytest.mark.parametrize(
    ("part", "content"),
    [
        *[
            (part, wrong)
            for part in ("card.json", "schema.json", "toprank.json")
            for wrong in WRONG
        ],
        ("schema.json", b'{"columns": [], "values": {}}'),
        ("toprank.json", b'{"format": "1"}'),
        ("toprank.json", b'{"format": 1}'),
    ],
)
def test_parts_that_are_not_what_they_should_be_are_refused(good, refused, part, content):
    refused(sealed({**members_of(good), part: content}))


def test_parts_of_two_models_do_not_mix(good, refused, fitted, full_model):
    other = members_of(to_bytes(full_model))
    refused(sealed({**members_of(good), "trees-0": b"tree\n"}))
    mixed = {**members_of(good), "payload.skops": other["payload.skops"]}
    assert "belong to different models" in refused(sealed(mixed))
    own = fitted("pnorm")
    ranker = copy.copy(own.ranker)
    ranker._slope = np.ones((2, 1))  # of probabilities in another shape
    assert "belong to different models" in refused(to_bytes(replace(own, ranker=ranker)))


def test_trees_that_are_none_are_refused(fitted, refused):
    members = members_of(to_bytes(fitted("trees")))
    refused(sealed({**members, "trees-0": b"no trees at all"}))
    del members["trees-0"]
    assert "lacks the trees" in refused(sealed(members))


def test_trees_cannot_start_from_a_file_of_the_readers_disk(fitted, refused):
    def change(tree):
        state = tree["content"]["ranker"]["content"]["content"]
        name = {"content": json.dumps("/etc/passwd"), "__id__": 1}
        state["init_model_"] = {**state["init_model_"], **name}
        return tree

    assert "its parts have other types" in refused(with_payload(to_bytes(fitted("trees")), change))


SAVED = Path(__file__).parent / "saved" / "0.1.0" / "pnorm.toprank"


@pytest.mark.parametrize(
    ("setting", "value"), [("input", "filename"), ("analyzer", "word"), ("analyzer", "char")]
)
def test_texts_of_a_table_are_never_taken_for_names_of_files(refused, setting, value):
    """Files of older formats hold a vectoriser, which could open files or search by patterns."""

    def change(tree):
        stack = [tree]
        while stack:
            node = stack.pop()
            if isinstance(node, dict):
                if node.get("__class__") == "TfidfVectorizer":
                    node["content"]["content"][setting] |= {"content": json.dumps(value)}
                    node["content"]["content"][setting].pop("__id__")
                stack.extend(node.values())
            elif isinstance(node, list):
                stack.extend(node)
        return tree

    assert "would open the files" in refused(with_payload(SAVED.read_bytes(), change))


def test_models_of_this_version_hold_nothing_that_reads_texts_by_settings(full_model):
    held = members_of(members_of(to_bytes(full_model))["payload.skops"])["schema.json"].decode()
    assert "TextEncoder" in held
    assert "Vectorizer" not in held and "skrub" not in held


def test_a_model_of_parts_that_files_may_not_hold_is_not_saved(fitted, tmp_path):
    from dataclasses import replace

    from sklearn.linear_model import LogisticRegression

    odd = replace(fitted("pnorm"), ranker=LogisticRegression())
    with pytest.raises(ModelError, match=r"cannot be saved: it holds sklearn\.linear_model"):
        odd.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x03\x04", b"hello", b"\0" * 1000])
def test_files_that_are_no_models_say_so(refused, content):
    assert "not a toprank model" in refused(content)


def test_a_file_that_is_not_there_is_a_model_error(tmp_path):
    with pytest.raises(ModelError, match="could not be read"):
        load(tmp_path / "nothing")
    with pytest.raises(ModelError, match="could not be read"):
        load(tmp_path)
