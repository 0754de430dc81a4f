"""Tests of which sources scripts/tidy.py checks, and how they are compiled for it."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from tidy import ROOT, read_commands, select


class Tidy(unittest.TestCase):
    def test_headers_stand_for_the_sources_beside_them(self):
        commands = {"core/a.cpp": {}, "core/b.cpp": {}, "io/c.cpp": {}}
        changed = ["core/a.h", "core/b.cpp", "core/b.h", "core/none.h", "docs/ops.md"]
        self.assertEqual(select(changed, commands), ["core/a.cpp", "core/b.cpp"])

    def test_tests_and_what_lies_elsewhere_are_left_out(self):
        files = ["core/a.cpp", "tests/core/a_test.cpp", "build/registrations.cpp"]
        entries = [{"file": str(ROOT / file), "command": "c++ -c x"} for file in files]
        entries.append({"file": "/usr/src/core/x.cpp", "command": "c++ -c x"})
        self.assertEqual(list(self.read(entries)), ["core/a.cpp"])

    def test_options_of_gcc_alone_and_warnings_go(self):
        entries = [{"file": str(ROOT / "io/a.cpp"), "command": "c++ -mmove-max=128 -Wno-restrict -O2 -c a.cpp"}]
        self.assertEqual(self.read(entries)["io/a.cpp"]["command"], "c++ -O2 -c a.cpp")

    def read(self, entries):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "compile_commands.json").write_text(json.dumps(entries))
            return read_commands(Path(folder))


if __name__ == "__main__":
    unittest.main()
