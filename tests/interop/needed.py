"""What a test must have."""
import contextlib
import os
import sys


@contextlib.contextmanager
def needed():
    """Around imports: a package that is missing is a failure, or, if GRAFT_OFFLINE is set, ends the
    test as skipped (77)."""
    try:
        yield
    except ImportError as missing:
        if os.environ.get("GRAFT_OFFLINE"):
            print(f"skipped, offline (GRAFT_OFFLINE): {missing}")
            sys.exit(77)
        sys.exit(f"{missing}; scripts/setup --tests installs it, and GRAFT_OFFLINE=1 skips this")
