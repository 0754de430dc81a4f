"""The command `graft`: `python -m graft` and the script that the package installs."""

import os
import signal
import sys

from ._core import command_line


def run() -> int:
    """Runs the command line as the program does, with the signals that a program starts with."""
    for name in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(name, signal.SIG_DFL)
    return command_line([b"graft", *map(os.fsencode, sys.argv[1:])])


if __name__ == "__main__":
    sys.exit(run())
