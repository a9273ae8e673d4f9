"""Rows on several processes: every one ends with the coefficients of all rows."""

import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

PREAMBLE = """
import sys, warnings
import numpy as np, torch
warnings.simplefilter("error")
rank, size, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
torch.distributed.init_process_group(
    "gloo", init_method="file://" + out + "/store", rank=rank, world_size=size
)
from toprank import IRPush, PNormPush, ProperRanker, PushRanker, blocks

def table(n):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(n, 4)), rng.integers(0, 3, n).astype(float)
    y = (X @ np.array([1.0, 2.0, 0.0, -1.0]) + rng.logistic(size=n) > 3).astype(int)
    order = np.argsort(y, kind="stable")  # the last process has all the positives
    return X[order], y[order], w[order]

def fits(rankers, n, cuts):
    parts = table(n)
    mine = [torch.as_tensor(part[cuts[rank] : cuts[rank + 1]]) for part in parts]
    found = []
    for ranker in rankers:
        ranker.fit_blocks(blocks.from_torch(*mine, process_group="world"))
        coef, intercept = ranker.coef_.copy(), ranker.intercept_.copy()
        ranker.fit(*parts)
        apart = np.max(np.abs(coef - ranker.coef_)) / np.max(np.abs(ranker.coef_))
        assert apart <= 1e-10, (ranker, apart)
        assert abs(intercept - ranker.intercept_)[0] < 1e-6, ranker
        found.append(np.append(coef, intercept))
    return found
"""

TWO = """
found = fits(
    [
        PNormPush(tol=1e-11), PNormPush(alpha=0, tol=1e-11), IRPush(tol=1e-11),
        ProperRanker(tol=1e-11), PNormPush(loss="logistic", tol=1e-10),
    ],
    900,
    [0, 700, 900],
)
# so many that they are thinned, and their scores counted in bins
found += fits([PNormPush(tol=1e-11)], 70_000, [0, 50_000, 70_000])

X, y, _ = (torch.as_tensor(part) for part in table(100))
try:
    source = blocks.from_torch(X, y if rank == 0 else None, process_group="world")
    PNormPush().fit_blocks(source)
except RuntimeError as error:
    assert rank == 0 and "rank 1: ValueError: The source has no labels" in str(error), error
except ValueError as error:
    assert rank == 1 and "no labels" in str(error), error
else:
    raise SystemExit("no process failed")

try:
    blocks.from_torch(X[:, : 3 + rank], y, process_group="world")
except ValueError as error:
    assert "(columns, without weights)" in str(error), error
else:
    raise SystemExit("tables of different width were accepted")
"""

THREE = """
# an empty process, one of a single class, and one of both
found = fits([PNormPush(tol=1e-11), PushRanker(end="both", tol=1e-11)], 900, [0, 0, 600, 900])
"""

END = """
np.save(out + "/" + str(rank) + ".npy", np.array(found))
torch.distributed.destroy_process_group()
"""


@pytest.mark.more
@pytest.mark.parametrize(("size", "code"), [(2, TWO), (3, THREE)])
def test_every_process_fits_the_coefficients_of_all_rows(tmp_path, size, code):
    command = [sys.executable, "-c", PREAMBLE + code + END]
    processes = [
        subprocess.Popen(
            [*command, str(rank), str(size), str(tmp_path)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(size)
    ]
    errors = [process.communicate(timeout=280)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * size, "\n".join(errors)
    found = [np.load(tmp_path / f"{rank}.npy") for rank in range(size)]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
