"""Every picture of ugly scores and names is drawn from finite numbers, without a warning."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

pytest.importorskip("matplotlib", reason="pictures need the extra plots")
import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from toprank.inference import interval
from toprank.plots import (
    DiscountDisplay,
    LiftDisplay,
    MarginDisplay,
    PairContributionDisplay,
    PushPathDisplay,
    TopRocDisplay,
)
from toprank.tuning import Candidate, PChoice

HUGE = float(np.finfo(np.float64).max)
N = 24


@pytest.fixture(autouse=True)
def figures_are_closed():
    mpl.use("Agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")


RNG = np.random.default_rng(0)
BASE = RNG.normal(size=N)
SCORES = {
    "around zero": BASE,
    "as large as can be": np.where(BASE > 0, HUGE, -HUGE),
    "one huge": np.where(np.arange(N) == 3, 1e308, BASE),
    "1e150": BASE * 1e150,
    "subnormal": RNG.integers(-5, 6, N) * 5e-324,
    "all equal": np.full(N, 3.0),
    "all equal and huge": np.full(N, 1e308),
    "neighbours": 1e16 + 4 * np.round(BASE),
    "float16": BASE.astype(np.float16),
    "integers": RNG.integers(-(2**62), 2**62, N),
    "bytes": RNG.integers(0, 255, N).astype(np.uint8),
    "booleans": BASE > 0,
}
LABELS = {
    "mixed": RNG.permutation(np.arange(N) % 2),
    "one positive": (np.arange(N) == 3).astype(int),
    "one negative": (np.arange(N) != 3).astype(int),
    "separable": (BASE > 0).astype(int),
}
WEIGHTS = {
    "over 24 orders": 10.0 ** RNG.uniform(-12, 12, N),
    "light": np.full(N, 1e-12),
    "heavy": np.full(N, 1e90),
}
CASES = [
    *((scores, "mixed", None) for scores in SCORES),
    *(("around zero", labels, None) for labels in ("one positive", "one negative", "separable")),
    *(("around zero", "mixed", weights) for weights in WEIGHTS),
]
REFUSALS = ("beyond the range of floats", "cannot be drawn", "expected scores up to")
#: What each display must draw of any finite scores, and what it may refuse.
DISPLAYS = {
    "roc": (TopRocDisplay.from_predictions, {}),
    "lift": (LiftDisplay.from_predictions, {}),
    "margins": (MarginDisplay.from_predictions, {"thetas": None}),
    "pairs": (PairContributionDisplay.from_predictions, {"p": 64}),
    "pairs, logistic": (
        PairContributionDisplay.from_predictions,
        {"loss": "logistic", "price": "log1p"},
    ),
    "pairs, hinge": (
        PairContributionDisplay.from_predictions,
        {"loss": "hinge", "p": 2, "end": "bottom"},
    ),
}
NEVER_REFUSED = ("roc", "lift")


def assert_finite(figure):
    """No number that is drawn, nor an end of an axis, is infinite or NaN."""
    for ax in figure.axes:
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        assert np.all(np.isfinite([left, right, low, high])) and left < right and low < high
        for line in ax.lines:
            assert np.all(np.isfinite(np.asarray(line.get_xydata(), dtype=float)))
        for drawn in ax.collections:
            assert all(np.all(np.isfinite(path.vertices)) for path in drawn.get_paths())
            if drawn.get_array() is not None:
                assert np.all(np.isfinite(np.asarray(drawn.get_array(), dtype=float)))


def draw(name, scores, labels, weights, **more):
    of, options = DISPLAYS[name]
    weight = None if weights is None else WEIGHTS[weights]
    return of(LABELS[labels], SCORES[scores], sample_weight=weight, **options, **more)


def render(figure):
    """Ticks, texts and all; where warnings would come from."""
    FigureCanvasAgg(figure).draw()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", DISPLAYS)
def test_scores_of_any_size_are_drawn_or_refused(name, record_property):
    drawn = 0
    for case in CASES:
        more = {"level": None} if name == "margins" else {}
        try:
            display = draw(name, *case, ax=Figure().subplots(), **more)
        except ValueError as refusal:
            assert name not in NEVER_REFUSED, (case, refusal)
            assert np.max(np.abs(SCORES[case[0]].astype(float))) > 1e11, (case, refusal)
            assert any(word in str(refusal) for word in REFUSALS), (case, refusal)
            continue
        assert_finite(display.figure_)
        if name.startswith("pairs"):
            total = np.sum(display.contributions)
            assert total == pytest.approx(1.0, rel=1e-9) or ("hinge" in name and total == 0)
        drawn += 1
    assert drawn >= 10
    render(display.figure_)
    record_property("cases", len(CASES))


@pytest.mark.slow
@pytest.mark.parametrize("name", DISPLAYS)
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("scores", SCORES)
def test_every_picture_renders(name, labels, scores):
    try:
        display = draw(name, scores, labels, None)
    except ValueError as refusal:
        assert name not in NEVER_REFUSED, refusal
        assert any(word in str(refusal) for word in REFUSALS), refusal
        return
    render(display.figure_)
    assert_finite(display.figure_)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", DISPLAYS)
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_scores_that_are_no_numbers_are_refused(name, bad):
    of, options = DISPLAYS[name]
    with pytest.raises(ValueError, match="y_score contains"):
        of([0, 1, 1], [0.0, 1.0, bad], **options)


def test_margins_keep_to_the_curve_on_any_scale():
    for scale in (1e-200, 1e-3, 1e150):
        display = MarginDisplay.from_predictions(LABELS["mixed"], BASE * scale)
        left, right = display.ax_.get_xlim()
        at = display.line_.get_xdata()
        assert left <= at.min() < at.max() <= right
        assert right - left < 1.2 * (at.max() - at.min())


@pytest.mark.parametrize("of", [TopRocDisplay, LiftDisplay, PairContributionDisplay])
@pytest.mark.parametrize("positives", [1, 300_000])
@pytest.mark.slow
def test_a_million_rows_are_drawn(of, positives):
    rng = np.random.default_rng(0)
    y = np.zeros(10**6, dtype=bool)
    y[:positives] = True
    display = of.from_predictions(y, rng.normal(size=10**6) + y)
    render(display.figure_)
    assert_finite(display.figure_)


# ---- names -------------------------------------------------------------------------------------

NAMES = (*("cost in $ of $x", r"$\nosuchcommand{$", "_private", "a_b^c\n\x1b[31my"),)


def texts(figure):
    found = [text.get_text() for legend in legends(figure) for text in legend.get_texts()]
    for ax in figure.axes:
        found += [ax.get_title(), ax.get_xlabel(), ax.get_ylabel()]
    return found


def legends(figure):
    return [legend for legend in (ax.get_legend() for ax in figure.axes) if legend is not None]


def shown(name):
    """How matplotlib spells a text that it shall show as it is."""
    escaped = name.encode("unicode_escape").decode() if not name.isprintable() else name
    return escaped.replace("$", r"\$")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_shown_as_it_is_written(name):
    y, s = LABELS["mixed"], BASE
    choice = PChoice(
        (Candidate(name, None, pushes=False), Candidate("p = 2", 2.0)),
        np.array([[0.5, 0.6], [0.7, 0.65]]),
        name,
    )
    top, lift, margins, path, pairs = (Figure().subplots() for _ in range(5))
    drawn = (
        TopRocDisplay.from_predictions(y, s, name=name, ax=top, level=None),
        LiftDisplay.from_predictions(y, s, name=name, ax=lift, top=[0.5, 1.0]),
        MarginDisplay.from_predictions(y, s, name=name, ax=margins, level=None),
        PushPathDisplay.from_choice(choice, name=name, ax=path),
        PairContributionDisplay.from_predictions(y, s, title=name, ax=pairs, colorbar=False),
    )
    for display in drawn:
        render(display.figure_)
        assert any(shown(name) in text for text in texts(display.figure_)), type(display)
    # the path, the baseline and the axis
    assert sum(shown(name) in text for text in texts(path.figure)) == 3


# ---- what went wrong ---------------------------------------------------------------------------


def test_the_curve_of_scores_as_large_as_can_be_is_that_of_their_order():
    y, s = LABELS["mixed"], SCORES["as large as can be"]
    display = TopRocDisplay.from_predictions(y, s)
    assert display.roc_auc == pytest.approx(roc_auc_score(y, np.sign(s)))
    assert len(display.fpr) == 3


def test_the_margins_of_one_huge_score_have_an_interval():
    y, s = LABELS["mixed"], SCORES["one huge"]
    found = interval("margin_error", y, s, theta=-1e308)
    gaps = np.subtract.outer(s[y == 1], s[y == 0])
    assert found.estimate == np.mean(gaps <= -1e308)
    assert found.low <= found.estimate <= found.high


def test_a_path_of_numbers_that_have_no_place_on_an_axis_is_refused():
    for values in ([1.0, np.inf], [1e308, 0.0], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="cannot be drawn"):
            PushPathDisplay(ps=[1, 2], values=values).plot()
    with pytest.raises(ValueError, match="cannot be drawn"):
        PushPathDisplay(ps=[1, 2], values=[0, 1], low=[0, -np.inf], high=[1, 2]).plot()


def test_a_path_to_the_largest_p_and_to_infinity_is_drawn():
    display = PushPathDisplay(ps=[1, 1e308, np.inf], values=[0.1, 0.2, 0.3], chosen=np.inf).plot()
    render(display.figure_)
    assert_finite(display.figure_)


def test_discounts_of_the_first_and_of_the_remotest_place_are_drawn():
    for z in ([1e-300, 1.0], [1.0, 1e300], [5.0]):
        display = DiscountDisplay.of_the_paper(z)
        render(display.figure_)
        assert_finite(display.figure_)
    with pytest.raises(ValueError, match="cannot be drawn"):
        DiscountDisplay.of_the_paper([1.0, 1e308])
