"""Files that Graft writes are valid ONNX and mean the same to another runtime.

Usage: exported_files_test.py GRAFT. Makes nets, trains them on made-up images, cuts and extends
them; each file must pass onnx.checker (full) and give the same outputs in onnxruntime as in
`graft run`, within 1e-5. Fails where onnx or onnxruntime is not installed, unless GRAFT_OFFLINE is
set: then it exits with 77 (skipped).
"""
import os
import subprocess
import sys
import tempfile
import unittest

from needed import needed

with needed():
    import numpy as np
    import onnx
    import onnxruntime

GRAFT = os.path.abspath(sys.argv.pop(1))
NETS = {
    "mlp": (1, 8, 8),
    "lenet": (1, 28, 28),
    "resnet18": (3, 32, 32),
    "resnet20": (3, 32, 32),
    "mobilenetv2": (3, 32, 32),
}
TOLERANCE = 1e-5


def graft(*arguments):
    run = subprocess.run([GRAFT, *arguments], capture_output=True, text=True)
    if run.returncode:
        raise AssertionError(f"graft {' '.join(arguments)}: exit {run.returncode}: {run.stderr}")


class ExportedFiles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def check(self, model, shape):
        """Both runtimes on one batch of 3."""
        onnx.checker.check_model(onnx.load(model), full_check=True)
        images = np.random.default_rng(1).random((3, *shape), dtype=np.float32)
        np.save(self.path("input.npy"), images)
        graft("run", model, "--input", "input=" + self.path("input.npy"), "--out", self.path("out"))
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        wanted = session.run(None, {"input": images})
        for output, value in zip(session.get_outputs(), wanted):
            found = np.load(os.path.join(self.folder.name, "out", output.name + ".npy"))
            scale = max(1.0, float(np.abs(value).max()))
            self.assertLessEqual(float(np.abs(found - value).max()), TOLERANCE * scale, model)

    def train(self, model, shape, out, *arguments):
        random = np.random.default_rng(2)
        np.savez(self.path("data.npz"), x=random.random((24, *shape), dtype=np.float32),
                 y=random.integers(0, 5, 24))
        graft("train", model, "--data", "npz:" + self.path("data.npz"), "--batch", "8", "--epochs",
              "1", "--lr", "0.01", "--validate", "none", "--out", out, *arguments)

    def test_each_net_fresh_and_trained(self):
        for net, shape in NETS.items():
            with self.subTest(net=net):
                fresh, trained = self.path(net + ".onnx"), self.path(net + "_trained.onnx")
                graft("new", net, "--input", "x".join(map(str, shape)), "--classes", "5", "--seed",
                      "1", "--out", fresh)
                self.check(fresh, shape)
                self.train(fresh, shape, trained, "--optimizer", "adam")
                self.check(trained, shape)
                before, after = onnx.load(fresh), onnx.load(trained)
                changed = [a.name for a, b in zip(before.graph.initializer, after.graph.initializer)
                           if a != b]
                self.assertTrue(changed, "training changed nothing")

    def test_cut_extended_and_trained(self):
        shape = NETS["lenet"]
        fresh, cut, trained = (self.path(n + ".onnx") for n in ("fresh", "cut", "trained"))
        graft("new", "lenet", "--input", "1x28x28", "--classes", "10", "--seed", "1", "--out", fresh)
        hidden = onnx.load(fresh).graph.node[-2].output[0]
        graft("edit", fresh, "--truncate", hidden, "--append",
              "linear:32:name=neck,relu,dropout:0.2,linear:5:name=head", "--out", cut)
        self.check(cut, shape)
        self.train(cut, shape, trained, "--trainable", "(neck|head).*")
        self.check(trained, shape)
        before, after = onnx.load(cut), onnx.load(trained)
        changed = {a.name.split(".")[0] for a, b in
                   zip(before.graph.initializer, after.graph.initializer) if a != b}
        self.assertEqual(changed, {"neck", "head"})


if __name__ == "__main__":
    unittest.main()
