"""GRAFT_MINIMAL with GRAFT_MODELS: the files that register rows and kernels, the types and the passes that
`graft ops` lists are taken and no others. Configures only: scripts/minimal builds (docs/minimal.md).

Arguments: the graft command, cmake, the C++ compiler.
"""

import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from calls import run

GRAFT, CMAKE, COMPILER = sys.argv[1:4]
ROOT = Path(__file__).resolve().parents[2]


class Minimal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = self.folder / "lenet.onnx"
        run(GRAFT, "new", "lenet", "--out", self.model)

    def configure(self, models, *options):
        """The finished process of CMake, in the folder's build/."""
        return subprocess.run(
            [CMAKE, "-S", ROOT, "-B", self.folder / "build", "-G", "Ninja", "-DGRAFT_MINIMAL=ON",
             "-DGRAFT_BUILD_TOOLS=OFF", "-DGRAFT_BUILD_TESTS=OFF", f"-DGRAFT_COMMAND={GRAFT}",
             f"-DCMAKE_CXX_COMPILER={COMPILER}", f"-DGRAFT_MODELS={models}", *options],
            capture_output=True, text=True, check=False)

    def files(self, name, table):
        """The names in a generated table."""
        text = (self.folder / "build/core/ops" / name).read_text()
        rows = re.search(rf"{table}\[\] = {{(.*?)}};", text, re.DOTALL)[1]
        return set(re.findall(r'{"(\w+)", register_\w+}', rows))

    def test_takes_what_the_model_needs(self):
        done = self.configure(self.model)
        self.assertEqual(done.returncode, 0, done.stderr)
        listed = run(GRAFT, "ops", self.model)
        wanted = set(re.findall(r"^file (\w+)$", listed, re.MULTILINE))
        rows = self.files("registrations.cpp", "all")
        kernels = self.files("kernels_native.cpp", "kFiles")
        self.assertLessEqual({"conv", "pool", "loss", "update"}, rows)
        self.assertLessEqual({"conv_cpu", "conv_tiles", "pool_cpu", "update_cpu"}, kernels)
        # The list may name kernels by oneDNN, which this build has not.
        self.assertEqual(rows | kernels, {name for name in wanted if not name.endswith("_onednn")})
        lines = (self.folder / "build/wire/op_lines.cpp").read_text()
        self.assertEqual(lines.count('"Conv '), listed.count("\nop Conv "))

    def test_says_what_nobody_caught(self):
        program, source = self.folder / "thrower", self.folder / "thrower.cpp"
        source.write_text("#include <stdexcept>\n"
                          'int main(int n, char**) { if (n == 1) throw std::runtime_error("words"); throw n; }\n')
        run(COMPILER, "-std=c++20", "-static-libstdc++", "-o", program, source,
            ROOT / "core/base/minimal/terminate.cpp")
        for arguments, words in (([], "an exception: words\n"), (["2"], "an exception\n")):
            done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, -signal.SIGABRT)
            self.assertEqual(done.stderr, "terminate called after " + words)
        self.assertNotIn(b"__cxa_demangle", program.read_bytes())  # 40 KB that take names apart

    def test_compiles_no_other_kernels(self):
        listed = self.folder / "lenet.ops"
        listed.write_text(run(GRAFT, "ops", self.model))
        done = self.configure(listed)
        self.assertEqual(done.returncode, 0, done.stderr)
        rules = (self.folder / "build/build.ninja").read_text()
        self.assertIn("conv_cpu.cpp.o", rules)
        for name in ("gather_cpu", "deform_conv_cpu", "conv_onednn", "op_schemas"):
            self.assertNotIn(f"{name}.cpp.o", rules)
        dtypes = re.search(r"-DGRAFT_KERNEL_DTYPES=(\S+)", rules)[1]
        self.assertEqual(set(dtypes.split(",")), {"graft::DType::f32", "graft::DType::u8", "graft::DType::i64"})
        passes = re.search(r"-DGRAFT_PASSES=(\S+)", rules)[1]
        self.assertIn("pool_before_relu", passes)
        self.assertNotIn("fuse_attention", passes)

    def symbols(self, *objects):
        """What these objects of the build define and refer to, compiled now."""
        build = self.folder / "build"
        run(CMAKE, "--build", build, "--target", *objects)
        return run("nm", "--demangle", *(build / name for name in objects))

    def test_leaves_out_types_and_passes(self):
        done = self.configure(self.model, "-DCMAKE_BUILD_TYPE=Release")
        self.assertEqual(done.returncode, 0, done.stderr)
        lists = self.symbols("core/passes/CMakeFiles/graft_passes.dir/pipeline.cpp.o")
        self.assertIn("pool_before_relu(", lists)
        self.assertIn("decompose(", lists)  # changed nothing, but is more than faster
        self.assertNotIn("fuse_attention(", lists)
        sums = self.symbols("core/ops/CMakeFiles/graft_ops.dir/reduce/reduce_sum_cpu.cpp.o")
        self.assertIn("reducing::Sum<float>", sums)
        self.assertNotIn("reducing::Sum<double>", sums)

    def test_kernels_visit_the_types_that_are_there(self):
        """visit_dtype would bring all of a list into every small program."""
        for file in (ROOT / "core/ops").rglob("*"):
            if file.suffix in (".h", ".cpp") and "cuda" not in file.name:
                self.assertNotRegex(file.read_text(), r"\bvisit_dtype\(", file)

    def test_refuses_a_list_of_before(self):
        listed = self.folder / "lenet.ops"
        listed.write_text(re.sub(r"(?m)^dtype .*\n", "", run(GRAFT, "ops", self.model)))
        done = self.configure(listed)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has no line 'dtype", " ".join(done.stderr.split()))

    def test_refuses_what_makes_no_sense(self):
        for models, options, part in [
            (self.folder / "none.onnx", [], "there is no file"),
            (ROOT / "LICENSE", [], "has no line 'file"),
            (self.model, ["-DGRAFT_BUILD_TOOLS=ON"], "set GRAFT_BUILD_TOOLS"),
            (self.model, ["-DGRAFT_MINIMAL=OFF"], "set GRAFT_MINIMAL to ON"),
            (self.model, ["-DGRAFT_WITH_ONEDNN=ON"], "set GRAFT_WITH_ONEDNN to OFF"),
        ]:
            with self.subTest(part):
                done = self.configure(models, *options)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(part, " ".join(done.stderr.split()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
