#!/usr/bin/env python3
"""Runs clang-tidy (version 19, checks of .clang-tidy) over sources that changed, tests left out.

    scripts/tidy.py                 what differs from main, or on main from the commit before
    scripts/tidy.py --all           every source: 2.5 s of a core each, 8 minutes on two
    scripts/tidy.py FILE...         these

Commands are those of single files in Release, for which build-tidy/ is configured, and nothing built. A
header is looked at through the source beside it. Exits with 1 if anything is found.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("core", "autograd", "optim", "io", "data", "train", "tools", "examples")
NOT_CLANGS = ("-mmove-max=", "-mstore-max=", "-W")  # options and warnings that clang may not know


def git(*arguments):
    """What git prints, or None where it fails."""
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def changed_files():
    """Paths from the root that differ from main; None where the history does not say."""
    head = git("rev-parse", "HEAD")
    base = git("merge-base", "HEAD", "origin/main") or git("merge-base", "HEAD", "main")
    if base is None or base == head:
        base = git("rev-parse", "HEAD^")
    if base is None:
        return None
    new = git("ls-files", "--others", "--exclude-standard")
    return git("diff", "--name-only", "--diff-filter=d", base).splitlines() + new.splitlines()


def configure():
    """The folder of the commands, made anew: a configured build, of which nothing is compiled."""
    build = ROOT / "build-tidy"
    prefix = Path(os.environ.get("GRAFT_PREFIX", ROOT / "third_party"))
    command = [prefix / "python/bin/cmake", "--preset", "release", "-B", build,
               "-DGRAFT_UNITY=OFF", "-DGRAFT_BUILD_TESTS=OFF"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}tidy: cannot configure {build.name}")
    return build


def read_commands(build):
    """{path from the root: entry} of the sources that are checked."""
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    found = {}
    for entry in entries:
        path = Path(entry["file"])
        if not path.is_relative_to(ROOT):
            continue
        name = path.relative_to(ROOT).as_posix()
        if name.split("/")[0] in FOLDERS:
            words = entry["command"].split()
            entry["command"] = " ".join(w for w in words if not w.startswith(NOT_CLANGS))
            found[name] = entry
    return found


def select(files, commands):
    """The sources among `files`, and those beside the headers among them."""
    sources = {str(Path(file).with_suffix(".cpp")) for file in files}
    return sorted(sources & commands.keys())


def check(tool, folder, file):
    """What clang-tidy found in one file; empty for nothing."""
    command = [tool, "-p", folder, "--quiet", ROOT / file]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout if done.returncode else ""


def main():
    parser = argparse.ArgumentParser(description="Run clang-tidy over sources that changed.")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    tool = shutil.which("clang-tidy-19") or shutil.which("clang-tidy")
    if tool is None:
        sys.exit("clang-tidy is missing: run scripts/setup --tests")
    commands = read_commands(configure())
    wanted = None if arguments.all else arguments.files or changed_files()
    files = sorted(commands) if wanted is None else select(wanted, commands)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "compile_commands.json").write_text(json.dumps(list(commands.values())))
        with ThreadPoolExecutor(arguments.jobs) as pool:
            found = [out for out in pool.map(lambda file: check(tool, folder, file), files) if out]
    print("".join(found), end="")
    seconds = time.monotonic() - start
    print(f"tidy: {len(found)} of {len(files)} sources with findings ({seconds:.0f} s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
