"""Tests of scripts/count_tests.py on the JUnit files that ctest writes."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "count_tests.py"
PASSED = '<testcase name="a" status="run"/>'
FAILED = (
    '<testcase name="b" status="fail" time="1.5"><failure message=""/>'
    f"<system-out>{''.join(f'line {i}&#10;' for i in range(100))}</system-out></testcase>"
)
SKIPPED = (
    '<testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
    "</testcase>"
)
NOT_BUILT = (
    '<testcase name="d" status="notrun"><skipped message="Unable to find executable: d"/>'
    "</testcase>"
)


def count(*cases):
    """(exit code, output) for a file with these cases."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tests.xml")
        path.write_text(f"<testsuite>{''.join(cases)}</testsuite>", encoding="utf-8")
        done = subprocess.run(
            [sys.executable, SCRIPT, path], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout.replace(str(path), "tests.xml")


class CountTests(unittest.TestCase):
    def test_counts_each_kind(self):
        self.assertEqual(count(PASSED, PASSED, SKIPPED), (0, "2 passed, 0 failed, 1 skipped\n"))

    def test_failure_fails(self):
        status, output = count(PASSED, FAILED)
        lines = output.splitlines()
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertEqual(lines[0], "b failed (tests.xml, 1.5 s):")
        self.assertEqual(lines[1:-1], [f"  line {i}" for i in range(75, 100)])

    def test_program_that_was_not_built_has_failed(self):
        self.assertEqual(
            count(PASSED, NOT_BUILT),
            (1, "d failed (tests.xml, ? s):\n1 passed, 1 failed, 0 skipped\n"),
        )

    def test_nothing_ran_fails(self):
        self.assertEqual(count(), (1, "0 passed, 0 failed, 0 skipped\n"))
        self.assertEqual(count(SKIPPED), (1, "0 passed, 0 failed, 1 skipped\n"))

    def test_missing_file_fails(self):
        done = subprocess.run(
            [sys.executable, SCRIPT, "missing.xml"], capture_output=True, text=True, check=False
        )
        self.assertEqual((done.returncode, done.stdout), (1, "0 passed, 0 failed, 0 skipped\n"))


if __name__ == "__main__":
    unittest.main()
