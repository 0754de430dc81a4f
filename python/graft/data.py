"""Data: what batches are made of."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from . import _core
from .error import Error

# A batch as it goes round in Python: (arrays of the inputs, array of the target).
PythonBatch = tuple[Any, Any]
_TARGETS = ("target", "targets", "label", "labels", "y")


def is_array(item: Any) -> bool:
    """Whether it holds elements: DLPack, NumPy's protocol, or a buffer that is no text."""
    if hasattr(item, "__dlpack__") or hasattr(item, "__array__"):
        return True
    return isinstance(item, memoryview) or type(item).__name__ == "array"


def split_item(item: Any, input_names: Sequence[str] = ()) -> PythonBatch:
    """(inputs, target) of what a data set gives: (x, y), (x1, x2, y), ((x1, x2), y), ({name: x}, y),
    or a dict whose target is called target, targets, label, labels or y. Inputs in a dict are the
    model's, or else all in their order."""
    if isinstance(item, dict):
        keys = [key for key in _TARGETS if key in item and key not in input_names]
        if len(keys) != 1:
            raise Error(f"a batch has the keys {list(item)}, wanted one of {list(_TARGETS)} among them")
        given = {name: array for name, array in item.items() if name != keys[0]}
        return _inputs_of(given, input_names), item[keys[0]]
    if isinstance(item, (tuple, list)) and len(item) >= 2:
        *inputs, target = item
        if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)):
            inputs = list(inputs[0])
        elif len(inputs) == 1 and isinstance(inputs[0], dict):
            inputs = _inputs_of(inputs[0], input_names)
        return inputs, target
    raise Error(f"found a {type(item).__name__} as batch, wanted (x, y), (x1, x2, y) or a dict")


def _inputs_of(given: dict[str, Any], input_names: Sequence[str]) -> list[Any]:
    """Those that are the model's, or all in their order where none is."""
    return [given[name] for name in input_names if name in given] or list(given.values())


class Loader:
    """Batches of data that can be read in any order, made ahead on a thread of their own.

    `data` is a tuple of arrays (x, y) or (x1, x2, y), whose first axis runs over the samples and
    whose last is the target; or a spec as on the command line: "fashion-mnist", "mnist:DIR",
    "cifar10:DIR", "csv:FILE", "npz:FILE". Arrays are shared, not copied, where their element types
    are the model's. Iterating gives (x, y) with arrays of one's own; the order is made from `seed`
    and the number of the epoch.

    `transforms` change input 0 of each sample: Normalize, RandomCrop, RandomHorizontalFlip; that of
    a spec whose statistics are known can be normalized by "known". A label of arrays that is
    `ignore_index` is no class: losses with that setting leave it aside; `fit` says it by itself.
    """

    def __init__(self, data: Any, batch: int = 32, *, shuffle: bool = False, seed: int = 0,
                 drop_last: bool = False, split: str = "train", samples: int | None = None,
                 classes: int = 0, prefetch: int = 2, transforms: Sequence[Any] | str = (),
                 ignore_index: int | None = None):
        if isinstance(data, os.PathLike):
            data = os.fspath(data)
        if not isinstance(data, str) and not _is_arrays(data):
            raise Error(f"found a {type(data).__name__} as data, wanted a tuple of arrays (x, y) or a "
                        "spec like 'fashion-mnist'; other iterables go to fit as they are")
        if transforms == "known":
            known = _core.known_normalization(data) if isinstance(data, str) else None
            if known is None:
                raise Error("transforms='known': the statistics of these data are not known; give "
                            "[graft.Normalize(mean, deviation)]")
            transforms = [known]
        self._data = data
        self._split = split
        self._samples = samples
        self._classes = classes
        self._ignore_index = ignore_index
        self._options: dict[str, Any] = {"batch": batch, "shuffle": shuffle, "seed": seed, "drop_last": drop_last,
                         "prefetch": prefetch, "transforms": list(transforms)}
        self._opened: dict[Any, _core.DataLoader] = {}

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return self.open().batches

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batches():
            inputs, target = batch.arrays()
            yield (inputs[0] if len(inputs) == 1 else inputs), target

    def open(self, input_types: Sequence[str] = (), target_type: str = "",
             input_names: Sequence[str] = (), ignore_index: int | None = None) -> _core.DataLoader:
        """The loader that gives these element types."""
        if self._ignore_index is not None:
            ignore_index = self._ignore_index
        key = (tuple(input_types), target_type, ignore_index)
        if not self._opened or (input_types and key not in self._opened):
            data = self._dataset(list(input_types), target_type, input_names, ignore_index)
            if self._samples is not None:
                data = _core.first_samples(data, self._samples)
            self._opened[key] = _core.DataLoader(data, **self._options)
        return self._opened.get(key) or next(iter(self._opened.values()))

    def batches(self, *types: Any) -> Iterator[_core.Batch]:
        """One epoch; a batch is valid until the next is asked for."""
        epoch = _core.Epoch(self.open(*types))
        while (batch := epoch.next()) is not None:
            yield batch

    def _dataset(self, input_types: list[str], target_type: str,
                 input_names: Sequence[str], ignore_index: int | None) -> _core.Dataset:
        if isinstance(self._data, str):
            return _core.dataset_of_spec(self._data, self._split, input_types, target_type)
        *inputs, target = self._data
        names = list(input_names) if len(input_names) == len(inputs) else []
        names = names or [f"x{i}" if i else "x" for i in range(len(inputs))]
        return _core.dataset_of_arrays(list(zip(names, inputs)), target, self._classes,
                                       input_types, target_type, ignore_index)


