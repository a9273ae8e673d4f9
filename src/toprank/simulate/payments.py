"""Card payments with three kinds of fraud and labels that come late; and what is known at the till.

Customers and terminals have places on a map, and customers pay near home, in amounts and at a pace
of their own. Fraud comes in three kinds:

1. A card is *stolen* and used for some hours: several payments in quick succession, anywhere, of
   more than the owner's usual amount.
2. A terminal is *skimmed* for some weeks: a share of the payments there is made with copied cards,
   of ordinary amounts. Only other fraud at that terminal gives it away.
3. A card number has *leaked*: for some weeks payments are added that the owner did not make, at
   night, far from home, of large amounts.

Whether a payment was fraud is known some days later.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray, IntArray
from toprank._numerics import FloatArray, is_number

#: The kinds of fraud by their numbers; 0 is an honest payment.
KINDS = ("honest", "stolen", "skimmed", "leaked")
_DAY = 1.0
#: Days that a row looks back for counts and means, and for the known fraud of a terminal.
_WEEK, _MONTH = 7.0, 28.0


@dataclass(frozen=True)
class CardPayments:
    """Payments in the order of time.

    Attributes
    ----------
    time : ndarray of float
        When, in days from the start.
    customer, terminal : ndarray of int
        Who paid, and where.
    amount : ndarray of float
    distance : ndarray of float
        From the customer's home to the terminal; the map has sides of length 1.
    fraud : ndarray of bool
    kind : ndarray of int
        0 for an honest payment, 1 stolen, 2 skimmed, 3 leaked (`KINDS`).
    known : ndarray of float
        When it is known whether the payment was fraud.
    """

    time: FloatArray
    customer: NDArray[np.intp]
    terminal: NDArray[np.intp]
    amount: FloatArray
    distance: FloatArray
    fraud: NDArray[np.bool_]
    kind: NDArray[np.intp]
    known: FloatArray

    def __len__(self) -> int:
        return len(self.time)

    @property
    def day(self) -> NDArray[np.intp]:
        """The day of each payment, from 0."""
        return self.time.astype(np.intp)

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns of `features`."""
        return list(self._columns)

    @property
    def features(self) -> FloatArray:
        """What is known of each payment when it is made, one row per payment.

        Counts and means look back only, and fraud at a terminal counts once it is known.
        """
        return np.column_stack(list(self._columns.values()))

    @cached_property
    def _columns(self) -> dict[str, FloatArray]:
        hour = 24 * (self.time % _DAY)
        in_day, _ = _look_back(self.customer, self.time, _DAY, self.amount)
        in_week, spent = _look_back(self.customer, self.time, _WEEK, self.amount)
        in_month, monthly = _look_back(self.customer, self.time, _MONTH, self.amount)
        usual = np.where(in_month > 0, monthly / np.maximum(in_month, 1), self.amount)
        at_terminal, _ = _look_back(self.terminal, self.time, _WEEK, self.amount)
        seen, found = self._known_fraud()
        return {
            "amount": np.log1p(self.amount),
            "times the usual": np.log((1 + self.amount) / (1 + usual)),
            "night": ((hour < 6) | (hour > 22)).astype(np.float64),
            "weekend": (self.day % 7 >= 5).astype(np.float64),
            "distance": self.distance,
            "hours since the last": np.log1p(24 * _since_last(self.customer, self.time)),
            "payments in a day": in_day,
            "payments in a week": in_week,
            "spent in a week": np.log1p(spent),
            "terminal's week": at_terminal,
            "terminal's known fraud": found / (seen + 5.0),
        }

    def _known_fraud(self) -> tuple[FloatArray, FloatArray]:
        """Payments at the terminal in the last month whose labels are known, and the fraud in it.

        A label joins its terminal when it is known, and is forgotten a month later.
        """
        order = np.argsort(self.known, kind="stable")
        events = (self.terminal[order], self.known[order])
        return _look_back_at(
            *events, self.fraud[order].astype(np.float64), self.terminal, self.time, _MONTH
        )


