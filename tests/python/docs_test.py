"""The blocks of docs/python.md and docs/federated.md, and those of README's first screen: Python and the command line run
here, the C++ program is what CMake built of its block, at $GRAFT_README_PROGRAM.
"""
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from needed import needed

with needed():
    import matplotlib
    import numpy

ROOT = Path(__file__).resolve().parents[2]
README_PROGRAM = os.environ.get("GRAFT_README_PROGRAM")


def blocks(page, language):
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


class Docs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_here(self, *command, **options):
        done = subprocess.run(command, cwd=self.folder.name, capture_output=True, text=True,
                              **options)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stderr[-2000:]}")
        self.assertNotIn("leaked", done.stderr)
        return done.stdout

    def test_every_block_about_python(self):
        for page, least in (("docs/python.md", 7), ("docs/federated.md", 2)):
            found = blocks(page, "python")
            self.assertGreaterEqual(len(found), least, page)
            self.run_here(sys.executable, "-c", "\n".join(found))

    def test_first_screen(self):
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        commands, = blocks("README.md", "sh")[:1]
        python, = blocks("README.md", "python")[:1]
        self.assertLess(readme[:readme.index(python) + len(python)].count("\n"), 60)
        script = Path(self.folder.name, "graft")
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m graft "$@"\n', encoding="utf-8")
        script.chmod(stat.S_IRWXU)
        paths = {**os.environ, "PATH": f"{self.folder.name}:{os.environ['PATH']}"}
        self.run_here("sh", "-e", "-c", commands, env=paths)
        self.assertGreater(float(self.run_here(sys.executable, "-c", python).split()[-1]), 0.8)
        self.assertTrue(README_PROGRAM, "the program of README's C++ block was not given")
        os.remove(Path(self.folder.name, "fashion.onnx"))
        self.assertRegex(self.run_here(README_PROGRAM), r"accuracy 0\.[89]")
        self.assertTrue(Path(self.folder.name, "fashion.onnx").exists())


if __name__ == "__main__":
    unittest.main()
