"""Labels of two classes and grades: what they are taken for, and what is refused."""

import numpy as np
import pytest

from toprank.pairs import check_grades, split_classes, two_classes
from toprank.pairs.unlabelled import split_unlabelled


def test_the_positive_class_is_the_larger_label_or_the_one_named():
    classes, positive = two_classes(["b", "a", "b"])
    assert classes.tolist() == ["a", "b"]
    assert positive.tolist() == [True, False, True]
    classes, positive = two_classes(["b", "a", "b"], pos_label="a")
    assert classes.tolist() == ["b", "a"]
    assert positive.tolist() == [False, True, False]
    with pytest.raises(ValueError, match="pos_label='c' is not one of the labels"):
        two_classes(["b", "a", "b"], pos_label="c")


def test_two_values_that_are_not_whole_are_two_classes():
    assert two_classes([0.5, 1.5, 0.5])[1].tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["a", "b"], "it is not known which label belongs above which"),
        (np.array(["1", 2], dtype=object), "it is not known which label belongs above which"),
        ([1.0, np.nan], "y contains NaN"),
        ([2**60, 2**60 + 1], "float64 can tell only 1 apart"),
    ],
)
def test_grades_must_be_known_numbers(labels, words):
    with pytest.raises(ValueError, match=words):
        check_grades(labels)


def test_a_column_has_one_class_only():
    from toprank.pairs.labels import split_classes

    for name in ("the column of calibration labels", "y"):
        with pytest.raises(ValueError, match=f"{name} has one class only"):
            split_classes(np.ones(3), name)


def test_labels_beside_unlabelled_rows_are_one_column_of_one_meaning():
    with pytest.raises(ValueError, match=r"y has shape \(2, 1\), expected one label per row"):
        split_unlabelled([[1], [0]], 0)
    with pytest.raises(ValueError, match="pos_label='yes': every label of y is 'sold'"):
        split_unlabelled(["sold", "?", "sold"], "?", pos_label="yes")
    positive, open_rows = split_unlabelled(["sold", "?", "sold"], "?")
    assert positive.tolist() == [True, False, True] and open_rows.tolist() == [False, True, False]


def test_labels_without_an_order_are_refused():
    with pytest.raises(ValueError, match="mixes labels that have no order"):
        split_classes(np.array(["yes", 3, "no"], dtype=object))
