"""Cards and schemas written by hand are refused when a file is read; other odd inputs."""

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest

from toprank._files import replace_file
from toprank.models import ModelError, ModelWarning, fit_table
from toprank.models.loader import from_bytes
from toprank.models.read_card import read_card
from toprank.models.storage import to_bytes

HARM = "\x1b[2J"


@pytest.fixture(scope="module")
def edited(fitted):
    """A good file with one value of a JSON part replaced, and a checksum that is right."""
    with zipfile.ZipFile(io.BytesIO(to_bytes(fitted("pnorm")))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}

    def edit(part, place, value):
        content = json.loads(members[part])
        inner = content
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = value
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, data in {**members, part: json.dumps(content).encode()}.items():
                archive.writestr(name, data)
            archive.comment = b"toprank model sha256:" + b"0" * 64
        data = buffer.getvalue()[:-64]
        return data + hashlib.sha256(data).hexdigest().encode()

    return edit


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (["training", "rows"], HARM, "'training.rows' is not a count"),
        (["training"], {}, "lacks 'training.rows'"),
        (["p"], HARM, "'p' is not a number"),
        (["choice"], {"a": 1}, "'choice' is not a text"),
        (["versions"], [1], "'versions' is not a collection"),
        (["importances"], {"age": HARM}, "'importances.age' is not a number"),
        (["metrics", "intervals"], [{"metric": "auc"}], "lacks 'metrics.intervals.estimate'"),
        (["metrics", "notes"], HARM, "'metrics.notes' is not a list"),
        (["reference", "scores", "quantiles"], [0.5], "'reference.scores' is not a distribution"),
        (["reference", "columns"], {}, "describes another model"),
        (["reference", "shares", 0], 1.0, "'reference.shares' is not a distribution"),
    ],
)
def test_a_card_with_a_part_of_another_shape_is_refused_when_the_file_is_read(
    edited, place, value, said
):
    with pytest.raises(ModelError, match=said):
        from_bytes(edited("card.json", place, value))


def test_an_interval_without_an_end_is_shown_as_unknown(edited, fitted):
    card = fitted("pnorm").card["metrics"]["intervals"]
    model = from_bytes(edited("card.json", ["metrics", "intervals", 0, "high"], None))
    assert card and "to unknown" in model._repr_html_()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (["target"], 5),
        (["id"], [1]),
        (["left_out"], [HARM]),
        (["left_out"], {"a": 1}),
        (["values", "negative"], "no"),
        (["values", "positive"], 1),
    ],
)
def test_a_schema_whose_names_are_no_words_is_refused_when_the_file_is_read(edited, place, value):
    with pytest.raises(ModelError, match="cannot be used"):
        from_bytes(edited("schema.json", place, value))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("kind", "odd", "kinds other than"),
        ("decimal", ";", "how it reads is not known"),
        ("dtype", [], "how it reads is not known"),
        ("missing", "0", "how it reads is not known"),
        ("date_format", ["%Y"], "how it reads is not known"),
        ("clip", [2.0, 1.0], "how it reads is not known"),
    ],
)
def test_a_column_that_cannot_be_read_is_refused_when_the_file_is_read(edited, name, value, said):
    with pytest.raises(ModelError, match=said):
        from_bytes(edited("schema.json", ["columns", 0, name], value))


def test_a_card_of_other_versions_is_read_with_a_warning(edited, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(edited("toprank.json", ["versions", "numpy"], "0.1"))
    with pytest.warns(ModelWarning, match=r"numpy 0\.1"):
        found = read_card(path)
    assert found.card["ranker"] == "PNormPush"


def test_a_push_of_infinity_is_shown_and_saved():
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=80)})
    frame["y"] = (frame.x + rng.normal(size=80) > 0.8).astype(int)
    model = fit_table(frame, "y", p=np.inf)
    again = from_bytes(to_bytes(model))
    assert again.card["p"] == "inf"
    assert "p = inf" in again._repr_html_()


def test_complex_numbers_are_left_out_without_a_warning():
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=80), "z": np.arange(80) * 1j})
    frame["y"] = (frame.x + rng.normal(size=80) > 0.8).astype(int)
    model = fit_table(frame, "y", p=2)
    assert model.schema.left_out["z"] == "it holds values of type complex128"
    with pytest.raises(ModelError, match="column 'x': expected numbers, got complex ones"):
        model.score(frame.assign(x=frame.z))


def test_a_lazy_frame_is_refused_without_reading_it(fitted):
    polars = pytest.importorskip("polars", reason="the test is about polars")
    with pytest.raises(ModelError, match=r"pass frame\.collect"):
        fitted("pnorm").score(polars.LazyFrame({"age": [1.0]}))


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    import os

    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a file that can be replaced"), replace_file(path):
        pass
    assert path.is_fifo()
    assert list(tmp_path.iterdir()) == [path]


def test_columns_of_lists_are_left_out_and_cannot_be_labels_or_groups():
    pyarrow = pytest.importorskip("pyarrow", reason="the test is about Arrow tables")
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    table = pyarrow.table(
        {"x": x, "list": [[j] for j in range(80)], "y": (x + rng.normal(size=80) > 0.8)}
    )
    assert "list" in fit_table(table, "y", p=2).schema.left_out
    with pytest.raises(ModelError, match="'list' cannot be the target"):
        fit_table(table, "list", positive="1")
    with pytest.raises(ModelError, match="groups='list': expected words"):
        fit_table(table, "y", groups="list", p=2)


def test_a_refit_says_which_categories_it_does_not_know():
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=80), "city": rng.choice(["Rome", "Oslo"], 80)})
    frame["y"] = (frame.x + rng.normal(size=80) > 0.8).astype(int)
    model = fit_table(frame, "y", p=2)
    with pytest.warns(ModelWarning, match=r"80 rows hold 1 category never seen .*'Paris'"):
        fit_table(frame.assign(city="Paris"), "y", from_model=model)


def test_row_numbers_and_dressed_numbers_are_told_on_the_card():
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "case": rng.permutation(120) + 7,
            "x": rng.normal(size=120),
            "amount": [f"{value:,.2f}" for value in rng.lognormal(9, 1, 120)],
            "share": [f"{value}%" for value in rng.integers(0, 99, 120)],
            "city": rng.choice(["Rome", "Oslo"], 120),
        }
    )
    frame["y"] = (frame.x + rng.normal(size=120) > 0.8).astype(int)
    said = fit_table(frame, "y", p=2).card["warnings"]
    assert [note.split("'")[1] for note in said] == ["case", "share", "amount"]
    assert "make it the id" in said[0]
    assert "write them without signs" in said[1]
    assert fit_table(frame, "y", id="case", drop=["share", "amount"], p=2).card["warnings"] == []


def test_columns_may_be_called_as_the_parts_of_an_onnx_graph():
    pytest.importorskip("onnxruntime", reason="the scores are compared with ONNX Runtime")
    pytest.importorskip("onnx", reason="the export needs ONNX")
    import pandas as pd

    rng = np.random.default_rng(0)
    names = ["score", "constant_0", "concat_0", "isnan_1"]
    frame = pd.DataFrame(rng.normal(size=(80, 4)), columns=names)
    frame["reshape_2"] = rng.choice(["a", "b"], 80)
    frame["y"] = (frame.score + rng.normal(size=80) > 0.8).astype(int)
    export = fit_table(frame, "y", p=2).to_onnx(check=frame)
    assert export.rows_checked == 80
    assert [one.name for one in export.model.graph.output] == ["score_"]
