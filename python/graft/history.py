"""What training did, epoch by epoch."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from .error import Error


class History:
    """A record an epoch, in `epochs`: a dict of "epoch", "loss", "accuracy" (of class targets),
    "val_loss", "val_accuracy" (with validation data), "learning_rate", "samples" and "seconds".

    `history["loss"]` is the list of one number over the epochs. `interrupted` says whether Ctrl-C
    ended the training; `error` is what `fit` is about to raise, for callbacks to see.
    """

    def __init__(self) -> None:
        self.epochs: list[dict[str, Any]] = []
        self.interrupted = False
        self.error: Error | None = None

    def __getitem__(self, name: str) -> list[Any]:
        return [epoch.get(name) for epoch in self.epochs]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.epochs)

    def __len__(self) -> int:
        return len(self.epochs)

    def names(self) -> list[str]:
        """The names of the numbers that any epoch has."""
        return list(dict.fromkeys(name for epoch in self.epochs for name in epoch))

    def plot(self, axes: Any = None) -> Any:
        """Draws loss and accuracy over the epochs with matplotlib; returns the axes."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise Error("plot needs matplotlib: pip install matplotlib") from error
        kinds = [k for k in ("loss", "accuracy") if k in self.names()]
        if axes is None:
            _, axes = plt.subplots(1, max(1, len(kinds)), figsize=(5 * max(1, len(kinds)), 3.5),
                                   squeeze=False)
            axes = axes[0]
        for ax, kind in zip(axes, kinds):
            for name, label in ((kind, "training"), (f"val_{kind}", "validation")):
                if name in self.names():
                    ax.plot(self["epoch"], self[name], marker="o", label=label)
            ax.set_xlabel("epoch")
            ax.set_ylabel(kind)
            ax.legend()
        return axes

    def __repr__(self) -> str:
        if not self.epochs:
            return "<graft.History of no epoch>"
        stopped = ", interrupted" if self.interrupted else ""
        count = "1 epoch" if len(self) == 1 else f"{len(self)} epochs"
        return f"<graft.History of {count}{stopped}: {epoch_text(self.epochs[-1])}>"

    def _repr_html_(self) -> str:
        names = self.names()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{_number(epoch.get(name))}</td>" for name in names) +
                       "</tr>" for epoch in self.epochs)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _number(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))


def epoch_text(record: dict[str, Any]) -> str:
    """"epoch 2: loss 0.4312, accuracy 84.40 %; validation loss 0.4021, ..."."""
    def part(prefix: str) -> str:
        text = f"loss {record[prefix + 'loss']:.4f}"
        accuracy = record.get(prefix + "accuracy")
        return text if accuracy is None else f"{text}, accuracy {100 * accuracy:.2f} %"

    text = f"epoch {record['epoch']}: {part('')}"
    if "val_loss" in record:
        text += f"; validation {part('val_')}"
    return f"{text}; {record['seconds']:.1f} s"
