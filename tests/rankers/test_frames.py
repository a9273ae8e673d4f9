"""Data frames, labels of any kind, and the names of the columns."""

import numpy as np
import pytest

from toprank import PNormPush

NAMES = ["age", "dose", "weight", "height"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_gives_the_ranking_of_its_values(library, overlapping):
    frames = pytest.importorskip(library)
    X, y = overlapping
    frame = frames.DataFrame({name: X[:, j] for j, name in enumerate(NAMES)})
    fit = PNormPush().fit(frame, frames.Series(y))
    assert fit.feature_names_in_.tolist() == NAMES
    np.testing.assert_allclose(fit.coef_, PNormPush().fit(X, y).coef_, rtol=1e-9)
    np.testing.assert_allclose(
        fit.decision_function(frame), PNormPush().fit(X, y).decision_function(X), rtol=1e-9
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_with_other_columns_is_refused(library, overlapping):
    frames = pytest.importorskip(library)
    X, y = overlapping
    frame = frames.DataFrame({name: X[:, j] for j, name in enumerate(NAMES)})
    fit = PNormPush().fit(frame, y)
    other = frames.DataFrame({name: X[:, j] for j, name in enumerate("abcd")})
    with pytest.raises(ValueError, match="feature names"):
        fit.decision_function(other)


def test_a_frame_of_mixed_numbers_is_converted(overlapping):
    pd = pytest.importorskip("pandas")
    X, y = overlapping
    frame = pd.DataFrame(
        {
            "flag": X[:, 0] > 0,
            "count": np.round(X[:, 1]).astype(int),
            "single": X[:, 2].astype(np.float32),
            "nullable": pd.array(np.round(X[:, 3]).astype(int), dtype="Int64"),
        }
    )
    fit = PNormPush().fit(frame, y)
    values = np.column_stack([frame[name].astype(float) for name in frame])
    np.testing.assert_allclose(fit.coef_, PNormPush().fit(values, y).coef_, rtol=1e-6)


@pytest.mark.parametrize(
    ("labels", "top"),
    [
        (["no", "yes"], "yes"),
        ([False, True], True),
        ([-1, 1], 1),
        ([0.0, 1.0], 1.0),
        ([3, 9], 9),
        ([np.uint8(0), np.uint8(255)], 255),
    ],
    ids=str,
)
def test_the_larger_label_belongs_at_the_top(labels, top, overlapping):
    X, y = overlapping
    named = np.array(labels)[y]
    fit = PNormPush().fit(X, named)
    assert fit.classes_.tolist() == np.array(labels).tolist()
    np.testing.assert_array_equal(fit.coef_, PNormPush().fit(X, y).coef_)
    likely = fit.decision_function(X) > 0
    assert set(np.unique(fit.predict(X)[likely])) == {top}


def test_labels_may_be_a_list_of_strings(overlapping):
    X, y = overlapping
    fit = PNormPush().fit(X.tolist(), ["spam" if label else "ham" for label in y])
    assert fit.classes_.tolist() == ["ham", "spam"]


def test_labels_may_be_a_categorical_column(overlapping):
    pd = pytest.importorskip("pandas")
    X, y = overlapping
    column = pd.Series(pd.Categorical(np.where(y, "spam", "ham")))
    assert PNormPush().fit(X, column).classes_.tolist() == ["ham", "spam"]
