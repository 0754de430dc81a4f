"""Models: graphs in memory, their weights, and surgery on them."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    import numpy as np


class Weights(MutableMapping):
    """The float tensors of a model by name.

    `weights[name]` is a live view: what is written into it is in the model, and what training
    changes shows in it. `weights[name] = array` copies the array's numbers into the model; type and
    shape must fit.
    """

    def __init__(self, core: _core.Model, names: Sequence[str]):
        self._core = core
        self._names = tuple(names)
        self._known = frozenset(names)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._known:
            raise KeyError(name)
        return self._core.initializer(name)

    def __setitem__(self, name: str, array: Any) -> None:
        if name not in self._known:
            raise KeyError(name)
        self._core.set_initializer(name, array)

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"'{name}' belongs to the model's graph and stays; edit the model instead")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<graft.Weights of {len(self)} tensors>"


class Model:
    """A graph and what its file says about it. `load`, `parse` and `new` make models.

    The methods that change the graph return the model, so that they can be chained; one that raises
    leaves the graph as it was.
    """

    def __init__(self, core: _core.Model):
        self._core = core

    @property
    def inputs(self) -> list[_core.ValueInfo]:
        """Name, element type and shape of each input."""
        return self._core.inputs

    @property
    def outputs(self) -> list[_core.ValueInfo]:
        """Name, element type and shape of each output."""
        return self._core.outputs

    @property
    def nodes(self) -> list[_core.NodeInfo]:
        """The nodes in the order in which they run, with the types that inference finds."""
        return self._core.nodes

    @property
    def opset(self) -> int:
        """The version of ONNX's standard ops."""
        return self._core.opset

    @property
    def producer(self) -> str:
        """What wrote the file."""
        return self._core.producer

    @property
    def metadata(self) -> dict[str, str]:
        """The file's metadata; assign a dict to change them."""
        return dict(self._core.metadata)

    @metadata.setter
    def metadata(self, entries: dict[str, str]) -> None:
        self._core.set_metadata(list(entries.items()))

    @property
    def weights(self) -> Weights:
        """All float tensors of the file by name, as live views."""
        return Weights(self._core, self._core.weight_names())

    def truncate(self, where: str) -> Model:
        """Makes one value the only output; what follows it goes.

        `where` is the name of a value or node, "last:N" (the last N layers that have weights go),
        or a regular expression all of whose matches lead to one value.
        """
        self._core.truncate(where)
        return self

    def extract(self, inputs: Sequence[str], outputs: Sequence[str]) -> Model:
        """Cuts out what lies between values; without inputs, from those that the outputs need."""
        self._core.extract(list(inputs), list(outputs))
        return self

    def append(self, *layers: Any, after: str = "", seed: int = 0, init: str = "") -> Model:
        """Adds layers behind a value; each is a layer object or text ("relu,linear:10").

        `after` says where, as in `truncate`: an output gives its place to the layers, behind any
        other value they make one more output; without it, the only output. `seed` draws the weights
        of layers that have no seed of their own; `init` says how they start ("kaiming_normal",
        "normal:std=0.02", "zeros").
        """
        self._core.append(*layers, after=after, seed=seed, init=init)
        return self

    def insert(self, *layers: Any, after: str = "", before: str = "", seed: int = 0,
               init: str = "") -> Model:
        """Puts layers between a value and all that reads it, or before one node."""
        self._core.insert(*layers, after=after, before=before, seed=seed, init=init)
        return self

    def replace_head(self, classes: int, *, output: str = "", name: str = "", seed: int = 0,
                     init: str = "") -> Model:
        """Gives the last layer with weights that makes an output fresh ones, for other classes.

        What stands behind it, a Softmax say, stays. `name` starts the names of the new weights;
        without it they have the old ones.
        """
        self._core.replace_head(classes, output=output, name=name, seed=seed, init=init)
        return self

    def merge(self, other: Model, connect: dict[str, str] | None = None, prefix: str = "") -> Model:
        """Puts another model behind this one; `connect` maps outputs to that model's inputs.

        Without it, those of equal names are connected, or the only output and the only input.
        `prefix` goes before the other model's names. Tensors are shared with it.
        """
        self._core.merge(other._core, list((connect or {}).items()), prefix)
        return self

    def add_prefix(self, prefix: str) -> Model:
        """Puts a text before all names of values and nodes, inputs and outputs too."""
        self._core.add_prefix(prefix)
        return self

    def set_opset(self, version: int) -> Model:
        """Writes the nodes in the forms of another version of ONNX's ops, from 13 on."""
        self._core.set_opset(version)
        return self

    def set_precision(self, type: str) -> Model:
        """Lets an f32 model compute in "f16" or "bf16"; inputs and outputs stay as they are."""
        self._core.set_precision(type)
        return self

    def rename(self, old: str, new: str) -> Model:
        """Gives a value another name."""
        self._core.rename(old, new)
        return self

    def set_batch(self, batch: int | None = None) -> Model:
        """Sets the batch to a number, or leaves it open without one, wherever an exporter baked it in."""
        self._core.set_batch(batch)
        return self

    def add_lora(self, pattern: str = ".*", rank: int = 8, alpha: float | None = None,
                 seed: int = 0) -> list[str]:
        """Gives layers low-rank adapters and freezes the rest; returns their names.

        `pattern` must match the whole name of a layer, its weight or its node. Adapters are scaled
        by alpha / rank, without alpha by 1. They start without effect.
        """
        return self._core.add_lora(pattern, rank, alpha, seed)

    def merge_lora(self) -> Model:
        """Makes adapters part of their weights."""
        self._core.merge_lora()
        return self

    def save_lora(self, path: str | os.PathLike[str]) -> None:
        """Writes the adapters alone, as safetensors that PEFT knows."""
        self._core.save_lora(os.fspath(path))

    def apply_lora(self, path: str | os.PathLike[str], alpha: float | None = None) -> Model:
        """Adds the adapters of such a file; `alpha` where no file says it."""
        self._core.apply_lora(os.fspath(path), alpha)
        return self

    def freeze(self, pattern: str) -> Model:
        """Keeps weights from training by default, in the file too."""
        self._core.freeze(pattern)
        return self

    def unfreeze(self, pattern: str) -> Model:
        """Lets weights train again that were frozen so."""
        self._core.unfreeze(pattern)
        return self

    def insert_dropout(self, pattern: str, ratio: float = 0.5) -> Model:
        """Puts a Dropout behind the nodes or values of that name; only training draws."""
        self._core.insert_dropout(pattern, ratio)
        return self

    def set_norms(self, pattern: str, policy: str) -> Model:
        """Says how BatchNormalizations train: "train", "fixed" (statistics stay) or "frozen"."""
        self._core.set_norms(pattern, policy)
        return self

    def strip_probabilities(self) -> list[str]:
        """Lets outputs that end in Softmax or Sigmoid give logits; returns what went."""
        return self._core.strip_probabilities()

    def tie_copies(self) -> list[str]:
        """Makes one parameter of a matrix that is written twice; returns the names that went."""
        return self._core.tie_copies()

    def copy(self) -> Model:
        """A model that shares nothing with this one."""
        return Model(self._core.copy())

    def save(self, path: str | os.PathLike[str], external_data: str = "") -> None:
        """Writes an ONNX file, which appears complete or not at all.

        `external_data` names a file beside it for the large tensors; a model of more than 2 GiB
        needs one.
        """
        self._core.save(os.fspath(path), external_data)

    def to_bytes(self) -> bytes:
        """What `save` would write."""
        return self._core.to_bytes()

    def run(self, *inputs: Any, **named: Any) -> Any:
        """The outputs for these inputs: one array, or a list where there are several outputs.

        Makes a Session for this call; keep one for more than a few.
        """
        from .session import Session

        return Session(self)(*inputs, **named)

    def summary(self) -> None:
        """Prints a line a node, and how many numbers the model holds."""
        print(self._table())

    def _rows(self) -> list[tuple[str, str, str, int]]:
        weights = self.weights
        seen: set[str] = set()
        rows = []
        for node in self.nodes:
            fresh = [n for n in node.initializers if n in weights._known and n not in seen]
            seen.update(fresh)
            output = node.outputs[0] if node.outputs else None
            rows.append((output.name if output else node.name, node.op,
                         _shape_text(output), sum(weights[n].size for n in fresh)))
        return rows

    def _title(self) -> str:
        inputs = ", ".join(f"{i.name} {_shape_text(i)}" for i in self.inputs)
        outputs = ", ".join(f"{o.name} {_shape_text(o)}" for o in self.outputs)
        return f"{inputs} -> {outputs}; opset {self.opset}"

    def _total(self) -> str:
        weights = self.weights
        return f"{sum(array.size for array in weights.values()):,} numbers in {len(weights)} tensors"

    def _table(self) -> str:
        rows = [("value", "op", "shape", "numbers")]
        rows += [(n, op, shape, f"{count:,}" if count else "") for n, op, shape, count in self._rows()]
        widths = [min(40, max(len(row[i]) for row in rows)) for i in range(4)]
        lines = []
        for name, op, shape, count in rows:
            lines.append(f"{_clip(name, widths[0])}  {_clip(op, widths[1])}  "
                         f"{_clip(shape, widths[2])}  {count:>{widths[3]}}".rstrip())
        rule = "-" * max(len(line) for line in lines)
        return "\n".join([self._title(), rule, lines[0], rule, *lines[1:], rule, self._total()])

    def __repr__(self) -> str:
        return f"<graft.Model {self._title()}; {self._total()}>"

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{html.escape(op)}</td><td>{html.escape(shape)}"
            f"</td><td style='text-align:right'>{f'{count:,}' if count else ''}</td></tr>"
            for name, op, shape, count in self._rows())
        return ("<table><caption>" + html.escape(self._title()) + "</caption><thead><tr><th>value"
                "</th><th>op</th><th>shape</th><th>numbers</th></tr></thead><tbody>" + body +
                "</tbody></table><p>" + html.escape(self._total()) + "</p>")


def _shape_text(info: _core.ValueInfo | None) -> str:
    if info is None or info.shape is None:
        return "?"
    dims = ",".join("?" if dim is None else str(dim) for dim in info.shape)
    return f"{info.dtype}[{dims}]"


def _clip(text: str, width: int) -> str:
    """The text in that width; of a longer one its end, which tells more than its beginning."""
    return text.ljust(width) if len(text) <= width else "…" + text[len(text) - width + 1:]


def load(path: str | os.PathLike[str]) -> Model:
    """Reads an ONNX file."""
    return Model(_core.load(os.fspath(path)))


def parse(data: bytes, folder: str | os.PathLike[str] = "") -> Model:
    """A model from the bytes of a file; `folder` is where its data files lie, if it has any."""
    return Model(_core.parse(data, os.fspath(folder)))


def new(net: str, input: Sequence[int], classes: int, seed: int = 0) -> Model:
    """A fresh net, one of `graft.nets()`, for samples of shape `input`: new("lenet", (1, 28, 28), 10)."""
    return Model(_core.new(net, list(input), classes, seed))
