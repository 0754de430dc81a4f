"""What tests of builds share."""

import re
import subprocess


def run(*command, **options):
    """The output; fails with it."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    if done.returncode != 0:
        raise AssertionError(
            f"{command}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return done.stdout


def cached(build, name):
    """An entry of the build folder's CMakeCache.txt, or nothing."""
    entries = (build / "CMakeCache.txt").read_text()
    entry = re.search(rf"^{name}:\w+=(.*)$", entries, re.MULTILINE)
    return entry[1] if entry else ""
