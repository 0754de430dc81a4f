"""What the scripts beside this one share: cases of an op, written as JSON."""
import json
import os
import zlib

import numpy as np

DTYPES = {"float64": "f32", "int64": "i64", "int32": "i32", "uint8": "u8", "bool": "bool"}

_cases = {}


def uniform(key, shape, low=-1.0, high=1.0):
    """Numbers of three digits, as f32 holds them: the same for the same key."""
    random = np.random.default_rng(zlib.crc32(key.encode()))
    return f32(np.round(random.uniform(low, high, shape), 3))


def distinct(key, shape):
    """A shuffled grid in (-1, 1): no two numbers are near each other, none is near 0."""
    size = int(np.prod(shape))
    random = np.random.default_rng(zlib.crc32(key.encode()))
    return f32(np.round((random.permutation(size) + 0.5) / size * 2 - 1, 3)).reshape(shape)


def f32(values):
    """Rounds to f32; computed is in f64."""
    return np.asarray(values, np.float32).astype(np.float64)


def ints(*values):
    return np.array(values, np.int64)


class Constant:
    """An input that is known before the run."""

    def __init__(self, array):
        self.array = np.asarray(array)


class ChannelsLast:
    """An image [N,C,...] whose elements lie in channels-last order."""

    def __init__(self, array):
        self.array = np.asarray(array)


def case(op, name, inputs, outputs, attributes=None, **tolerance):
    """One call of `op`: what it is given (None: left out) and what it must give (None: anything).
    `relative` and `absolute` replace the default tolerance."""
    _cases.setdefault(op, []).append({"name": name, "attributes": attributes or {},
                                      "inputs": inputs, "outputs": outputs, **tolerance})


def _number(value):
    """The shortest text that is the same f32; JSON has no word for infinity."""
    if isinstance(value, (np.bool_, np.integer)):
        return int(value)
    return float(str(np.float32(value))) if np.isfinite(value) else str(float(value))


def _tensor(value):
    if value is None:
        return None
    array = np.asarray(value.array if isinstance(value, (Constant, ChannelsLast)) else value)
    elements = array
    result = {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape)}
    if isinstance(value, Constant):
        result["constant"] = True
    if isinstance(value, ChannelsLast):
        result["layout"] = "channels_last"
        elements = np.moveaxis(array, 1, -1)
    result["values"] = [_number(number) for number in elements.ravel()]
    return result


def _lines(name, tensors):
    rows = ",\n    ".join(json.dumps(_tensor(tensor), separators=(",", ":")) for tensor in tensors)
    return f'   "{name}": [\n    {rows}]'


def _text(one):
    head = {key: value for key, value in one.items() if key not in ("inputs", "outputs")}
    return "  {" + json.dumps(head)[1:-1] + ",\n" + \
        _lines("inputs", one["inputs"]) + ",\n" + _lines("outputs", one["outputs"]) + "}"


def write_all(folder):
    """One file for each op, of the cases since the last call. Returns how many bytes they have."""
    os.makedirs(folder, exist_ok=True)
    size = 0
    for op, cases in sorted(_cases.items()):
        content = "[\n" + ",\n".join(_text(one) for one in cases) + "\n]\n"
        with open(os.path.join(folder, op + ".json"), "w", encoding="ascii") as file:
            file.write(content)
        size += len(content)
    _cases.clear()
    return size
