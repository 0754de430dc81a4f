"""The wheel: built from the checkout with the options of the build folder, installed into a fresh
environment, and used far from both. Fails without network, unless GRAFT_OFFLINE is set: then it
exits with 77 (skipped).

Arguments: the build folder, the Python that has the build requirements.
"""

import os
import re
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from calls import cached, run

ROOT = Path(__file__).resolve().parents[2]
BUILD, BUILDER = Path(sys.argv[1]), sys.argv[2]
IS_ONEDNN_BUILT = cached(BUILD, "GRAFT_ONEDNN_COPIED").startswith(
    cached(BUILD, "GRAFT_PREFIX") + "/onednn/")
LARGEST_MB = 15 if IS_ONEDNN_BUILT else 20  # PyPI's oneDNN alone takes 11
OPTIONS = ["CMAKE_CXX_COMPILER", "GRAFT_WERROR", "GRAFT_NATIVE", "GRAFT_UNITY", "GRAFT_PREFIX"]
# That these are on every system is what manylinux says.
OF_THE_SYSTEM = re.compile(r"linux-vdso|ld-linux|lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s|z)\.so")

PROGRAM = """
import sys, time
start = time.perf_counter()
import graft
seconds = time.perf_counter() - start
import numpy as np
model = graft.new("lenet", (1, 28, 28), 10)
trainer = graft.Trainer(model)
trainer.fit((np.ones((8, 1, 28, 28), np.float32), np.arange(8)), epochs=2, batch=4, verbose=False)
model.save("trained.onnx")
assert graft.load("trained.onnx").weights["fc2.bias"].any()
print(seconds)
"""


def option(name):
    """What the build folder has, so that the compiler's cache serves both builds."""
    return f"-Ccmake.define.{name}={cached(BUILD, name)}"


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        run(BUILDER, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps",
            f"-Cbuild-dir={BUILD.with_name(BUILD.name + '-wheel')}", *map(option, OPTIONS),
            "--wheel-dir", cls.folder, ROOT)
        cls.wheel, = cls.folder.glob("graft_onnx-*.whl")
        run(BUILDER, "-m", "venv", cls.folder / "venv")
        run(cls.folder / "venv/bin/pip", "install", "--quiet", cls.wheel)

    def test_size(self):
        print(f"{self.wheel.name}: {self.wheel.stat().st_size / 1e6:.1f} MB")
        self.assertLess(self.wheel.stat().st_size, LARGEST_MB * 1e6)

    def test_holds_what_it_says(self):
        wheel = zipfile.ZipFile(self.wheel)
        names = wheel.namelist()
        for wanted in ("graft/__init__.py", "graft/_core.pyi", "graft/py.typed"):
            self.assertIn(wanted, names)
        licence, notice = sorted(n for n in names if re.search("licenses/(LICENSE|NOTICE)$", n))
        self.assertIn("Apache License", wheel.read(licence).decode())
        self.assertIn("nanobind", wheel.read(notice).decode())
        libraries = [name for name in names if name.startswith("graft/lib/")]
        self.assertTrue(libraries)
        self.assertEqual(len({name.split(".so")[0] for name in libraries}), len(libraries), libraries)

    def test_has_no_samples(self):
        """What only tests call (core/base/for_tests.h), as one of Einsum's."""
        sample = b"ellipsis_of_one_left"
        self.assertIn(sample, (ROOT / "core/ops/product/einsum.cpp").read_bytes())
        wheel = zipfile.ZipFile(self.wheel)
        module, = (n for n in wheel.namelist() if re.match(r"graft/_core.*\.so$", n))
        self.assertNotIn(sample, wheel.read(module))

    def test_program(self):
        environment = {"PATH": os.environ["PATH"]}
        python = self.folder / "venv/bin/python"
        out = run(python, "-I", "-c", PROGRAM, cwd=self.folder, env=environment)
        self.assertLess(float(out), 2.0)
        version = run(self.folder / "venv/bin/graft", "--version", env=environment)
        self.assertRegex(version, r"^\d+\.\d+\.\d+")

    def test_finds_all_libraries_within_itself(self):
        package, = (self.folder / "venv").glob("lib/python3*/site-packages/graft")
        for line in run("ldd", next(package.glob("_core.*so"))).splitlines():
            with self.subTest(line):
                self.assertTrue(str(package) in line or OF_THE_SYSTEM.search(line), line)


if __name__ == "__main__":
    if os.environ.get("GRAFT_OFFLINE"):
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
