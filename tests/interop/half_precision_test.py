"""Files in half precision and files that were trained with quantization in mind, in onnxruntime.

Usage: half_precision_test.py GRAFT. Training cases, among them recurrent ones, become f16 and bf16 by
`graft edit --precision`: ONNX's checker takes them, onnxruntime (f16) and Graft (both) compute what
the f32 file computes, but for rounding. Fails where onnx or onnxruntime is not installed, unless
GRAFT_OFFLINE is set: then it exits with 77 (skipped).
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from needed import needed

with needed():
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

GRAFT = os.path.abspath(sys.argv.pop(1))
CASES = pathlib.Path(__file__).parent.parent / "training_cases"
# Of the largest number, behind tens of layers: f16 has 11 bits, bf16 8.
TOLERANCE = {"f16": 0.02, "bf16": 0.15}


def graft(*arguments):
    run = subprocess.run([GRAFT, *arguments], capture_output=True, text=True)
    if run.returncode:
        raise AssertionError(f"graft {' '.join(arguments)}: exit {run.returncode}: {run.stderr}")
    return run.stdout


def answers(model, inputs):
    options = onnxruntime.SessionOptions()
    # At its highest level onnxruntime 1.31 crashes on bert_adamw in f16.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)[0]


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_graft(self, model, inputs):
        arguments = []
        for name, array in inputs.items():
            np.save(self.path(f"{name}.npy"), array)
            arguments += ["--input", f"{name}=" + self.path(f"{name}.npy")]
        graft("run", model, *arguments, "--out", self.path("out"))
        output = onnx.load(model).graph.output[0].name
        return np.load(os.path.join(self.path("out"), output.replace("/", "_") + ".npy"))

    def close(self, found, wanted, limit):
        scale = float(np.abs(wanted).max())
        self.assertLessEqual(float(np.abs(found - wanted).max()), limit * scale)


class HalfPrecision(Files):
    def inputs_of(self, case, model):
        folder = case / "test_data_set_0"
        initializers = {i.name for i in model.graph.initializer}
        names = [i.name for i in model.graph.input if i.name not in initializers]
        return {name: numpy_helper.to_array(onnx.load_tensor(str(folder / f"input_{i}.pb")))
                for i, name in enumerate(names)}

    def test_training_cases(self):
        for name in ("resnet_momentum", "bert_adamw", "gru_rmsprop", "crnn_ctc_adam", "unet_bce_adam",
                     "seed_vit_adam", "efficientnet_adam"):
            source = str(CASES / name / "model.onnx")
            model = onnx.load(source)
            inputs = self.inputs_of(CASES / name, model)
            wanted = answers(source, inputs)
            for precision in ("f16", "bf16"):
                with self.subTest(case=name, precision=precision):
                    narrow = self.path("narrow.onnx")
                    said = graft("edit", source, "--precision", precision, "--out", narrow)
                    onnx.checker.check_model(narrow, full_check=True)
                    changed = onnx.load(narrow)
                    self.assertEqual([o.type.tensor_type.elem_type for o in changed.graph.output],
                                     [o.type.tensor_type.elem_type for o in model.graph.output])
                    if precision == "f16":
                        self.assertNotIn("f32 as before", said)
                        floats = [i for i in changed.graph.initializer if i.data_type == TensorProto.FLOAT]
                        self.assertEqual(floats, [])
                        self.close(answers(narrow, inputs), wanted, TOLERANCE[precision])
                    self.close(self.run_graft(narrow, inputs), wanted, TOLERANCE[precision])

    def test_opset_limits(self):
        source = str(CASES / "resnet_momentum" / "model.onnx")
        older = self.path("older.onnx")
        graft("edit", source, "--opset", "17", "--out", older)
        said = graft("edit", older, "--precision", "bf16", "--out", self.path("narrow.onnx"))
        self.assertIn("opset 17 has no form in bf16, opset 22 has", said)
        newer = graft("edit", older, "--opset", "22", "--precision", "bf16", "--out", self.path("n.onnx"))
        self.assertNotIn("f32 as before", newer)


class Quantized(Files):
    def write(self):
        """y = x W + b, with x and W rounded to 8 bits."""
        random = np.random.default_rng(3)
        initializers = {"w": 0.5 * random.standard_normal((6, 4), dtype=np.float32),
                        "b": np.zeros(4, np.float32), "ws": np.array(0.02, np.float32),
                        "wz": np.array(0, np.int8), "xs": np.array(0.04, np.float32),
                        "xz": np.array(128, np.uint8)}
        nodes = [helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
                 helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
                 helper.make_node("QuantizeLinear", ["w", "ws", "wz"], ["wq"]),
                 helper.make_node("DequantizeLinear", ["wq", "ws", "wz"], ["wd"]),
                 helper.make_node("Gemm", ["xd", "wd", "b"], ["y"])]
        graph = helper.make_graph(
            nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 6])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])],
            [numpy_helper.from_array(v, k) for k, v in initializers.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, self.path("qdq.onnx"))
        x = random.standard_normal((64, 6), dtype=np.float32)
        np.savez(self.path("data.npz"), x=x, y=(x[:, :4] + x[:, 2:6]).argmax(1))
        return {"x": x[:8]}

    def test_trained_files_are_quantized(self):
        inputs = self.write()
        graft("train", self.path("qdq.onnx"), "--data", "npz:" + self.path("data.npz"), "--lr", "0.5",
              "--epochs", "10", "--no-run", "--out", self.path("trained.onnx"))
        before, after = (onnx.load(self.path(f)) for f in ("qdq.onnx", "trained.onnx"))
        self.assertEqual(list(before.graph.node), list(after.graph.node))
        tensors = [{i.name: numpy_helper.to_array(i) for i in m.graph.initializer} for m in (before, after)]
        changed = [n for n in tensors[0] if not np.array_equal(tensors[0][n], tensors[1][n])]
        self.assertEqual(changed, ["w", "b"])
        wanted = answers(self.path("trained.onnx"), inputs)
        self.close(self.run_graft(self.path("trained.onnx"), inputs), wanted, 1e-5)
        graft("edit", self.path("trained.onnx"), "--store-quantized", "--out", self.path("stored.onnx"))
        onnx.checker.check_model(self.path("stored.onnx"), full_check=True)
        stored = {i.name: i.data_type for i in onnx.load(self.path("stored.onnx")).graph.initializer}
        self.assertEqual(stored["wq"], TensorProto.INT8)
        self.assertNotIn("w", stored)
        np.testing.assert_allclose(answers(self.path("stored.onnx"), inputs), wanted, rtol=1e-6)
        self.close(self.run_graft(self.path("stored.onnx"), inputs), wanted, 1e-5)


if __name__ == "__main__":
    unittest.main()
