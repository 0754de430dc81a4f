#!/usr/bin/env python3
"""Prints the largest headers, sources and functions. It reports, it never fails.

Functions are found by layout: clang-format puts the brace that closes one right below the first
character of its head.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ["core", "autograd", "optim", "io", "data", "train", "tools", "examples", "benchmarks",
           "tests"]
LIMITS = {"headers": 200, "sources": 400, "functions": 60}
SHOWN = 5

NO_FUNCTION = re.compile(
    r"(if|else|for|while|switch|do|try|catch|return|namespace|class|struct|enum|union|extern)\b|[}#]"
)
HEAD = re.compile(r"([\w:~]+|operator\W+)\(")


def indent_of(line):
    return len(line) - len(line.lstrip())


def functions(lines):
    """Yields (name, first line, length) of each function definition."""
    for end, line in enumerate(lines):
        if not re.match(r"\s*\}(\s*//.*)?$", line):
            continue
        start = end - 1
        while start >= 0 and (not lines[start].strip() or indent_of(lines[start]) > indent_of(line)):
            start -= 1
        head = lines[start].strip() if start >= 0 else ""
        name = HEAD.search(head)
        if name and not NO_FUNCTION.match(head):
            yield name[1], start + 1, end - start + 1


def measure():
    """{kind: [(lines, where)]}"""
    sizes = {kind: [] for kind in LIMITS}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in {".h", ".cpp", ".cu"}:
                continue
            lines = path.read_text(encoding="utf-8").splitlines()
            name = path.relative_to(ROOT).as_posix()
            sizes["headers" if path.suffix == ".h" else "sources"].append((len(lines), name))
            sizes["functions"] += [
                (length, f"{name}:{line} {function}") for function, line, length in functions(lines)
            ]
    return sizes


def main():
    for kind, found in measure().items():
        over = sum(lines > LIMITS[kind] for lines, _ in found)
        print(f"{kind}: {len(found)}, of which {over} longer than {LIMITS[kind]} lines")
        for lines, where in sorted(found, reverse=True)[:SHOWN]:
            print(f"{lines:6} {where}")


if __name__ == "__main__":
    main()
