"""Writes the linker's version script of libgraft.so: it shows what the public headers name.

    public_symbols.py OUT NM HEADERS ARCHIVE...

A symbol of the archives is shown if it is of namespace graft and each word of its qualified name stands in
a file of the folder HEADERS. So all that a header declares is shown, and beside it at most a member whose
name another class has. The copy of oneDNN calls GRFT_* and gft_* (adr/0037). All else is local: what is
between Graft's files, and third parties.
"""

import re
import subprocess
import sys
from pathlib import Path


def names(nm, archives, *options):
    """What the archives define for others, in the order in which it stands there."""
    done = subprocess.run([nm, "--defined-only", "--extern-only", "--format=posix", *options, *archives],
                          capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line and not line.endswith("]:")]
    return [re.sub(r" [A-Za-z](?: [0-9a-f]+)*\s*$", "", line) for line in lines]


def qualified(name):
    """graft::edit::truncate of "void graft::edit::truncate<int>(graft::Model&)", std::move of std::move's."""
    shorter = None
    while shorter != name:  # template arguments, from within
        shorter, name = name, re.sub(r"<[^<>()]*>", "", name)
    return name.split("(")[0].split(" ")[-1]


def main(out, nm, headers, *archives):
    text = "".join(p.read_text(encoding="utf-8") for p in Path(headers).rglob("*.h"))
    words = set(re.findall(r"\w+", text))
    symbols = names(nm, archives)
    full = [qualified(name) for name in names(nm, archives, "--demangle")]
    if len(symbols) != len(full):
        sys.exit(f"{nm} lists {len(symbols)} symbols, and {len(full)} with --demangle")
    shown = {symbol for symbol, name in zip(symbols, full)
             if name.startswith("graft::") and set(re.findall(r"\w+", name)) <= words}
    if not shown:
        sys.exit(f"no symbol of {len(archives)} archives is named in {headers}")
    listed = "".join(f"  {name};\n" for name in sorted(shown))
    Path(out).write_text(f"{{ global:\n  GRFT_*;\n  gft_*;\n{listed}local: *;\n}};\n", encoding="utf-8")


main(*sys.argv[1:])