def card_payments(
    n_customers: int = 1000,
    n_terminals: int = 300,
    days: int = 90,
    *,
    payments_per_day: float = 1.0,
    frauds_per_day: float = 6.0,
    label_delay: float = 7.0,
    random_state: int | np.random.Generator | None = 0,
) -> CardPayments:
    """Simulate card payments with three kinds of fraud and late labels.

    Parameters
    ----------
    n_customers, n_terminals, days : int
        How many customers, terminals and days.
    payments_per_day : float, default=1.0
        Payments of a customer per day, on average; customers differ.
    frauds_per_day : float, default=6.0
        Fraudulent payments per day in all, about a third of each kind.
    label_delay : float, default=7.0
        Days until it is known whether a payment was fraud: from half to one and a half times that.
    random_state : int, Generator or None, default=0

    Returns
    -------
    CardPayments
        ``.features .fraud .day .customer .known``; the payments in the order of time.

    Examples
    --------
    >>> from toprank.simulate import card_payments
    >>> payments = card_payments(200, 50, days=30)
    >>> payments.features.shape == (len(payments), 11)
    True
    >>> bool((payments.known > payments.time).all())
    True
    """
    for name, count in {"n_customers": n_customers, "n_terminals": n_terminals}.items():
        if not (isinstance(count, (int, np.integer)) and count >= 2):
            raise ValueError(f"{name}={count!r}: expected a whole number of at least 2.")
    if not (isinstance(days, (int, np.integer)) and days >= 1):
        raise ValueError(f"days={days!r}: expected a whole number of at least 1.")
    rates = {"payments_per_day": payments_per_day, "frauds_per_day": frauds_per_day}
    for name, rate in {**rates, "label_delay": label_delay}.items():
        if not (is_number(rate) and 0 <= rate < np.inf):
            raise ValueError(f"{name}={rate!r}: expected a number from 0.")
    rng = np.random.default_rng(random_state)
    town = _Town.draw(n_customers, n_terminals, days, payments_per_day, rng)
    honest = town.honest_payments(rng)
    per_kind = frauds_per_day / 3
    parts = [
        honest,
        town.stolen_cards(per_kind, rng),
        town.leaked_cards(per_kind, rng),
    ]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in honest}
    town.skim(joined, per_kind, rng)
    order = np.argsort(joined["time"], kind="stable")
    joined = {name: column[order] for name, column in joined.items()}
    gap = town.homes[joined["customer"]] - town.places[joined["terminal"]]
    return CardPayments(
        joined["time"],
        joined["customer"],
        joined["terminal"],
        joined["amount"],
        np.hypot(*gap.T),
        joined["kind"] > 0,
        joined["kind"],
        joined["time"] + label_delay * rng.uniform(0.5, 1.5, len(order)),
    )


