"""What is called while a model trains."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._core import StepReport
from .error import Error

if TYPE_CHECKING:
    from .history import History
    from .trainer import Trainer


class Callback:
    """Base of callbacks: each method does nothing, and is called where its name says.

    `on_step` and `on_epoch` stop the training when they return False.
    """

    def on_start(self, trainer: Trainer) -> None:
        """Before the first step."""

    def on_step(self, trainer: Trainer, report: StepReport) -> bool | None:
        """After each step."""

    def looks_at_step(self, trainer: Trainer) -> bool:
        """Asked behind each step: whether `on_step` has to see the model as the step leaves it, or may
        stop the training there. If no callback does, a card may be at the next step when `on_step`
        is called, so that it never waits for Python. True where `on_step` does anything."""
        return type(self).on_step is not Callback.on_step

    def on_epoch(self, trainer: Trainer, record: dict[str, Any]) -> bool | None:
        """After each epoch; `record` is what the History holds of it."""

    def on_end(self, trainer: Trainer, history: History) -> None:
        """After the last step, also when the training was interrupted or `history.error` ended it."""


def _monitored(record: dict[str, Any], name: str) -> float:
    value = record.get(name)
    if value is None:
        known = ", ".join(key for key in record if isinstance(record[key], float))
        raise Error(f"the epoch has no '{name}' to watch; it has {known}"
                    + ("; give fit validation data" if name.startswith("val_") else ""))
    return float(value)


def _is_better(value: float, best: float | None, name: str, min_delta: float = 0.0) -> bool:
    """Less is better, but for accuracies."""
    if math.isnan(value):
        return False
    if best is None:
        return True
    return value > best + min_delta if "accuracy" in name else value < best - min_delta


class Checkpoint(Callback):
    """Keeps the model in a folder: `last.onnx` after each epoch and when training ends or is
    interrupted, `best.onnx` whenever `monitor` has improved, and `history.jsonl`. With `ema`,
    `best.onnx` holds the averages, which were measured, and `last.onnx` what is trained.

    `monitor` is "val_loss" where there are validation data, else "loss". `every` writes
    `last.onnx` also each so many steps. The files are models; the optimizer's state is not kept.
    """

    def __init__(self, folder: str | os.PathLike[str], monitor: str | None = None,
                 every: int | None = None):
        self.folder = Path(folder)
        self.monitor = monitor
        self.every = every
        self.best: float | None = None
        self._steps = 0

    def on_start(self, trainer: Trainer) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.best = None
        self._steps = 0

    def on_step(self, trainer: Trainer, report: StepReport) -> None:
        self._steps += 1
        if self.every and self._steps % self.every == 0:
            trainer.model.save(self.folder / "last.onnx")

    def looks_at_step(self, trainer: Trainer) -> bool:
        return bool(self.every and (self._steps + 1) % self.every == 0)

    def on_epoch(self, trainer: Trainer, record: dict[str, Any]) -> None:
        trainer.model.save(self.folder / "last.onnx")
        with open(self.folder / "history.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        name = self.monitor or ("val_loss" if "val_loss" in record else "loss")
        value = _monitored(record, name)
        if _is_better(value, self.best, name):
            self.best = value
            with trainer.measured() as model:
                model.save(self.folder / "best.onnx")

    def on_end(self, trainer: Trainer, history: History) -> None:
        if history.error is None:  # else numbers may be lost; what the last epoch left is whole
            trainer.model.save(self.folder / "last.onnx")


class EarlyStopping(Callback):
    """Stops when `monitor` has not improved for `patience` epochs.

    `restore_best` gives the model the weights of the best epoch when training ends; averages cannot
    be brought back so, but Checkpoint writes them.
    """

    def __init__(self, monitor: str = "val_loss", patience: int = 3, min_delta: float = 0.0,
                 restore_best: bool = False):
        self.monitor = monitor
        self.patience = patience
        self.min_delta = min_delta
        self.restore_best = restore_best
        self.best: float | None = None
        self._waited = 0
        self._weights: dict[str, Any] = {}

    def on_start(self, trainer: Trainer) -> None:
        if self.restore_best and trainer.keeps_averages:
            raise Error("EarlyStopping(restore_best=True) cannot bring back the averages that ema keeps; "
                        "take those of the best epoch from Checkpoint's best.onnx")
        self.best = None
        self._waited = 0
        self._weights = {}

    def on_epoch(self, trainer: Trainer, record: dict[str, Any]) -> bool:
        value = _monitored(record, self.monitor)
        if _is_better(value, self.best, self.monitor, self.min_delta):
            self.best = value
            self._waited = 0
            if self.restore_best:
                self._weights = {n: a.copy() for n, a in trainer.model.weights.items()}
            return True
        self._waited += 1
        return self._waited < self.patience

    def on_end(self, trainer: Trainer, history: History) -> None:
        for name, array in self._weights.items():
            trainer.model.weights[name] = array
