"""What cmake/onednn_threads.py refuses to copy, and how it says so. What it copies every test runs on."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "cmake/onednn_threads.py"


class OnednnThreads(unittest.TestCase):
    def refuse(self, source, message):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, SCRIPT, source, Path(folder, "copy.so")],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (1, f"{source}: {message}\n"))
            self.assertEqual(list(Path(folder).iterdir()), [])

    def test_what_is_no_library(self):
        self.refuse(SCRIPT, "not a 64-bit little-endian ELF file")

    def test_a_library_without_openmp(self):
        libc = re.search(r"\S+/libc\.so\.6", Path("/proc/self/maps").read_text())[0]
        self.refuse(libc, "it does not call libgomp; wanted is an OpenMP build by GCC")


if __name__ == "__main__":
    unittest.main()
