"""Where built and installed programs look for libraries: no element of a RUNPATH or RPATH is empty
or relative, which the loader would take from the folder that the user stands in.

Arguments: the build folder, cmake.
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

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


class RunPaths(unittest.TestCase):
    def check(self, folder):
        programs = programs_below(folder)
        self.assertTrue(programs, f"no program below {folder}")
        for program in programs:
            section = subprocess.run(
                ["readelf", "--dynamic", "--wide", program],
                check=True, capture_output=True, text=True,
            ).stdout
            with self.subTest(program=program.name):
                self.assertEqual(unsafe_elements(run_path_elements(section)), [])

    def test_finds_what_the_loader_takes_as_the_current_folder(self):
        section = " 0x1d (RUNPATH)  Library runpath: [/opt/lib::$ORIGIN/../lib:lib:]\n"
        self.assertEqual(unsafe_elements(run_path_elements(section)), ["", "lib", ""])

    def test_build(self):
        self.check(BUILD)

    def test_installed(self):
        with tempfile.TemporaryDirectory() as prefix:
            subprocess.run(
                [CMAKE, "--install", BUILD, "--prefix", prefix],
                check=True, stdout=subprocess.DEVNULL,
            )
            self.check(Path(prefix))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
