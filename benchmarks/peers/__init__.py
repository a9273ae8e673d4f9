"""Every peer side by side: data × ranker × metric × split, and the pages made from it.

See ``python -m benchmarks.peers --help``.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # read when NumPy is loaded: one thread for everyone
