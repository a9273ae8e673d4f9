"""Attacks on toprank: strategies for whole problems, and fuzzers of everything that reads a file.

``fuzz.strategies``
    Hypothesis strategies: rankers with valid and invalid parameters, ugly data, weights, groups
    and pairs. The tests in ``tests/stress`` draw from them.
``fuzz.readers``
    The tables of the command line (CSV, TSV, gzip, bzip2, Parquet, Feather, Arrow streams) and
    ``blocks.from_parquet``: a file is read whole and alike by every reader, or refused in a
    sentence.
``fuzz.model_loader``
    The files of models: what is inside of the zip is changed (a node of the JSON, an array, a
    number of a tree) and the checksum made right again. A file is a model that can be shown,
    scored, explained, watched and exported, or a ModelError.

Both are also watched for harm (``fuzz.guard``): writing, starting processes, connecting,
unpickling. The fuzzers are guided by coverage: by atheris where it is installed (``pip install
atheris``; without a wheel it needs a clang with libFuzzer), by ``fuzz.engine`` everywhere else, or
with ``--engine own``. From the root of the checkout:

.. code-block:: sh

    python -m fuzz readers --minutes 10 --folder /tmp/fuzzed
    python -m fuzz model_loader --minutes 10 --folder /tmp/fuzzed --seed 7
    python -m fuzz readers --replay /tmp/fuzzed/readers/findings/FILE.bin

The exit status is 1 if anything was found; each finding is kept with its smallest input and its
traceback, and its path is printed. The seed is printed too: with the same corpus (or none) the own
engine reads the same files again. Most of what is new comes in the first two minutes. What was
found and put right is in ``tests/stress/test_fuzz_findings.py``, which also runs both attacks in
small.
"""
