"""What tests train: points on two sides of a plane, and a small net for them."""
import numpy as np

import graft


def samples(count=96, seed=5):
    """Points of 4 numbers whose class is the sign of their first."""
    x = np.random.default_rng(seed).standard_normal((count, 4)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(np.int64)


def trainer(**options):
    options.setdefault("optimizer", graft.Adam(lr=0.02))
    return graft.Trainer(graft.new("mlp", (4,), 2, seed=1), **options)


def fit(t, data, **options):
    options.setdefault("verbose", False)
    return t.fit(data, **options)
