"""What programs get: Graft installed, and Graft as a subfolder, under a program whose own headers
are named as Graft's.

Arguments: the build folder, cmake, the C++ compiler.
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, CMAKE, COMPILER = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
SOURCE = Path(__file__).resolve().parents[2]
PROGRAM = SOURCE / "tests/installed"
MOST_PUBLIC = 16
# graft/train.h stands in many files of a program: these are its own and private parts.
MOST_BEHIND_TRAIN = 24


def run(*command, **options):
    """The output; fails with it."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def compile_alone(include, header):
    """The headers of Graft that it pulls in."""
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-H"]
    done = subprocess.run(
        [COMPILER, *flags, "-I", include, "-x", "c++", "-"],
        input=f"#include <{header}>\n", capture_output=True, text=True, check=False,
    )
    if done.returncode != 0:
        raise AssertionError(f"<{header}> does not compile alone:\n{done.stderr}")
    return set(re.findall(rf"^\.+ {re.escape(str(include))}/(\S+)$", done.stderr, re.MULTILINE))


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = Path(cls.folder.name) / "prefix"
        run(CMAKE, "--install", BUILD, "--prefix", cls.prefix)
        cls.include = cls.prefix / "include"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def build_folder(self, name):
        return Path(self.folder.name) / name

    def test_a_program_builds_and_runs(self):
        build = self.build_folder("program")
        run(CMAKE, "-S", PROGRAM, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}", "-DCMAKE_BUILD_TYPE=Debug")
        run(CMAKE, "--build", build)
        self.assertIn("24 logits", run(build / "own_program", build / "net.onnx"))

    def test_a_program_sees_no_more_of_a_subfolder(self):
        build = self.build_folder("subfolder")
        run(CMAKE, "-S", PROGRAM, "-B", build, f"-DGRAFT_SOURCE={SOURCE}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
            f"-DGRAFT_PREFIX={prefix_of(BUILD)}")
        commands = json.loads((build / "compile_commands.json").read_text())
        own = next(c for c in commands if c["file"] == str(PROGRAM / "main.cpp"))
        run(*shlex.split(own["command"]), "-fsyntax-only", cwd=own["directory"])
        folders = re.findall(r"-(?:I|isystem) ?(\S+)", own["command"])
        self.assertEqual(folders, [str(PROGRAM), str(build / "graft/include")])

    def test_only_the_name_graft_is_taken(self):
        self.assertEqual([p.name for p in self.include.iterdir()], ["graft"])
        folders = [p.name for p in (self.include / "graft").iterdir() if p.is_dir()]
        self.assertEqual(folders, ["detail"])
        for path in self.include.rglob("*"):
            self.assertTrue(path.is_dir() or path.suffix == ".h", path)
            self.assertNotIn("internal", path.name)

    def test_public_headers_are_few_and_each_compiles_alone(self):
        public = sorted(p.name for p in (self.include / "graft").glob("*.h"))
        self.assertLessEqual(len(public), MOST_PUBLIC)
        self.assertEqual(public, sorted(p.name for p in (SOURCE / "graft").glob("*.h")))
        needed = {f"graft/{name}" for name in public}
        for name in public:
            with self.subTest(header=name):
                needed |= compile_alone(self.include, f"graft/{name}")
        there = {str(p.relative_to(self.include)) for p in self.include.rglob("*.h")}
        self.assertEqual(there, needed)

    def test_graft_h_includes_all_others(self):
        public = {f"graft/{p.name}" for p in (self.include / "graft").glob("*.h")}
        behind = compile_alone(self.include, "graft/graft.h") | {"graft/graft.h"}
        self.assertEqual(public - behind, set())

    def test_training_pulls_in_little(self):
        behind = compile_alone(self.include, "graft/train.h")
        self.assertLessEqual(len(behind), MOST_BEHIND_TRAIN, sorted(behind))
        self.assertNotIn("graft/detail/core/graph/graph.h", behind)


def prefix_of(build):
    """Where the build found its libraries."""
    cache = (build / "CMakeCache.txt").read_text()
    return re.search(r"^GRAFT_PREFIX:PATH=(.*)$", cache, re.MULTILINE)[1]


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
