"""Inference."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from . import _core
from .error import Error
from .model import Model, load


class Session:
    """Runs a model, given as such or as a file, and shares its weights.

    `session(x)` gives the output, or a list of outputs where there are several; `run` always gives
    a dict by name. Inputs are arrays in the model's order, or named. Sequences are lists, maps are
    dicts. Plans are made for each new set of shapes and kept.
    """

    def __init__(self, model: Model | str | os.PathLike[str], *, device: str = "auto",
                 weights_change: bool = False, outputs: Sequence[str] = ()):
        """`weights_change`: the model is being trained, or `set_weights` is called, and the session
        shall follow. `outputs`: names of values anywhere in the graph to give in place of the
        model's outputs."""
        if not isinstance(model, Model):
            model = load(model)
        self._core = _core.Session(model._core, device, weights_change, list(outputs))

    @property
    def input_names(self) -> list[str]:
        """The inputs without a default value, in the model's order."""
        return self._core.input_names

    @property
    def output_names(self) -> list[str]:
        """The outputs in the model's order."""
        return self._core.output_names

    def run(self, *inputs: Any, **named: Any) -> dict[str, Any]:
        """The outputs by name."""
        return dict(zip(self.output_names, self._run(inputs, named)))

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        outputs = self._run(inputs, named)
        return outputs[0] if len(outputs) == 1 else outputs

    def bind(self, *inputs: Any, **named: Any) -> BoundRun:
        """A run on fixed memory, for these types and shapes. Threads that have one each run at the
        same time, and share the weights. On the CPU only, where arrays lie."""
        return BoundRun(self, self._core.bind(in_order(self.input_names, inputs, named)))

    def set_weights(self, weights: dict[str, Any]) -> None:
        """Copies arrays into weights, by name; the model, which shares its weights with the session,
        has them too. Wants `weights_change`. No bound run may run meanwhile."""
        self._core.set_weights(weights)

    def _run(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        return self._core.run(in_order(self.input_names, inputs, named))

    def __repr__(self) -> str:
        return f"<graft.Session {', '.join(self.input_names)} -> {', '.join(self.output_names)}>"


class BoundRun:
    """A run on fixed memory, made by `Session.bind`: write into `inputs`, call `run()`, read
    `outputs`. Nothing is copied or allocated. Not for use by two threads at once."""

    def __init__(self, session: Session, core: Any):
        self._core = core
        self._inputs = dict(zip(session.input_names, core.inputs))
        self._outputs = dict(zip(session.output_names, core.outputs))

    @property
    def inputs(self) -> dict[str, Any]:
        """What a run reads: the arrays that were bound, or copies of those in another order or
        type, and of those that may not be written."""
        return self._inputs

    @property
    def outputs(self) -> dict[str, Any]:
        """What a run writes."""
        return self._outputs

    def run(self) -> None:
        """Returns when the outputs are complete."""
        self._core.run()


def in_order(names: list[str], given: Sequence[Any], named: dict[str, Any]) -> list[Any]:
    """One input a name, of those given by place and by name."""
    inputs = list(given)
    if len(inputs) == 1 and isinstance(inputs[0], dict) and not named:
        inputs, named = [], inputs[0]
    rest = names[len(inputs):]
    unknown = [name for name in named if name not in rest]
    missing = [name for name in rest if name not in named]
    if len(inputs) > len(names) or unknown or missing:
        found = [*names[:len(inputs)], *named] + ["..."] * max(0, len(inputs) - len(names))
        raise Error(f"inputs are {found}, wanted one each of {names}")
    return [*inputs, *(named[name] for name in rest)]
