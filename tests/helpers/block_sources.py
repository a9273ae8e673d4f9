"""A block source that hands out given blocks, for tests of what is done over blocks."""

import pickle

import numpy as np

from toprank.blocks import Block, BlockSource


class Pieces(BlockSource):
    """Blocks given one by one, rebuilt at every pass and merged in any order.

    Parameters
    ----------
    pieces : list of tuples
        (X, y, weight) of each block, as far as they are needed.
    order : sequence of int, optional
        The order in which contributions are made and merged; by default that of the pieces.
    seed : int, optional
        Merge in a tree of random shape instead.
    """

    def __init__(self, pieces, order=None, seed=None):
        self.pieces = pieces
        self.order = range(len(pieces)) if order is None else order
        self.seed = seed
        self.n_features = pieces[0][0].shape[1]

    def map_reduce(self, sweep, state):
        sweep, state = pickle.loads(pickle.dumps((sweep, state)))  # as a cluster would
        partials = [sweep.local(Block(i, *self.pieces[i]), state) for i in self.order]
        rng = None if self.seed is None else np.random.default_rng(self.seed)
        while len(partials) > 1:
            chosen = [0, 0] if rng is None else [rng.integers(len(partials) - i) for i in (0, 1)]
            left, right = (partials.pop(i) for i in chosen)
            partials.insert(0, sweep.merge(left, right))
        return partials[0]

    def write_scores(self, score, to=None):
        return np.concatenate([score(X) for X, *_ in self.pieces])
