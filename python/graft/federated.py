"""What federated training exchanges in place of data: parameters as one vector, and deltas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    import numpy as np

    from .trainer import Trainer


class FlatParameters:
    """What a trainer changes in its model, as one vector of f32.

    These are the parameters that train and, unless `statistics` is False, the running statistics of
    batch normalizations. All clients and the server must have the same model and choose the same.
    """

    def __init__(self, trainer: Trainer, *, statistics: bool = True):
        self._core = _core.FlatParameters(trainer.model._core,
                                          trainer._core.changed_names(statistics))

    @property
    def names(self) -> list[str]:
        """Whose numbers follow one another in the vector."""
        return self._core.names

    def __len__(self) -> int:
        """How many numbers they hold."""
        return len(self._core)

    def get(self) -> np.ndarray:
        """A copy of all numbers."""
        return self._core.get()

    def set(self, numbers: Any) -> None:
        """Writes such a vector into the model."""
        self._core.set(numbers)

    def delta(self, before: Any) -> np.ndarray:
        """What training has changed since `before`, which `get` gave."""
        return self._core.delta(before)


def clipped(delta: Any, most: float) -> np.ndarray:
    """The delta, scaled down where its Euclidean norm is above `most`."""
    return _core.clipped(delta, most)


def noised(delta: Any, deviation: float, seed: int) -> np.ndarray:
    """The delta with normal noise of that standard deviation on each number.

    After `clipped(delta, c)` a deviation of z * c is the Gaussian mechanism with noise multiplier
    z. Who knows the seed can take the noise off: draw it by `secrets.randbits(64)` and keep it.
    """
    return _core.noised(delta, deviation, seed)


def packed(delta: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The delta in 8 bits a number, and a scale for each 256 numbers, in about a quarter of the
    bytes. Numbers are rounded up or down by chance, drawn by `seed`, so that their mean stays."""
    return _core.packed(delta, seed)


def unpacked(numbers: Any, scales: Any) -> np.ndarray:
    """The delta again."""
    return _core.unpacked(numbers, scales)
