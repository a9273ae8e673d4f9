"""Tables of four jobs that end with a list: leads, molecules, machines, patients.

Each function draws rows as the job would meet them and returns `SimulatedRows`, with the true
probability of every row beside its label, so that what a list finds can be held against the best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from toprank._arrays import AnyArray
from toprank._numerics import FloatArray, is_number


@dataclass(frozen=True)
class SimulatedRows:
    """Rows with their labels and the truth behind them.

    Attributes
    ----------
    features : ndarray of shape (n, d)
        What is known of each row when the list is made.
    feature_names : list of str
    label : ndarray of bool
        What came of the row: bought, active, failed, ill.
    probability : ndarray of float
        The probability that the label was drawn with: the best score there is.
    group : ndarray of shape (n,)
        The part of the table a row belongs to: a region, a chemical family, a site, an age.
    value : ndarray of float
        What a positive row is worth, in money; one where the job has no money.
    """

    features: FloatArray
    feature_names: list[str]
    label: NDArray[np.bool_]
    probability: FloatArray
    group: np.ndarray
    value: FloatArray

    def __len__(self) -> int:
        return len(self.label)


def leads(
    n: int = 5000, *, share: float = 0.06, random_state: int | np.random.Generator | None = 0
) -> SimulatedRows:
    """Simulate customers to call, who may buy something, for more or for less money.

    Those who buy often buy little: interest and the size of the order pull apart, so the likeliest
    buyers are not the calls that pay most.

    Parameters
    ----------
    n : int, default=5000
        How many customers.
    share : float, default=0.06
        Share of customers who buy when called, on average.
    random_state : int, Generator or None, default=0

    Returns
    -------
    SimulatedRows
        ``.value`` is what an order brings, ``.group`` the region.

    Examples
    --------
    >>> from toprank.simulate import leads
    >>> table = leads(1000)
    >>> table.features.shape, table.feature_names[0]
    ((1000, 6), 'visits')
    >>> bool(abs(table.probability.mean() - 0.06) < 1e-6)
    True
    """
    rng = _start(n, share, random_state)
    visits = rng.poisson(3.0, n).astype(np.float64)
    mails = rng.binomial(8, 0.3, n).astype(np.float64)
    months = rng.exponential(9.0, n)
    staff = np.exp(rng.normal(2.6, 1.1, n))
    earlier = rng.poisson(0.5, n).astype(np.float64)
    trial = (rng.random(n) < 0.15).astype(np.float64)
    region = rng.choice(["north", "south", "east", "west"], n, p=[0.15, 0.4, 0.25, 0.2])
    wish = 0.35 * visits + 0.2 * mails - 0.06 * months + 0.5 * earlier - 0.3 * np.log(staff)
    # a trial counts for those who come back, which no straight line can say
    wish += trial * np.where(visits >= 4, 2.0, 0.1)
    order = np.round(40 * staff**0.6 * np.exp(rng.normal(0.0, 0.3, n)), 2)
    columns = {
        "visits": visits,
        "mails opened": mails,
        "months since the last order": months,
        "staff": staff,
        "orders so far": earlier,
        "has a trial": trial,
    }
    return _draw(columns, wish, share, region, order, rng)


def molecules(
    n: int = 4000,
    *,
    bits: int = 256,
    families: int = 60,
    share: float = 0.03,
    random_state: int | np.random.Generator | None = 0,
) -> SimulatedRows:
    """Simulate molecules as fingerprints, of families that share a skeleton.

    A family has bits of its own, and its members most of them and some more. A few bits together
    make a molecule active, so that some families hold many active molecules, most hold none, and a
    list of the highest scores is a list of cousins.

    Parameters
    ----------
    n : int, default=4000
        How many molecules.
    bits : int, default=256
        Length of a fingerprint, from 32.
    families : int, default=60
        How many families, from 2. They differ in size.
    share : float, default=0.03
        Share of active molecules, on average.
    random_state : int, Generator or None, default=0

    Returns
    -------
    SimulatedRows
        ``.features`` are zeros and ones, ``.group`` is the family.

    Examples
    --------
    >>> from toprank.simulate import molecules
    >>> library = molecules(500, bits=64)
    >>> library.features.shape, sorted(set(library.features.ravel().tolist()))
    ((500, 64), [0.0, 1.0])
    """
    rng = _start(n, share, random_state)
    _check_count("bits", bits, 32)
    _check_count("families", families, 2)
    skeletons = rng.random((families, bits)) < 0.2
    size = np.exp(rng.normal(0.0, 0.7, families))
    family = rng.choice(families, n, p=size / size.sum())
    kept = skeletons[family] & (rng.random((n, bits)) < 0.85)
    prints = (kept | (rng.random((n, bits)) < 0.06)).astype(np.float64)
    anchors, helpers, spoilers = np.split(rng.permutation(bits)[:30], 3)
    wish = 0.9 * prints[:, anchors].sum(axis=1) + 0.5 * prints[:, helpers].sum(axis=1)
    # an anchor works only where nothing stands in its way
    wish -= 0.8 * prints[:, spoilers].sum(axis=1) * (prints[:, anchors].sum(axis=1) > 2)
    columns = {f"bit {index}": column for index, column in enumerate(prints.T)}
    return _draw(columns, 1.5 * wish, share, family, np.ones(n), rng)


def machines(
    n: int = 6000, *, share: float = 0.05, random_state: int | np.random.Generator | None = 0
) -> SimulatedRows:
    """Simulate machines to inspect, of which few have a fault.

    Old machines have faults, as everyone knows. So have new ones that run hot under a changing
    load, which nobody has looked for.

    Parameters
    ----------
    n : int, default=6000
        How many machines.
    share : float, default=0.05
        Share of machines with a fault, on average.
    random_state : int, Generator or None, default=0

    Returns
    -------
    SimulatedRows
        ``.group`` is the site.

    Examples
    --------
    >>> from toprank.simulate import machines
    >>> machines(1000).feature_names
    ['years', 'hours since service', 'temperature', 'load swings', 'vibration']
    """
    rng = _start(n, share, random_state)
    years = rng.gamma(3.0, 3.0, n)
    hours = rng.exponential(1.0, n)
    temperature = rng.normal(size=n)
    swings = rng.normal(size=n)
    site = rng.choice(["A", "B", "C"], n, p=[0.5, 0.3, 0.2])
    hot = np.maximum(temperature, 0) * (1 + 0.5 * np.maximum(swings, 0)) * (years < 9)
    wish = 0.13 * years + 0.4 * hours + 1.9 * hot
    vibration = 0.3 * wish + rng.normal(0.0, 1.5, n)
    columns = {
        "years": years,
        "hours since service": hours,
        "temperature": temperature,
        "load swings": swings,
        "vibration": vibration,
    }
    return _draw(columns, wish, share, site, np.ones(n), rng)


def patients(
    n: int = 6000, *, share: float = 0.08, random_state: int | np.random.Generator | None = 0
) -> SimulatedRows:
    """Simulate patients of an emergency room, of which few need a bed at once.

    In the old the signs are weaker: pain and fever say less, so that the same readings mean a
    higher risk, and a score that does not know the age leaves them too low in the list.

    Parameters
    ----------
    n : int, default=6000
        How many patients.
    share : float, default=0.08
        Share that needs a bed at once, on average.
    random_state : int, Generator or None, default=0

    Returns
    -------
    SimulatedRows
        ``.group`` is the age: under 40, 40 to 69, 70 and over.

    Examples
    --------
    >>> from toprank.simulate import patients
    >>> room = patients(1000)
    >>> sorted(set(room.group.tolist()))
    ['40 to 69', '70 and over', 'under 40']
    """
    rng = _start(n, share, random_state)
    age = np.clip(rng.normal(52, 20, n), 18, 97)
    severity = rng.normal(size=n)
    frailty = np.maximum(age - 70, 0) / 10
    muted = np.where(age >= 70, 0.4, 1.0)
    pulse = 80 + 9 * severity * muted + rng.normal(0, 6, n)
    pressure = 125 + 0.3 * (age - 50) - 9 * severity * muted + rng.normal(0, 11, n)
    fever = 36.9 + 0.45 * severity * muted + rng.normal(0, 0.5, n)
    oxygen = np.clip(97.5 - 1.6 * severity - 0.8 * frailty + rng.normal(0, 1.0, n), 70, 100)
    pain = np.clip(np.round(4 + 1.8 * severity * muted + rng.normal(0, 2, n)), 0, 10)
    group = np.select([age < 40, age < 70], ["under 40", "40 to 69"], "70 and over")
    columns = {
        "age": age,
        "pulse": pulse,
        "blood pressure": pressure,
        "temperature": fever,
        "oxygen": oxygen,
        "pain": pain,
    }
    return _draw(columns, 2.2 * severity + 1.2 * frailty, share, group, np.ones(n), rng)


def _start(
    n: object, share: object, random_state: int | np.random.Generator | None
) -> np.random.Generator:
    """Check what every job takes, and seed it."""
    _check_count("n", n, 2)
    if not (is_number(share) and 0 < share < 1):
        raise ValueError(f"share={share!r}: expected a number above 0 and below 1.")
    return np.random.default_rng(random_state)


def _check_count(name: str, count: object, least: int) -> None:
    if not (isinstance(count, (int, np.integer)) and count >= least):
        raise ValueError(f"{name}={count!r}: expected a whole number of at least {least}.")


def _draw(
    columns: dict[str, FloatArray],
    wish: FloatArray,
    share: float,
    group: AnyArray,
    value: FloatArray,
    rng: np.random.Generator,
) -> SimulatedRows:
    """Labels by a logistic curve of the wish, whose mean probability is the share."""
    centred = wish - wish.mean()
    far = float(np.max(np.abs(centred))) + 50.0
    shift = brentq(lambda at: float(np.mean(expit(centred + at))) - share, -far, far, xtol=1e-12)
    probability = expit(centred + shift)
    label = rng.random(len(wish)) < probability
    features = np.column_stack(list(columns.values()))
    return SimulatedRows(features, list(columns), label, probability, group, value)
