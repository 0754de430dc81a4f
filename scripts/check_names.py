#!/usr/bin/env python3
"""Checks that no two files define a class of one name in one namespace.

The linker keeps one of two such classes' functions and lets the other's users call them, without a
word. Classes of unnamed namespaces are each file's own; tests are programs of their own. Two
definitions in one file are choices of the preprocessor's. Prints file:line for each; exits with 1 if
there is any.
"""

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

FOLDERS = ["core", "autograd", "optim", "io", "data", "train", "tools", "python", "graft"]
SUFFIXES = {".h", ".cpp", ".cu"}

# clang-format indents nothing within a namespace and names the one that a brace closes.
OPENS = re.compile(r"(?:inline )?namespace\s*([\w:]*)\s*\{")
CLOSES = re.compile(r"\}  // (?:inline )?namespace")
CLASS = re.compile(
    r"(?:class|struct|union|enum(?: class)?)\s+(?:alignas\([^)]*\)\s+|\[\[\w+\]\]\s+|[A-Z_]{4,}\s+)?"
    r"(\w+)(?:\s+final)?\s*(?::[^:]|\{)")


def classes(lines):
    """Yields (qualified name, line) of each class that other files could name."""
    spaces = []
    for number, line in enumerate(lines, 1):
        if found := OPENS.match(line):
            spaces.append(found[1])
        elif CLOSES.match(line):
            spaces.pop()
        elif (found := CLASS.match(line)) and "" not in spaces:
            yield "::".join([*spaces, found[1]]), number


def main():
    parser = argparse.ArgumentParser(description="Find classes that two files define.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    root = parser.parse_args().root
    seen = defaultdict(dict)  # name: {file: line}
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*")):
        if path.suffix in SUFFIXES:
            for name, line in classes(path.read_text(encoding="utf-8").splitlines()):
                seen[name].setdefault(path.relative_to(root).as_posix(), line)
    twice = {name: files for name, files in seen.items() if len(files) > 1}
    for name, files in twice.items():
        for file, line in files.items():
            print(f"{file}:{line}: names: {name} is defined in {len(files)} files")
    if not twice:
        print(f"names: ok ({len(seen)} classes)")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
