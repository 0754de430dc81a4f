"""What built and installed programs let others do. No element of a RUNPATH or RPATH is empty or
relative, which the loader would take from the folder that the user stands in; addresses are random,
the tables of functions read-only, the stack holds no code; `graft` guards its stack.

Arguments: the build folder, cmake.
"""

import re
import sys
import tempfile
import unittest
from pathlib import Path

from calls import cached, run

BUILD, CMAKE = Path(sys.argv[1]), sys.argv[2]
RUN_PATH = re.compile(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]")


def is_elf(path):
    if not path.is_file() or path.is_symlink() or path.suffix in {".o", ".a"}:
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def run_path_elements(dynamic_section):
    """The elements of all run paths in what `readelf -d` prints."""
    return [e for m in RUN_PATH.finditer(dynamic_section) for e in m[1].split(":")]


def unsafe_elements(elements):
    return [e for e in elements if not e.startswith(("/", "$ORIGIN", "${ORIGIN}"))]


def programs_below(folder):
    parts = (p for p in folder.rglob("*") if "CMakeFiles" not in p.parts)
    return [path for path in parts if is_elf(path)]


# What Debian built, and lies beside the Python module.
TAKEN_AS_THEY_ARE = ("libprotobuf.so", "libre2.so", "libz.so")


def weaknesses(text):
    """What is missing, by what `readelf -hdl` prints."""
    missing = []
    if not re.search(r"Type:\s+DYN", text):
        missing.append("its addresses are fixed")
    if "GNU_RELRO" not in text:
        missing.append("no read-only relocations")
    if not re.search(r"\((?:BIND_NOW|FLAGS)\).*BIND_NOW|\(FLAGS_1\).*NOW", text):
        missing.append("functions are bound late")
    if re.search(r"GNU_STACK.*\bRWE\b", text) or "GNU_STACK" not in text:
        missing.append("the stack may hold code")
    return missing


class Programs(unittest.TestCase):
    def check(self, folder):
        programs = programs_below(folder)
        self.assertTrue(programs, f"no program below {folder}")
        for program in programs:
            text = run("readelf", "--wide", "--file-header", "--dynamic", "--segments", program)
            with self.subTest(program=program.name):
                self.assertEqual(unsafe_elements(run_path_elements(text)), [])
                if not program.name.startswith(TAKEN_AS_THEY_ARE):
                    self.assertEqual(weaknesses(text), [])

    def test_finds_what_the_loader_takes_as_the_current_folder(self):
        section = " 0x1d (RUNPATH)  Library runpath: [/opt/lib::$ORIGIN/../lib:lib:]\n"
        self.assertEqual(unsafe_elements(run_path_elements(section)), ["", "lib", ""])

    def test_finds_what_is_not_hardened(self):
        weak = "  Type:  EXEC (Executable file)\n  GNU_STACK 0x0 0x0 RWE 0x10\n"
        self.assertEqual(len(weaknesses(weak)), 4)

    def test_build(self):
        self.check(BUILD)

    def test_graft_guards_its_stack_and_checks_copies(self):
        if cached(BUILD, "CMAKE_BUILD_TYPE") != "Release":
            self.skipTest("of releases only")
        symbols = run("readelf", "--wide", "--dyn-syms", BUILD / "graft")
        self.assertIn("__stack_chk_fail", symbols)
        self.assertRegex(symbols, r"__\w+_chk@")

    def test_installed(self):
        with tempfile.TemporaryDirectory() as prefix:
            run(CMAKE, "--install", BUILD, "--prefix", prefix)
            self.check(Path(prefix))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
