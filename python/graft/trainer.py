"""Training."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._core import Evaluation
from .callbacks import Callback
from .data import Source, is_array, split_item
from .error import Error
from .history import History, epoch_text
from .interrupt import Interrupt
from .model import Model
from .session import Session, in_order

if TYPE_CHECKING:
    LossLike = str | _core.Loss | Callable[[_core.GraphValue, _core.GraphValue], _core.GraphValue]


class Trainer:
    """Trains a model where it lies: its weights are the model's own.

    `fit` runs whole epochs; `step` and `gradients` are for loops of one's own. A trainer refuses to
    go on once the model's graph has been edited.
    """

    def __init__(self, model: Model, loss: LossLike = "cross_entropy", optimizer: Any = "adamw", *,
                 trainable: str = "", freeze: str = "", parameters: Sequence[str] = (),
                 tied: Sequence[Sequence[str]] = (), output: str = "", device: str = "auto",
                 precision: str = "f32", state_precision: str = "f32",
                 clip_norm: float | None = None, clip_value: float | None = None,
                 schedule: str | _core.Schedule = "constant", total_updates: int = 0,
                 accumulate: int = 1, seed: int = 0, memory: int | str = 0,
                 groups: Sequence[_core.ParameterGroup] = (), layer_decay: float = 1.0,
                 ema: float = 0.0, debug_nan: bool = False):
        """`loss` is text as on the command line ("cross_entropy:ignore_index=255",
        "y=cross_entropy+z=0.5*mse"; names: `graft.loss_names()`), a Loss, or a function of
        prediction and target. `optimizer` is a name or an object. `trainable` and `freeze` are
        regular expressions over the names of parameters; `memory` ("512M") is the most that a step
        may take beside parameters and optimizer state. `groups` have a rate, decay or schedule of
        their own; `ema` is the decay of averaged weights, by which the model is measured. With
        `debug_nan` a step stops at the first node that makes a NaN or an infinity, and names it.
        The rest is as in C++'s TrainOptions.
        """
        self.model = model
        options = {
            "loss": _loss(loss), "optimizer": optimizer, "trainable": trainable, "freeze": freeze,
            "parameters": list(parameters), "tied": [list(group) for group in tied],
            "output": output, "device": device, "precision": precision,
            "state_precision": state_precision, "clip_norm": clip_norm, "clip_value": clip_value,
            "schedule": _core.schedule_from_name(schedule) if isinstance(schedule, str) else schedule,
            "total_updates": total_updates, "accumulate": accumulate, "seed": seed,
            "memory": parse_bytes(memory), "groups": list(groups), "layer_decay": layer_decay,
            "ema": ema, "debug_nan": debug_nan,
        }
        self._core = _core.Trainer(model._core, options)
        self.keeps_averages = ema > 0
        self._device = device
        self._overlaps: bool = self._core.overlaps
        self._output = output
        self._total_updates = total_updates
        self._accumulate = accumulate
        self._session: Session | None = None

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The parameters that train, by name, as live views."""
        return {name: self._core.parameter(name) for name in self._core.parameter_names}

    @property
    def updates(self) -> int:
        """The number of updates done so far."""
        return self._core.updates

    @property
    def learning_rate(self) -> float:
        """The rate of the next update, scaled by the schedule; what is assigned is the base rate."""
        return self._core.learning_rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._core.set_base_learning_rate(rate)

    def learning_rate_of(self, parameter: str) -> float:
        """That of one parameter; 0 while it is frozen."""
        return self._core.learning_rate_of(parameter)

    def use_averages(self, on: bool = True) -> None:
        """From now on the model holds the averages that `ema` keeps, to be saved, or again what is
        trained, which alone can train on."""
        self._core.use_averages(on)

    @contextlib.contextmanager
    def measured(self) -> Iterator[Model]:
        """While it is entered, the model holds what `evaluate` measures: its averages, where `ema`
        keeps any and a step was made."""
        were_used = self._core.uses_averages
        self.use_averages()
        try:
            yield self.model
        finally:
            self.use_averages(were_used)

    @property
    def memory(self) -> dict[str, int]:
        """Bytes: "arena" of the largest step so far, "parameters" that train, optimizer "state"."""
        return self._core.memory

    @property
    def prediction(self) -> np.ndarray:
        """What the model gave in the last step, before its update."""
        return self._core.prediction()

    def step(self, x: Any, y: Any) -> float:
        """One step on one batch; returns the loss before the update.

        `x` is an array, or a list or dict of arrays where the model has several inputs; `y` is a
        tuple of arrays where the loss has several targets.
        """
        return self._core.step(self._batch(x, y)).loss

    def gradients(self, x: Any, y: Any) -> dict[str, np.ndarray]:
        """The gradients of the loss by parameter, before any clipping; no parameter changes. Running
        statistics of batch normalizations follow the batch, as in a step. With parameters of 16 bits
        each call plans its step anew."""
        return self._core.gradients(self._batch(x, y))

    def plan(self, x: Any, y: Any) -> None:
        """Gets ready for such batches, so that the first step is as fast as the others."""
        self._core.plan(self._batch(x, y))

    def evaluate(self, data: Any, *, batch: int = 256) -> Evaluation:
        """Loss and accuracy of the model as it is now, in inference form, on data as `fit` takes
        them; of a spec that has one, on the test split."""
        return self._evaluate(self._source(data, batch, False, 0, _held_back(data)))

    def predict(self, x: Any, *, batch: int | None = None) -> np.ndarray:
        """The judged output for an array (a list or dict of arrays where the model has several
        inputs), in batches of `batch` rows; or for a Loader or an iterable of batches, whose
        targets are left aside."""
        if not isinstance(x, (dict, list)) and not is_array(x):
            source = self._source(x, batch or 256, False, 0, _held_back(x))
            parts = [self._predict(b.arrays()[0]) for b in source.batches(self._core.batch)]
            return np.concatenate(parts)
        inputs = self._inputs(x)
        if batch is None:
            return self._predict(inputs)
        rows = len(inputs[0])
        return np.concatenate([self._predict([array[first:first + batch] for array in inputs])
                               for first in range(0, max(rows, 1), batch)])

    def fit(self, data: Any, epochs: int = 1, *, batch: int = 32, shuffle: bool = True,
            seed: int = 0, validation: Any = None, callbacks: Sequence[Callback] = (),
            verbose: bool = True) -> History:
        """Trains for whole epochs and returns what they did.

        `data`: arrays (x, y), a Loader, a spec like "fashion-mnist", any iterable of batches (a
        PyTorch DataLoader), or a data set that is read by index (Hugging Face's, with
        `with_format("numpy")`). `batch`, `shuffle` and `seed` are for data that are no batches yet.
        `validation` data are measured after each epoch. `verbose` prints a line an epoch, and shows
        a bar where tqdm is installed.

        Ctrl-C ends the training after the running step: callbacks save what they save, and the
        history so far, marked `interrupted`, is returned. A second Ctrl-C raises at once.
        """
        if epochs < 0:
            raise Error(f"epochs is {epochs}, wanted at least 0")
        source = self._source(data, batch, shuffle, seed, "train")
        held_back = None
        if validation is not None:
            held_back = self._source(validation, 256, False, 0, _held_back(validation))
        self._set_total_updates(epochs * len(source))
        history = History()
        with Interrupt() as interrupt:
            for callback in callbacks:
                callback.on_start(self)
            try:
                self._fit(source, held_back, epochs, callbacks, verbose, history, interrupt)
            except Error as error:
                history.error = error
                raise
            finally:
                history.interrupted = interrupt.asked
                for callback in callbacks:
                    callback.on_end(self, history)
                history.interrupted = interrupt.asked  # one of them may have been interrupted
        if history.interrupted:
            print(f"graft: interrupted after {self.updates} updates", file=sys.stderr)
        return history

    def _fit(self, source: Source, held_back: Source | None, epochs: int,
             callbacks: Sequence[Callback], verbose: bool, history: History,
             interrupt: Interrupt) -> None:
        finite = [name for name, array in self.parameters.items() if np.isfinite(array).all()]
        for epoch in range(1, epochs + 1):
            start = time.perf_counter()
            means = _Means(self._core)
            batches = _bar(source.batches(self._core.batch), len(source), epoch, epochs, verbose, means)
            goes_on = self._epoch(batches, means, callbacks, interrupt)
            self._require_finite(finite)
            record = {"epoch": epoch, **means.record(), "learning_rate": self.learning_rate,
                      "samples": means.samples, "seconds": time.perf_counter() - start}
            if held_back is not None and not interrupt.asked:
                found = self._evaluate(held_back, interrupt)
                if not interrupt.asked:  # else of a part of the data
                    record["val_loss"] = found.loss
                    if found.accuracy is not None:
                        record["val_accuracy"] = found.accuracy
            history.epochs.append(record)
            if verbose:
                print(epoch_text(record), flush=True)
            if interrupt.asked:
                return
            if not _all_go_on(c.on_epoch(self, record) for c in callbacks) or not goes_on:
                return

    def _epoch(self, batches: Iterator[Any], means: _Means, callbacks: Sequence[Callback],
               interrupt: Interrupt) -> bool:
        """Whether all callbacks want to go on. A card is at the next step when one is reported, unless
        a callback looks at it."""
        started: list[Any] = []

        def report(count: int) -> bool:
            goes_on = True
            for _ in range(count):
                found = self._core.finish(started.pop(0))
                means.add(found)
                goes_on = _all_go_on(c.on_step(self, found) for c in callbacks) and goes_on
            return goes_on

        for b in batches:
            started.append(self._core.start(b))
            goes_on = report(len(started) - 1)
            looks = any([c.looks_at_step(self) for c in callbacks])
            if goes_on and self._overlaps and not looks and not interrupt.asked:
                continue
            goes_on = report(1) and goes_on
            if not goes_on or interrupt.asked:
                return goes_on
        return report(len(started))

    def _evaluate(self, source: Source, interrupt: Interrupt | None = None) -> Evaluation:
        means = _Means(self._core)
        with self.measured():
            for b in source.batches(self._core.batch):
                means.add(self._core.evaluate(b))
                if interrupt is not None and interrupt.asked:
                    break
        record = means.record()
        return Evaluation(record["loss"], record.get("accuracy"), means.samples, means.judged)

    def _predict(self, inputs: list[Any]) -> np.ndarray:
        """Of one batch, between steps of other threads; as `evaluate` refuses an edited model."""
        def run() -> np.ndarray:
            if self._session is None:
                self._session = Session(self.model, device=self._device, weights_change=True)
            outputs = self._session.run(*inputs)
            scores: np.ndarray = outputs[self._output or self._session.output_names[0]]
            return scores

        return self._core.alone(run)

    def _source(self, data: Any, batch: int, shuffle: bool, seed: int, split: str) -> Source:
        return Source(data, batch=batch, shuffle=shuffle, seed=seed, split=split,
                      input_names=self._core.input_names, input_types=self._core.input_types,
                      target_type=self._core.target_type, ignore_index=self._core.ignore_index)

    def _inputs(self, x: Any) -> list[Any]:
        if isinstance(x, dict):
            return in_order(self._core.input_names, (), x)
        return list(x) if isinstance(x, (list, tuple)) else [x]

    def _batch(self, x: Any, y: Any) -> _core.Batch:
        return self._core.batch(self._inputs(x), y)

    def _set_total_updates(self, batches: int) -> None:
        if self._total_updates == 0 and batches > 0:
            self._core.set_total_updates(self.updates + max(1, batches // self._accumulate))

    def _require_finite(self, names: Sequence[str]) -> None:
        for name in names:
            if not np.isfinite(self._core.parameter(name)).all():
                raise Error(f"parameter '{name}' holds numbers that are not finite after "
                            f"{self.updates} updates; try a smaller learning rate or gradient "
                            "clipping", "numeric")

    def __repr__(self) -> str:
        return (f"<graft.Trainer of {self._core.parameter_count:,} numbers in "
                f"{len(self._core.parameter_names)} parameters, {self.updates} updates>")


class _Means:
    """Means over batches, as if they had been one."""

    def __init__(self, core: _core.Trainer) -> None:
        self.samples = 0
        self._core = core
        self._loss = core.LossMean()
        self._correct = 0.0
        self.judged = 0

    def add(self, report: _core.StepReport | _core.Evaluation) -> None:
        self.samples += report.samples
        self._core.add_loss(self._loss, report)
        self._correct += (report.accuracy or 0.0) * report.judged
        self.judged += report.judged

    def record(self) -> dict[str, float]:
        record = {"loss": self._loss.value}
        if self.judged > 0:
            record["accuracy"] = self._correct / self.judged
        return record


def _all_go_on(answers: Any) -> bool:
    """Every callback is asked, whatever the others say. A comparison of NumPy's numbers is a bool too."""
    return not any([isinstance(answer, (bool, np.bool_)) and not answer for answer in answers])


def _bar(batches: Iterator[Any], count: int, epoch: int, epochs: int, verbose: bool,
         means: _Means) -> Iterator[Any]:
    """The batches, under a bar where there is tqdm and somebody to look at it."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        tqdm = None
    if not verbose or tqdm is None:
        yield from batches
        return
    with tqdm(batches, total=count or None, desc=f"epoch {epoch}/{epochs}", leave=False,
              disable=None, unit="batch") as bar:
        for b in bar:
            yield b
            bar.set_postfix({k: f"{v:.4f}" for k, v in means.record().items()}, refresh=False)


def _loss(loss: LossLike) -> _core.Loss:
    if isinstance(loss, str):
        return _core.loss_from_spec(loss)
    if isinstance(loss, _core.Loss):
        return loss
    if callable(loss):
        return _core.custom_loss(loss, name=getattr(loss, "__name__", "custom"))
    raise Error(f"found a {type(loss).__name__} as loss, wanted a name, a Loss or a function of "
                "prediction and target")


def _held_back(data: Any) -> str:
    """The split to measure with."""
    return "test" if isinstance(data, str) and _core.has_test_split(data) else "train"


def parse_bytes(size: int | str) -> int:
    """A number of bytes, of which text may end in K, M, G or T: "512M"."""
    wrong = Error(f"found {size!r} as a size, wanted a number of bytes like 512M, 0 or more")
    try:
        if isinstance(size, str):
            text = size.strip().upper().removesuffix("B").removesuffix("I")
            power = "KMGT".find(text[-1:]) + 1 if text else 0
            count = int(float(text[:-1] if power else text) * 1024**power)
        else:
            count = int(size)
    except (ValueError, TypeError, OverflowError):
        raise wrong from None
    if not 0 <= count < 2**63:
        raise wrong
    return count
