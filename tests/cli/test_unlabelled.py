"""Tables in which only some positives have a label, from `fit` to `evaluate`."""

import json

import numpy as np
import pandas as pd
import pytest

from toprank.models import ModelError, fit_table
from toprank.models.unlabelled import mark_unlabelled


@pytest.fixture(scope="module")
def some_labels(folder):
    """Half of the positives have a label; `known` also has some negatives with one."""
    rng = np.random.default_rng(1)
    n = 1500
    rows = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"]).round(3)
    truth = rows.a + rows.b + rng.logistic(size=n) / 3 > 1.5
    labelled = truth & (rng.random(n) < 0.5)
    rows["found"] = np.where(labelled, "1", "")
    rows["known"] = np.where(labelled, "yes", np.where(~truth & (rows.index % 2 == 0), "no", "?"))
    rows.to_csv(folder / "some_labels.csv", index=False)
    return folder / "some_labels.csv", rows, truth


@pytest.fixture(scope="module")
def open_model(some_labels, folder, invoke):
    pytest.importorskip("skops", reason="models are written with the extra models")
    path = folder / "open.model"
    done = invoke(
        *("fit", some_labels[0], "-y", "found", "--drop", "known", "--p", 1, "-o", path),
        *("--unlabelled", "missing", "--json"),
    )
    assert done.exit_code == 0, done.output
    return path, json.loads(done.stdout)


def test_a_card_is_corrected_for_hidden_positives(open_model, some_labels):
    card = open_model[1]
    assert card["training"]["unlabelled"] == int((some_labels[1].found == "").sum())
    notes = {one["metric"]: one["note"] for one in card["metrics"]["intervals"]}
    assert "estimated) hidden positives" in notes["auc"]
    assert "at most the true value" in notes["average_precision"]
    assert any("have no label" in text for text in card["warnings"])
    assert card["target"]["negative"] == ["(unlabelled)"]


def test_evaluate_corrects_by_the_share_it_estimates_or_is_given(
    invoke, open_model, some_labels, words
):
    command = ("evaluate", open_model[0], some_labels[0], "--unlabelled", "missing", "--k", 50)
    done = invoke(*command, "--json")
    found = {one["name"]: one for one in json.loads(done.stdout)["metrics"]}
    share = some_labels[2][some_labels[1].found == ""].mean()
    assert found["hidden_share"]["low"] <= share <= found["hidden_share"]["high"]
    assert found["auc"]["low"] <= 0.99 and "estimated" in found["auc"]["note"]
    given = invoke(*command, "--hidden", f"{share}", "--metric", "precision_at", "--json")
    (one,) = json.loads(given.stdout)["metrics"]
    assert one["value"] > found["lift_at"]["value"] / 20 and one["low"] <= one["value"]
    shown = words(invoke(*command).stdout)
    assert "hidden share" in shown and "Unlabelled rows count as negatives here" in shown


@pytest.mark.more
def test_too_few_positives_for_a_share_leave_it_out_and_the_metrics_say_why(
    invoke, open_model, some_labels, tmp_path
):
    rows = some_labels[1]
    few = pd.concat([rows[rows.found == "1"].head(1), rows[rows.found == ""].head(150)])
    few.to_csv(tmp_path / "few.csv", index=False)
    done = invoke(
        *("evaluate", open_model[0], tmp_path / "few.csv", "--unlabelled", "missing", "--json")
    )
    assert done.exit_code == 0, done.output
    found = {one["name"]: one for one in json.loads(done.stdout)["metrics"]}
    assert "hidden_share" not in found and found["auc"]["low"] is None
    assert "1 labelled positive, too few to estimate the share" in found["auc"]["note"]


def test_monitor_takes_labels_of_positives_alone_for_no_precision(
    invoke, open_model, some_labels, words
):
    done = invoke("monitor", open_model[0], some_labels[0])
    assert "only positives have a label" in words(done.output), done.output
    assert "Precision among" not in words(done.output)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--hidden", "0.1"), "--hidden needs --unlabelled"),
        (("--unlabelled", "missing", "--hidden", "1"), "expected a share from 0 to below 1"),
        (("--unlabelled", "missing", "--by-group", "a"), "leave out --by"),
        (("--unlabelled", "9"), "is missing in"),
    ],
)
def test_what_does_not_go_together_is_refused(
    invoke, open_model, some_labels, words, options, said
):
    done = invoke("evaluate", open_model[0], some_labels[0], *options)
    assert done.exit_code != 0 and said in words(done.stderr)


def test_known_negatives_and_every_kind_of_table(some_labels):
    rows = some_labels[1].drop(columns="found")
    model = fit_table(rows, "known", positive="yes", unlabelled="?", hidden=0.1, p=1)
    assert set(model.target.negative) == {"(unlabelled)", "no"}
    found = model.card["metrics"]["intervals"]
    assert any("a share of 0.1 hidden" in one["note"] for one in found)
    for library in ("polars", "pyarrow"):
        module = pytest.importorskip(library)
        own = module.DataFrame if library == "polars" else module.table
        marked, positive = mark_unlabelled(own({"y": [1, None, 1]}), "y", "missing")
        assert marked["y"].to_pylist() if library == "pyarrow" else marked["y"].to_list()
        assert positive == "1"


@pytest.mark.parametrize(
    ("labels", "unlabelled", "said"),
    [
        ([None, None], "missing", "All 2 rows of 'y' are without a label"),
        ([0, None], "missing", "Every label of 'y' is '0'"),
        ([1, 0], "missing", "every row of 'y' has a label"),
        ([1, 0], 7, "every row of 'y' has a label"),
        ([1, None], 1, "means others"),
    ],
)
def test_labels_that_say_nothing_are_refused(labels, unlabelled, said):
    with pytest.raises(ModelError, match=said):
        mark_unlabelled(pd.DataFrame({"y": labels}), "y", unlabelled)
    with pytest.raises(ModelError, match="give unlabelled="):
        fit_table(pd.DataFrame({"y": labels, "x": [1, 2]}), "y", hidden=0.1)
