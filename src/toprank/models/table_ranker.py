"""A scikit-learn estimator for tables of mixed columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from toprank._arrays import AnyArray, Frame, TableLike
from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.models import frames
from toprank.models.block_fit import fit_table_blocks
from toprank.models.fit import fit_rows
from toprank.models.model import Reason, TableModel
from toprank.models.ranker_kinds import RANKER_KINDS
from toprank.models.rows import TrainingRows, require_features
from toprank.models.schema import Schema, Target
from toprank.models.words import are_numbers
from toprank.pairs.labels import label_text, two_classes
from toprank.pairs.propensity import keep_label_weights
from toprank.pairs.row_columns import check_groups, check_weights

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from toprank.blocks.tables import TableSource
    from toprank.interop.onnx import OnnxExport

#: The parameters that say how columns are read.
_READING = ("as_text", "as_number", "clip", "tidy", "pool")


class TableRanker(ClassifierMixin, BaseEstimator):
    """Rank the rows of a table with numbers, words, dates and missing values.

    What `fit_table` does, as an estimator: columns are prepared, and a ranker is fitted to them. It
    can be cloned, cross-validated, tuned and put at the end of a pipeline. Nothing is held out:
    measure it by cross-validation. `fit_table` measures, and looks at the table first.

    Parameters
    ----------
    p : float or "auto", default=4.0
        How hard to push; "auto" chooses by cross-validation inside ``fit``, on ``metric``. Models
        that have no p leave it aside.
    model : {"pnorm", "auto", "ir", "rankboost", "smooth-margin", "trees", "proper"}
        Which ranker, as in `fit_table`; "pnorm", a linear one, by default.
    alpha : float, optional
        L2 penalty of the linear rankers.
    metric : str, default="precision_at"
        The metric that p="auto" chooses by, as in `fit_table`.
    k : int or float, optional
        Its depth, a count or a share of the list; by default a tenth.
    drop, as_text, as_number, clip, tidy, pool : sequence of str
        Columns to leave out, and columns that are read in another way than their values suggest,
        as in `fit_table`.
    random_state : int, default=0
    quality : {"fast", "good", "best"}, default="good"
        How much work the model "auto" is; see `PushEnsemble`.
    keep_tails : bool, default=False
        Whether long tails count in full in linear models; as in `fit_table`, by default they are
        clipped where a number lies 50 standard deviations or more from the mean.

    Attributes
    ----------
    model_ : TableModel
        The fitted model: ``save`` it, and the command line ranks with it.
    classes_ : ndarray of shape (2,)
        The labels; the second belongs at the top.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        The columns, where they have names.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.model_selection import cross_val_score
    >>> from toprank.models import TableRanker
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({
    ...     "age": rng.normal(40, 10, 400),
    ...     "city": rng.choice(["Rome", "Oslo", None], 400),
    ... })
    >>> bought = frame.age + 10 * (frame.city == "Oslo") + rng.normal(0, 8, 400) > 55
    >>> scores = cross_val_score(TableRanker(p=2), frame, bought, scoring="roc_auc")
    >>> bool(scores.mean() > 0.8)
    True
    >>> ranker = TableRanker(p=2).fit(frame, bought)
    >>> ranker.get_feature_names_out().tolist()
    ['age', 'city = Oslo', 'city = Rome', 'city = ']
    """

    def __init__(
        self,
        p: object = 4.0,
        *,
        model: str = "pnorm",
        alpha: float | None = None,
        metric: str = "precision_at",
        k: int | float | None = None,
        drop: Sequence[str] = (),
        as_text: Sequence[str] = (),
        as_number: Sequence[str] = (),
        clip: Sequence[str] = (),
        tidy: Sequence[str] = (),
        pool: Sequence[str] = (),
        random_state: int = 0,
        quality: str = "good",
        keep_tails: bool = False,
    ):
        self.p = p
        self.model = model
        self.alpha = alpha
        self.metric = metric
        self.k = k
        self.drop = drop
        self.as_text = as_text
        self.as_number = as_number
        self.clip = clip
        self.tidy = tidy
        self.pool = pool
        self.random_state = random_state
        self.quality = quality
        self.keep_tails = keep_tails

    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        label_propensity: ArrayLike | None = None,
    ) -> TableRanker:
        """Learn to rank the rows of a table.

        Parameters
        ----------
        X : data frame of pandas or polars, pyarrow Table, or array
        y : array of shape (n,)
            Labels of two values; the larger in sorted order belongs at the top.
        sample_weight : array of shape (n,), optional
            How often each row counts.
        groups : array of shape (n,), optional
            Rows of one group stay in one fold where p is "auto".
        label_propensity : float or array of shape (n,), optional
            Probability that the row's label was seen; rows are weighted by its inverse, clipped
            (`toprank.select.label_weights`). ``effective_rows_`` says how many rows they count as.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError("TableRanker requires y to be passed, but the target y is None.")
        frame = self._frame(X, reset=True)
        if np.asarray(y).ndim == 2:
            y = column_or_1d(y, warn=True)
        classes, positive = two_classes(y)
        check_consistent_length(positive, range(frames.n_rows(frame)))
        reading: dict[str, Any] = {name: tuple(getattr(self, name)) for name in _READING}
        schema = Schema.learn(frame, tuple(self.drop), **reading)
        require_features(schema)
        name = _free_name(getattr(y, "name", None), frames.names_of(frame))
        words = [label_text(label) for label in classes]
        target = Target(name, words[1], (words[0],))
        values, match = schema.read(frame)
        match.ensure_ok("The table cannot be used")
        n = len(positive)
        weight = check_weights(positive, sample_weight)
        checked: Any = keep_label_weights(self, positive, weight, label_propensity)
        rows = TrainingRows(values, positive, checked, check_groups(groups, n)).present()
        self.model_ = fit_rows(replace(schema, target=name), target, rows, **self._request())
        self.classes_ = classes
        return self

    def fit_blocks(
        self,
        source: TableSource,
        target: str,
        *,
        weight: str | None = None,
        groups: str | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> TableRanker:
        """Learn to rank from a table in blocks, to the model that `fit` makes of it in memory.

        Other than by `fit`, rows are held out to measure, and p="auto" is chosen without them; see
        `fit_table_blocks` for which rankers are fitted to all rows. Labels are words, or numbers
        where both are.

        Parameters
        ----------
        source : TableSource
            From `toprank.blocks.from_tables`.
        target : str
            Column of the labels; the larger of its two values in sorted order belongs at the top.
        weight, groups : str, optional
            Columns of repetition counts and of groups.
        checkpoint, resume
            As in `fit_table_blocks`.

        Returns
        -------
        self
        """
        reading = {name: getattr(self, name) for name in _READING}
        request = {**self._request(), "drop": self.drop}
        self.model_ = fit_table_blocks(
            source,
            target,
            positive=_larger,
            weight=weight,
            groups=groups,
            checkpoint=checkpoint,
            resume=resume,
            **reading,
            **request,
        )
        known = self.model_.target
        self.classes_ = _labels_of([known.negative[0], known.positive])
        kept = {target, weight, groups}
        self.feature_names_in_ = np.array([n for n in source.names if n not in kept], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def _request(self) -> dict[str, Any]:
        """What is asked of the ranker; a kind that has no p is asked for none."""
        names = ("model", "alpha", "metric", "k", "random_state", "quality", "keep_tails")
        kind = RANKER_KINDS.get(self.model)
        has_p = kind is None or kind.choose is not None
        return {
            **{name: getattr(self, name) for name in names},
            "p": self.p if has_p else None,
        }

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the ranking score of each row; zero is a probability of one half."""
        return self._fitted().score(self._frame(X))

    def predict_proba(self, X: TableLike) -> FloatArray:
        """Return, for each row, the probabilities of the two classes."""
        return self._fitted().predict_proba(self._frame(X))

    def predict(self, X: TableLike) -> np.ndarray:
        """Return the more probable class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp)]

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return what the numbers are called that the columns become.

        Parameters
        ----------
        input_features : ignored
            The model knows its columns.
        """
        return self._fitted().preparation.names.astype(object)

    def reasons(self, X: TableLike, n: int = 3) -> list[list[Reason]]:
        """Return, for each row, the columns that add most to its score: `TableModel.reasons`."""
        return self._fitted().reasons(self._frame(X), n)

    def to_onnx(
        self,
        path: str | PathLike[str] | None = None,
        *,
        check: Frame | None = None,
        tolerance: float = 1e-5,
    ) -> OnnxExport:
        """Return the model, preparation included, as ONNX, as `TableModel.to_onnx`."""
        model = self._fitted()
        rows = None if check is None else self._frame(check)
        return model.to_onnx(path, check=rows, tolerance=tolerance)

    def to_sql(self, table: str | None = None, *, dialect: str = "ansi") -> str:
        """Return the score as SQL, as `TableModel.to_sql`."""
        return self._fitted().to_sql(table, dialect=dialect)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file, which `load` and the command line read."""
        self._fitted().save(path)

    def _fitted(self) -> TableModel:
        check_is_fitted(self)
        return self.model_

    def _frame(self, X: Any, reset: bool = False) -> Frame:
        """A table as it is; an array as one whose columns are called x0, x1 and so on."""
        if type(X).__module__.split(".")[0] in ("pandas", "polars", "pyarrow") and np.ndim(X) != 1:
            frames.library_of(X)
            if type(X).__module__.startswith("pyarrow"):
                self._keep_names(X.column_names, reset)
            elif reset or hasattr(self, "feature_names_in_"):
                validate_data(self, X, reset=reset, skip_check_array=True)
            if reset and frames.n_rows(X) == 0:
                raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
            return X
        array = check_array(X, dtype=None, ensure_all_finite="allow-nan", estimator=self)
        validate_data(self, array, reset=reset, skip_check_array=True)
        names = [f"x{place}" for place in range(array.shape[1])]
        if hasattr(self, "feature_names_in_"):
            names = self.feature_names_in_.tolist()
        return require("pandas", "models").DataFrame(array, columns=names)

    def _keep_names(self, names: list[str], reset: bool) -> None:
        if reset:
            self.feature_names_in_ = np.array(names, dtype=object)
            self.n_features_in_ = len(names)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _larger(words: list[str]) -> str:
    """The label that belongs at the top: the larger one, of numbers by their size."""
    return max(words, key=float) if are_numbers(words) else max(words)


def _labels_of(words: list[str]) -> AnyArray:
    if not are_numbers(words):
        return np.array(words, dtype=object)
    numbers = np.array([float(word) for word in words])
    whole = numbers.astype(np.int64)
    return whole if np.array_equal(whole, numbers) else numbers


def _free_name(wanted: object, taken: list[str]) -> str:
    """What the target is called: as its column was, or y; not as one of the columns."""
    name = wanted if isinstance(wanted, str) and wanted else "y"
    while name in taken:
        name = f"{name}_"
    return name
