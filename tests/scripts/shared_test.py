"""libgraft.so as programs get it: installed, moved, found by CMake and by pkg-config. It shows what the
public headers declare and nothing of third parties.

Arguments: the build folder, cmake, the C++ compiler.
"""

import os
import re
import shlex
import sys
import tempfile
import unittest
from pathlib import Path

from calls import run

BUILD, CMAKE, COMPILER = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
PROGRAM = Path(__file__).resolve().parents[2] / "tests/installed"


def shown(library):
    """The names, as C++ writes them, of what a library defines for others."""
    table = run("nm", "--dynamic", "--defined-only", "--demangle", library)
    return [line.split(maxsplit=2)[2] for line in table.splitlines()]


class Shared(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        first = Path(cls.folder.name) / "prefix"
        run(CMAKE, "--install", BUILD, "--prefix", first)
        cls.prefix = Path(cls.folder.name) / "moved"
        first.rename(cls.prefix)
        cls.library = (cls.prefix / "lib/libgraft.so").resolve()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_soname_changes_with_the_interface(self):
        version = (self.prefix / "lib/cmake/graft/graftConfigVersion.cmake").read_text()
        major, minor, patch = re.search(r'PACKAGE_VERSION "(\d+)\.(\d+)\.(\d+)"', version).groups()
        self.assertEqual(self.library.name, f"libgraft.so.{major}.{minor}.{patch}")
        dynamic = run("readelf", "--dynamic", self.library)
        self.assertIn(f"Library soname: [libgraft.so.{major}.{minor}]", dynamic)
        self.assertTrue((self.prefix / f"lib/libgraft.so.{major}.{minor}").is_symlink())
        self.assertEqual(list(self.prefix.rglob("*.a")), [])

    def test_what_is_shown_is_what_public_headers_declare(self):
        names = shown(self.library)
        of_graft = [name for name in names if re.match(r"graft::[\w:~]+(\W|$)", name)]
        self.assertGreater(len(of_graft), 200)
        for public in ("graft::onnx::load(", "graft::TrainStep::run(", "typeinfo for graft::Error"):
            self.assertTrue([n for n in names if n.startswith(public)], public)
        headers = self.prefix / "include/graft"
        words = set(re.findall(r"\w+", "".join(p.read_text() for p in headers.rglob("*.h"))))
        unknown = [n for n in of_graft
                   if not set(re.findall(r"\w+", re.split(r"[(<\[]", n)[0])) <= words]
        self.assertEqual(unknown, [])
        for theirs in ("graft_onnx::", "google::protobuf::", "dnnl", "Eigen::", "nlohmann::"):
            self.assertEqual([n for n in names if n.startswith(theirs)][:5], [], theirs)

    def test_a_program_with_hidden_names_builds_by_cmake(self):
        build = Path(self.folder.name) / "by_cmake"
        run(CMAKE, "-S", PROGRAM, "-B", build, f"-DCMAKE_CXX_COMPILER={COMPILER}",
            f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DGRAFT_COMPONENTS=train",
            "-DGRAFT_TARGET=graft::train", "-DCMAKE_CXX_VISIBILITY_PRESET=hidden",
            "-DCMAKE_VISIBILITY_INLINES_HIDDEN=ON")
        run(CMAKE, "--build", build)
        program = build / "own_program"
        self.assertLess(program.stat().st_size, 1_000_000)
        self.assertIn("24 logits", run(program, build / "net.onnx"))
        # An error of the library's is caught by its type.
        with self.assertRaisesRegex(AssertionError, "exit 1(.|\n)*no/such/folder"):
            run(program, "/no/such/folder/net.onnx")

    def test_a_program_builds_by_pkg_config(self):
        flags = run("pkg-config", "--cflags", "--libs", "graft",
                    env={**os.environ, "PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")})
        program = Path(self.folder.name) / "by_pkg_config"
        run(COMPILER, "-std=c++20", PROGRAM / "main.cpp", "-I", PROGRAM, "-o", program,
            *shlex.split(flags))
        self.assertIn("24 logits", run(program, f"{program}.onnx"))
        loaded = dict(re.findall(r"^\s*(\S+) => (\S+)", run("ldd", program), re.MULTILINE))
        own = [name for name, path in loaded.items() if path.startswith(str(self.prefix))]
        self.assertIn(f"{self.library.name.rsplit('.', 1)[0]}", own)
        self.assertNotIn("not", loaded.values())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
