"""Graft in one process with others that bring protobuf, oneDNN or OpenMP, in any order of import.
PyTorch is tried where it is installed."""
import importlib.util
import itertools
import os
import re
import subprocess
import sys
import unittest

from needed import needed

with needed():
    import onnx
    import onnxruntime

import graft

# What each does once all are there.
USES = {
    "graft": """
model = graft.new("lenet", (1, 28, 28), 10)
x, y = np.ones((4, 1, 28, 28), np.float32), np.arange(4)
trainer = graft.Trainer(model)
assert trainer.step(x, y) > trainer.step(x, y)
data = model.to_bytes()
""",
    "onnx": "onnx.checker.check_model(onnx.load_from_string(data), full_check=True)",
    "onnxruntime": """
theirs, = onnxruntime.InferenceSession(data).run(None, {"input": x})
np.testing.assert_allclose(model.run(x), theirs, atol=1e-4)
""",
    "torch": """
layer = torch.nn.Conv2d(1, 4, 3)
layer(torch.ones(2, 1, 9, 9)).sum().backward()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(
    torch.from_numpy(x), torch.from_numpy(y)), batch_size=2)
assert trainer.fit(loader, epochs=2, verbose=False).epochs[1]["samples"] == 4
tensor = torch.from_dlpack(trainer.parameters["fc2.bias"])
tensor.zero_()
assert not model.weights["fc2.bias"].any()
""",
}


class Together(unittest.TestCase):
    def try_order(self, order):
        uses = [USES[name] for name in USES if name in order]
        program = "\n".join([*(f"import {name}" for name in order), "import numpy as np", *uses])
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{order}: {done.stderr[-2000:]}")

    def test_in_any_order(self):
        for order in itertools.permutations(["graft", "onnx", "onnxruntime"]):
            with self.subTest(order):
                self.try_order(order)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_with_torch(self):
        for order in (["graft", "torch"], ["torch", "graft"], ["onnx", "torch", "graft"]):
            with self.subTest(order):
                self.try_order(order)

    def test_the_module_shows_its_start_and_what_onednn_calls(self):
        listed = subprocess.run(["readelf", "--dyn-syms", "--wide", graft._core.__file__],
                                capture_output=True, text=True, check=True).stdout
        shown = re.findall(r"(?:FUNC|OBJECT)\s+(?:GLOBAL|WEAK|UNIQUE)\s+DEFAULT\s+\d+ (\S+)", listed)
        self.assertIn("PyInit__core", shown)
        others = [name for name in shown if not re.match(r"PyInit__core$|GRFT_|gft_", name)]
        self.assertEqual(others, [])


if __name__ == "__main__":
    unittest.main()
