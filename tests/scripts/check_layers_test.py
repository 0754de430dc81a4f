"""Tests of scripts/check_layers.py on small trees made for the purpose."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_layers.py"

GOOD = {
    "core/base/error.h": "#include <string>\n",
    "core/tensor/tensor.h": '#include "core/base/error.h"\n',
    "core/ops/matmul_cpu.cpp": '#include <Eigen/Dense>\n#include "core/tensor/tensor.h"\n',
    "core/ops/internal_ops.h": "#include <vector>\n",
    "core/ops/vector_internal.h": "#include <immintrin.h>\n",
    "core/ops/add_cpu.cpp": '#include "core/ops/vector_internal.h"\n',
    "core/ops/kernels/lanes.h": "#include <immintrin.h>\n",
    "core/ops/conv/conv.h": '#include "core/ops/kernels/lanes.h"\n',
    "core/ops/conv/conv_cpu.cpp": '#include "core/ops/conv/conv.h"\n',
    "core/ops/registry.cpp": '#include "core/ops/kernels/lanes.h"\n',
    "core/passes/fuse.h": '#include "core/ops/internal_ops.h"\n',
    "core/layers/layer.h": '#include "core/ops/op_def.h"\n#include "core/passes/fuse.h"\n',
    "core/device/cuda/stream.cpp": "#include <cuda_runtime.h>\n",
    "io/proto/convert.h": "#include <onnx/onnx_pb.h>\n",
    "io/onnx.cpp": '#include "io/proto/convert.h"\n',
    "train/trainer.h": '#include "autograd/backward.h"\n#include "data/loader.h"\n',
    "graft/train.h": '#include "train/trainer.h"\n',
    "tools/graft/main.cpp": '#include <CLI/CLI.hpp>\n#include "graft/train.h"\n',
    "examples/mnist.cpp": "#include <graft/train.h>\n\n#include <string>\n",
    "tools/graft/command_line.h": "",
    "python/bindings/train.cpp": "#include <graft/train.h>\n#include <nanobind/nanobind.h>\n"
    '#include "tools/graft/command_line.h"\n',
}


def run(files):
    """(exit code, output) of the checker on a tree of these files."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, SCRIPT, root], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr


