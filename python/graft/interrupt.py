"""Ctrl-C while a model trains."""

from __future__ import annotations

import signal
import threading
from typing import Any


class Interrupt:
    """While it is entered, the first Ctrl-C only sets `asked`; the second raises as usual. Threads
    other than the main one get no signals, so nothing changes there."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Interrupt:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _ask(self, *_: Any) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
