#!/usr/bin/env python3
"""Runs mpi_test on several ranks, and sees that an exception on one of them ends all.

    ranks_test.py MPIRUN SIZE MPI_TEST
"""

import subprocess
import sys
import time
from pathlib import Path

MOST_SECONDS = 5


def launcher(mpirun, size):
    """Starts so many ranks on this machine, however few processors it has; ends the test as skipped
    where there is no mpirun."""
    try:
        version = subprocess.run([mpirun, "--version"], capture_output=True, text=True,
                                 check=False).stdout
    except OSError as error:
        print(f"skipped: {mpirun}: {error}; scripts/setup --tests installs Open MPI")
        sys.exit(77)
    command = [mpirun, "-n", str(size)]
    if "Open MPI" in version or "OpenRTE" in version:
        # A container may forbid one process to read another's memory.
        command += ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                    "--mca", "btl_vader_single_copy_mechanism", "none",
                    "--mca", "mpi_yield_when_idle", "1"]
    return command


def main():
    mpirun, size, program = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]).resolve()
    start = launcher(mpirun, size)
    code = subprocess.run([*start, program, "--gtest_brief=1"], timeout=300, check=False).returncode
    assert code == 0, f"exit code {code}"

    begin = time.monotonic()
    thrown = subprocess.run([*start, program, "throw"], timeout=60, capture_output=True, text=True,
                            check=False)
    seconds = time.monotonic() - begin
    assert thrown.returncode != 0, thrown.stderr
    assert "rank 1 cannot read" in thrown.stderr, thrown.stderr
    assert seconds < MOST_SECONDS, f"{seconds:.1f} s"
    print(f"{size} ranks: all tests passed; an exception on one ended all in {seconds:.1f} s")


if __name__ == "__main__":
    main()