def _is_arrays(data: Any) -> bool:
    return isinstance(data, tuple) and len(data) >= 2 and all(is_array(item) for item in data)


def _is_indexed(data: Any) -> bool:
    """Whether samples are read one by one, by their index."""
    if isinstance(data, (list, tuple, deque, dict, Loader)) or is_array(data):
        return False
    return hasattr(data, "__getitem__") and hasattr(data, "__len__")


class Rows:
    """Batches of what is read sample by sample: Hugging Face's data sets, by their columns, and
    anything with `__getitem__` and `__len__`, whose samples are stacked."""

    def __init__(self, data: Any, batch: int, shuffle: bool, seed: int):
        self._data = data
        self._batch = batch
        self._shuffle = shuffle
        self._seed = seed
        self._epoch = 0
        self._has_columns = hasattr(data, "column_names")

    def __len__(self) -> int:
        return -(-len(self._data) // self._batch)

    def __iter__(self) -> Iterator[Any]:
        order = np.arange(len(self._data))
        if self._shuffle:
            np.random.default_rng((self._seed, self._epoch)).shuffle(order)
        self._epoch += 1
        for first in range(0, len(order), self._batch):
            rows = order[first:first + self._batch].tolist()
            yield self._data[rows] if self._has_columns else _stack([self._data[i] for i in rows])


def _stack(samples: list[Any]) -> Any:
    """One batch of samples, part by part."""
    first = samples[0]
    if isinstance(first, dict):
        return {key: np.stack([np.asarray(sample[key]) for sample in samples]) for key in first}
    return tuple(np.stack([np.asarray(sample[i]) for sample in samples]) for i in range(len(first)))


class Source:
    """Any data, as a trainer reads it: `batches(make)` gives one epoch of core batches."""

    def __init__(self, data: Any, *, batch: int, shuffle: bool, seed: int, split: str,
                 input_names: Sequence[str], input_types: Sequence[str], target_type: str,
                 ignore_index: int | None):
        self._names = list(input_names)
        self._types = (list(input_types), target_type, self._names, ignore_index)
        if isinstance(data, dict) and all(is_array(item) for item in data.values()):
            inputs, target = split_item(data, self._names)
            data = (*inputs, target)
        if isinstance(data, (str, os.PathLike)) or _is_arrays(data):
            data = Loader(data, batch, shuffle=shuffle, seed=seed, split=split)
        elif _is_indexed(data):
            data = Rows(data, batch, shuffle, seed)
        if not isinstance(data, (Loader, Iterable)):
            raise Error(f"found a {type(data).__name__} as data, wanted arrays (x, y), a Loader, a spec "
                        "like 'fashion-mnist' or an iterable of batches")
        self._data: Any = data
        if isinstance(data, Loader):
            data.open(*self._types)

    def __len__(self) -> int:
        """The number of batches in an epoch; 0 where the data do not say."""
        if isinstance(self._data, Loader):
            return self._data.open(*self._types).batches
        try:
            return len(self._data)
        except TypeError:
            return 0

    def batches(self, make: Callable[[list[Any], Any], _core.Batch]) -> Iterator[_core.Batch]:
        """One epoch. Throws Error where the data are at their end already."""
        if isinstance(self._data, Loader):
            yield from self._data.batches(*self._types)
            return
        count = 0
        for item in self._data:
            count += 1
            inputs, target = split_item(item, self._names)
            yield make(list(inputs), target)
        if count == 0:
            raise Error("the data gave no batch; a generator gives its batches once, so give a list, "
                        "or an object whose __iter__ starts anew each epoch")
