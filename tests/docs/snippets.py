"""Writes one C++ file of all C++ blocks of pages, which CMake compiles: what a page shows is what there is.

    snippets.py OUT PAGE...

A block that includes something is a file of its own, so it stands as it is; any other is the body of a
function, and what it takes for given is declared in tests/docs/given.h. The compiler names page and line.
"""

import re
import sys
from pathlib import Path

OPENING = "```cpp\n"


def blocks(page):
    """The text of each block and the line on which it begins."""
    text = page.read_text(encoding="utf-8")
    for block in re.finditer(rf"^{OPENING}(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield block[1], text.count("\n", 0, block.start(1)) + 1


def compiled(page, text, line, number):
    """The block as C++ in a namespace of its own."""
    is_whole = "#include" in text
    before, behind = ("", "") if is_whole else ("void shown() {\n", "}\n")
    return (f"namespace {page.stem.lower()}_{number} {{\n{before}"
            f'#line {line} "{page}"\n{text}{behind}}}\n')


def main(out, *pages):
    parts = ['#include "given.h"\n']
    for page in map(Path, pages):
        for number, (text, line) in enumerate(blocks(page), 1):
            parts.append(compiled(page, text, line, number))
    if len(parts) == 1:
        sys.exit(f"no block that begins with {OPENING.strip()} in {', '.join(pages)}")
    Path(out).write_text("\n".join(parts), encoding="utf-8")


main(*sys.argv[1:])