@dataclass(frozen=True)
class _Town:
    """Customers with homes, habits and terminals nearby."""

    homes: FloatArray
    places: FloatArray
    pace: FloatArray
    usual: FloatArray
    days: int
    near: NDArray[np.intp]

    @classmethod
    def draw(
        cls, n_customers: int, n_terminals: int, days: int, pace: float, rng: np.random.Generator
    ) -> _Town:
        homes, places = rng.random((n_customers, 2)), rng.random((n_terminals, 2))
        kept = min(10, n_terminals)
        gaps = np.hypot(*(homes[:, None, :] - places[None, :, :]).transpose(2, 0, 1))
        near = np.argpartition(gaps, kept - 1, axis=1)[:, :kept]
        paces = pace * rng.gamma(2.0, 0.5, n_customers)
        return cls(homes, places, paces, rng.lognormal(3.3, 0.5, n_customers), days, near)

    def honest_payments(self, rng: np.random.Generator) -> dict[str, AnyArray]:
        """Payments of the owners, by day, most of them near home."""
        counts = rng.poisson(self.pace * self.days)
        customer = np.repeat(np.arange(len(counts)), counts)
        n = len(customer)
        hour = rng.normal(14, 4.5, n) % 24
        terminal = self.near[customer, rng.integers(0, self.near.shape[1], n)]
        away = rng.random(n) < 0.05
        terminal[away] = rng.integers(0, len(self.places), np.count_nonzero(away))
        return {
            "time": rng.integers(0, self.days, n) + hour / 24,
            "customer": customer,
            "terminal": terminal,
            "amount": self.usual[customer] * rng.lognormal(0, 0.6, n),
            "kind": np.zeros(n, dtype=np.intp),
        }

    def stolen_cards(self, per_day: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Bursts of three to eight payments within some hours, anywhere."""
        bursts = rng.poisson(per_day * self.days / 5.5)
        counts = rng.integers(3, 9, bursts)
        whose = np.repeat(rng.integers(0, len(self.homes), bursts), counts)
        start = np.repeat(rng.uniform(0, self.days, bursts), counts)
        n = len(whose)
        return self._within(
            start + rng.exponential(2 / 24, n),
            whose,
            self.usual[whose] * rng.lognormal(0.9, 0.5, n),
            1,
            rng,
        )

    def leaked_cards(self, per_day: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Payments at night over two weeks, of large amounts."""
        leaks = rng.poisson(per_day * self.days / 6)
        counts = rng.poisson(6, leaks)
        whose = np.repeat(rng.integers(0, len(self.homes), leaks), counts)
        start = np.repeat(rng.uniform(0, self.days, leaks), counts)
        n = len(whose)
        when = np.floor(start + rng.uniform(0, 14, n)) + (rng.normal(1.5, 2.5, n) % 24) / 24
        return self._within(when, whose, self.usual[whose] * rng.lognormal(1.2, 0.6, n), 3, rng)

    def _within(
        self,
        time: FloatArray,
        whose: IntArray,
        amount: FloatArray,
        kind: int,
        rng: np.random.Generator,
    ) -> dict[str, np.ndarray]:
        """The payments that fall into the days simulated, at any terminal."""
        inside = time < self.days
        n = int(np.count_nonzero(inside))
        return {
            "time": time[inside],
            "customer": whose[inside],
            "terminal": rng.integers(0, len(self.places), n),
            "amount": amount[inside],
            "kind": np.full(n, kind, dtype=np.intp),
        }

    def skim(
        self, payments: dict[str, np.ndarray], per_day: float, rng: np.random.Generator
    ) -> None:
        """Turn a third of the payments at some terminals, for some weeks, into fraud."""
        time, terminal, kind = (payments[name] for name in ("time", "terminal", "kind"))
        wanted = per_day * self.days
        turned = 0
        for _ in range(100 * len(self.places)):
            if turned >= wanted:
                return
            where, start = rng.integers(0, len(self.places)), rng.uniform(-14, self.days)
            there = (terminal == where) & (time >= start) & (time < start + rng.uniform(14, 28))
            rows = np.flatnonzero(there & (kind == 0))
            rows = rows[rng.random(len(rows)) < 1 / 3]
            kind[rows] = 2
            turned += len(rows)


def _look_back(
    key: NDArray[np.intp], time: FloatArray, span: float, amount: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """How many earlier rows of the same key lie within the span before each row, and their sum."""
    return _look_back_at(key, time, amount, key, time, span)


def _look_back_at(
    key: NDArray[np.intp],
    time: FloatArray,
    amount: FloatArray,
    whose: NDArray[np.intp],
    now: FloatArray,
    span: float,
) -> tuple[FloatArray, FloatArray]:
    """Events of a key in [now - span, now): their number and the sum of their amounts.

    The events come in the order of time.
    """
    order = np.argsort(key, kind="stable")
    # one axis for all keys: each has a stretch of its own, longer than any time
    far = 2 * (max(float(np.max(time, initial=0.0)), float(np.max(now, initial=0.0))) + span + 1)
    axis = key[order] * far + time[order]
    sums = np.concatenate(([0.0], np.cumsum(amount[order])))
    last = np.searchsorted(axis, whose * far + now, side="left")
    first = np.searchsorted(axis, whose * far + np.maximum(now - span, 0.0), side="left")
    return (last - first).astype(np.float64), sums[last] - sums[first]


def _since_last(key: NDArray[np.intp], time: FloatArray) -> FloatArray:
    """Days since the last row of the same key; a month where there is none."""
    order = np.argsort(key, kind="stable")
    gaps = np.diff(time[order], prepend=np.nan)
    gaps[np.diff(key[order], prepend=-1) != 0] = _MONTH
    out = np.empty(len(time))
    out[order] = np.minimum(gaps, _MONTH)
    return out
