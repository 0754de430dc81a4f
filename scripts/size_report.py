#!/usr/bin/env python3
"""Holds headers, sources, functions and classes to the budgets of CONTRIBUTING.md.

What is longer needs a reason in the head of its file, before the first namespace:

    // Long: BackwardDirection, for its steps share the buffers that its constructor lays out.

The name is the class's, the function's or `file`. Prints the largest of each kind, then what is over
budget without a reason and reasons that nothing needs; exits with 1 if there is any.

Functions and classes are found by layout: clang-format puts the brace that closes one right below
the first character of its head.
"""

import argparse
import re
import sys
from collections import namedtuple
from pathlib import Path

FOLDERS = ["core", "autograd", "optim", "io", "data", "train", "tools", "python", "examples",
           "benchmarks", "tests"]
LIMITS = {"headers": 200, "sources": 400, "functions": 60, "classes": 200}
SHOWN = 5

NO_FUNCTION = re.compile(
    r"(if|else|for|while|switch|do|try|catch|return|namespace|class|struct|enum|union|extern)\b|[}#]"
)
FUNCTION = re.compile(r"([\w:~]+|operator\W+)\(")
CLASS = re.compile(r"(?:class|struct|union)\s+(?:alignas\(\w+\)\s+|\[\[\w+\]\]\s+)?([\w:]+)")
END = re.compile(r"\s*\}(;|\s*//.*)?$")
REASON = re.compile(r"// Long: ([\w:~]+), \w")

Size = namedtuple("Size", "lines file line name")  # line 0: the file itself


def indent_of(line):
    return len(line) - len(line.lstrip())


def definitions(lines):
    """Yields (kind, name, first line, length) of each function and each class."""
    for end, line in enumerate(lines):
        if not END.match(line):
            continue
        start = end - 1
        while start >= 0 and (not lines[start].strip() or indent_of(lines[start]) > indent_of(line)):
            start -= 1
        head = lines[start].strip() if start >= 0 else ""
        if found := CLASS.match(head):
            yield "classes", found[1], start + 1, end - start + 1
        elif not NO_FUNCTION.match(head) and not line.strip().startswith("};"):
            if found := FUNCTION.search(head):
                yield "functions", found[1], start + 1, end - start + 1


def reasons(lines):
    """{name: line} of the reasons in the head of a file."""
    found = {}
    for number, line in enumerate(lines, 1):
        if line.startswith("namespace"):
            break
        if match := REASON.match(line):
            found[match[1]] = number
    return found


def measure_file(path, name):
    """(sizes by kind, complaints) of one file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    sizes = {kind: [] for kind in LIMITS}
    sizes["headers" if path.suffix == ".h" else "sources"].append(Size(len(lines), name, 0, "file"))
    for kind, what, line, length in definitions(lines):
        sizes[kind].append(Size(length, name, line, what))
    unused, complaints = reasons(lines), []
    given = set(unused)
    for kind, found in sizes.items():
        for one in found:
            if one.lines <= LIMITS[kind]:
                continue
            unused.pop(one.name, None)
            if one.name not in given:
                complaints.append(f"{where(one)}: {one.lines} lines, more than {LIMITS[kind]}, and "
                                  f"no '// Long: {one.name}, why' in the file's head")
    complaints += [f"{name}:{line}: nothing called {what} is over its budget"
                   for what, line in unused.items()]
    return sizes, complaints


def where(size):
    return f"{size.file}:{size.line} {size.name}" if size.line else size.file


def measure(root):
    """(sizes by kind, complaints) of all sources below root."""
    sizes, complaints = {kind: [] for kind in LIMITS}, []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in {".h", ".cpp", ".cu"}:
                continue
            found, wrong = measure_file(path, path.relative_to(root).as_posix())
            for kind in LIMITS:
                sizes[kind] += found[kind]
            complaints += wrong
    return sizes, complaints


def main():
    parser = argparse.ArgumentParser(description="Hold files, functions and classes to budgets.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    sizes, complaints = measure(parser.parse_args().root)
    for kind, found in sizes.items():
        over = sum(one.lines > LIMITS[kind] for one in found)
        print(f"{kind}: {len(found)}, of which {over} longer than {LIMITS[kind]} lines")
        for one in sorted(found, reverse=True)[:SHOWN]:
            print(f"{one.lines:6} {where(one)}")
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
