"""What Graft raises."""

from __future__ import annotations


class Error(Exception):
    """What Graft raises. `kind` is one of "io", "model", "shape", "type", "device", "memory",
    "argument", "unsupported" and "numeric"; the text names the found and the wanted value and the
    remedy.
    """

    def __init__(self, message: str, kind: str = "argument"):
        super().__init__(message, kind)
        self.kind = kind

    def __str__(self) -> str:
        return str(self.args[0])
