"""
How fast the excess ranking risk falls
======================================

Three models whose best ranking is known (Clémençon, Lugosi & Vayatis 2006, Section 5), and the
excess risk of PairRanker over that best ranking against the number of rows, beside the rates that
the paper proves for empirical risk minimisers over a class of finite VC dimension: (log n / n)^1/2
always, and, up to n^epsilon, log n / n under the noise conditions that all three models meet.
PairRanker minimises a convex risk instead, over linear scores, among which the best ranking is.

    python examples/rates_of_ranking.py                # prints the exponents
    python examples/rates_of_ranking.py excess_risk.png

`toprank reproduce rates` makes the same numbers and a page about them.
"""

# sphinx_gallery_thumbnail_path = "evidence/images/reproduce_rates.png"

import sys

import numpy as np

from toprank.reproduce.simulated import CASES, SIZES, draw_rates, excess_risks, exponent

REPEATS = 20
SEED = 0


def main(path=None):
    rows = []
    for case in CASES:
        risks = np.array([excess_risks(case, n, SEED, REPEATS) for n in SIZES])
        rows.append({"title": case.title, "risks": risks, "exponent": exponent(SIZES, risks)})
        print(f"{case.title}: excess risk falls as n^{rows[-1]['exponent']:.2f}")
    if path is not None:
        draw_rates({"settings": {"sizes": SIZES}, "rows": rows}).savefig(path, dpi=130)


if __name__ == "__main__":
    main(*sys.argv[1:2])