class CheckLayers(unittest.TestCase):
    def expect(self, file, text, violation):
        """The good tree with one more file shows just this violation."""
        code, output = run(GOOD | {file: text})
        self.assertEqual(code, 1, output)
        self.assertEqual(output.splitlines(), [violation])

    def test_good_tree_passes(self):
        self.assertEqual(run(GOOD), (0, "layers: ok\n"))

    def test_face(self):
        self.expect(
            "examples/cifar.cpp",
            '#include "train/trainer.h"\n',
            "examples/cifar.cpp:1: face: an example includes std and <graft/...> only: "
            "train/trainer.h",
        )
        self.expect(
            "io/npy.cpp",
            "#include <graft/tensor.h>\n",
            "io/npy.cpp:1: face: only programs see Graft so: graft/tensor.h",
        )
        self.expect(
            "python/bindings/data.cpp",
            '#include "data/loader.h"\n',
            "python/bindings/data.cpp:1: star: python must not include data: data/loader.h",
        )
        self.expect(
            "python/bindings/data.cpp",
            "#include <graft/detail/data/loader.h>\n",
            "python/bindings/data.cpp:1: face: what lies below graft/detail is no program's: "
            "graft/detail/data/loader.h",
        )
        self.expect(
            "io/npy.cpp",
            '#include "graft/train.h"\n',
            "io/npy.cpp:1: star: io must not include graft: graft/train.h",
        )
        self.expect(
            "graft/op.h",
            "#include <Eigen/Core>\n",
            "graft/op.h:1: headers: a public header includes std and Graft only: Eigen/Core",
        )

    def test_rooms_of_ops(self):
        include = '#include "core/ops/conv/conv.h"\n'
        self.expect(
            "core/ops/pool/pool.cpp",
            include,
            "core/ops/pool/pool.cpp:1: rooms: core/ops/pool must not include core/ops/conv: "
            "core/ops/conv/conv.h",
        )
        for file in ("core/ops/kernels/window.cpp", "core/passes/pad.cpp", "core/ops/cost.cpp"):
            code, output = run(GOOD | {file: include})
            self.assertEqual(code, 1, output)
            self.assertIn(f"{file}:1: rooms: ", output)
        self.expect(
            "core/ops/alias.h",
            '#include "core/ops/kernels/lanes.h"\n',
            "core/ops/alias.h:1: internal: a public header includes an internal one: "
            "core/ops/kernels/lanes.h",
        )

    def test_core_order(self):
        self.expect(
            "core/tensor/view.h",
            '#include <vector>\n#include "core/ops/op_def.h"\n',
            "core/tensor/view.h:2: core: core/tensor must not include core/ops: core/ops/op_def.h",
        )
        self.expect(
            "core/passes/pad.cpp",
            '#include "core/layers/layer.h"\n',
            "core/passes/pad.cpp:1: core: core/passes must not include core/layers: "
            "core/layers/layer.h",
        )

    def test_file_outside_the_layers_of_core(self):
        self.expect("core/misc.h", "", "core/misc.h:1: core: belongs to no layer of core")

    def test_star(self):
        self.expect(
            "io/save.cpp",
            '#include "data/loader.h"\n',
            "io/save.cpp:1: star: io must not include data: data/loader.h",
        )
        self.expect(
            "core/graph/graph.cpp",
            '#include "autograd/backward.h"\n',
            "core/graph/graph.cpp:1: star: core/graph must not include autograd: "
            "autograd/backward.h",
        )
        self.expect(
            "data/csv.cpp",
            '#include "core/graph/graph.h"\n',
            "data/csv.cpp:1: star: data must not include core/graph: core/graph/graph.h",
        )

    def test_third_party_in_public_header(self):
        self.expect(
            "core/ops/kernel.h",
            "#include <Eigen/Core>\n",
            "core/ops/kernel.h:1: headers: a public header includes std and Graft only: Eigen/Core",
        )

    def test_path_not_from_the_root(self):
        self.expect(
            "core/ops/kernel.h",
            '#include "op_def.h"\n',
            "core/ops/kernel.h:1: root: write the path from the repository's root: op_def.h",
        )

    def test_internal_header(self):
        self.expect(
            "core/ops/kernel.h",
            '#include "core/ops/vector_internal.h"\n',
            "core/ops/kernel.h:1: internal: a public header includes an internal one: "
            "core/ops/vector_internal.h",
        )
        self.expect(
            "optim/adam.cpp",
            '#include "core/ops/vector_internal.h"\n',
            "optim/adam.cpp:1: internal: core/ops/vector_internal.h is internal to core",
        )

    def test_protobuf_outside_io_proto(self):
        self.expect(
            "io/onnx_save.cpp",
            "#include <google/protobuf/message.h>\n",
            "io/onnx_save.cpp:1: proto: protobuf and onnx belong in io/proto: "
            "google/protobuf/message.h",
        )

    def test_cuda_outside_its_files(self):
        self.expect(
            "core/ops/softmax.cpp",
            "#include <cuda_runtime.h>\n",
            "core/ops/softmax.cpp:1: cuda: CUDA headers belong in core/device/cuda and *_cuda.*: "
            "cuda_runtime.h",
        )

    def test_cycle(self):
        code, output = run(
            {
                "core/graph/a.h": '#include "core/graph/b.h"\n',
                "core/graph/b.h": '\n#include "core/graph/a.h"\n',
            }
        )
        self.assertEqual(code, 1)
        self.assertEqual(
            output, "core/graph/b.h:2: cycle: core/graph/a.h -> core/graph/b.h -> core/graph/a.h\n"
        )


if __name__ == "__main__":
    unittest.main()
