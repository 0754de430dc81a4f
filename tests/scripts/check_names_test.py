"""Tests of which classes scripts/check_names.py takes for one another."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "scripts" / "check_names.py"


def check(files):
    """(exit status, output) over a tree of these files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True)
        return done.returncode, done.stdout


def within(space, text):
    return f"namespace {space} {{\n\n{text}\n}}  // namespace {space}\n".replace("namespace  ", "namespace ")


class Names(unittest.TestCase):
    def test_one_name_in_two_headers_is_refused(self):
        status, output = check({
            "core/base/a.h": within("graft", "class Watch {\n};\n"),
            "core/ops/b.h": within("graft", "struct Watch final : Base {\n};\n"),
        })
        self.assertEqual(status, 1)
        self.assertIn("core/base/a.h:3: names: graft::Watch is defined in 2 files", output)
        self.assertIn("core/ops/b.h:3:", output)

    def test_a_source_counts_and_enums_too(self):
        status, _ = check({
            "optim/a.h": within("graft", "enum class Kind { a };\n"),
            "io/b.cpp": within("graft", "enum class Kind {\n  b\n};\n"),
        })
        self.assertEqual(status, 1)

    def test_nested_namespaces_are_told_apart(self):
        status, output = check({
            "core/a.h": within("graft", within("one", "class Gru {\n};\n")),
            "core/b.h": within("graft::two", "class Gru {\n};\n"),
            "core/c.h": within("graft", within("one", "") + "class Gru {\n};\n"),
        })
        self.assertEqual(status, 0, output)
        self.assertIn("3 classes", output)

    def test_declarations_and_unnamed_namespaces_are_no_definitions(self):
        status, output = check({
            "core/a.h": within("graft", "class Watch {\n};\n"),
            "core/b.h": within("graft", "class Watch;\n"),
            "core/c.cpp": within("graft", within("", "class Watch {\n};\n")),
            "core/d.h": within("graft", "class Outer {\n  class Watch {\n  };\n};\n"),
        })
        self.assertEqual(status, 0, output)


if __name__ == "__main__":
    unittest.main()
