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

    def test_older_and_newer_opsets(self):
        """Nets, and one of new ops, in the oldest opset and in between."""
        layers = ("reshape:10x-1,layer_norm,gelu,multi_head_attention:5,"
                  "group_norm:2,lstm:6:bidirectional=1:steps=last,linear:5:name=head")
        fresh, newer = self.path("fresh.onnx"), self.path("newer.onnx")
        for net in ("lenet", "mobilenetv2"):
            shape = NETS[net]
            graft("new", net, "--input", "x".join(map(str, shape)), "--classes", "5", "--out", fresh)
            for opset in ("13", "21"):
                with self.subTest(net=net, opset=opset):
                    graft("edit", fresh, "--opset", opset, "--out", newer)
                    self.assertEqual(onnx.load(newer).opset_import[0].version, int(opset))
                    self.check(newer, shape)
        graft("new", "lenet", "--input", "1x28x28", "--classes", "10", "--out", fresh)
        graft("edit", fresh, "--opset", "21", "--out", newer)
        full = self.path("full.onnx")
        graft("edit", newer, "--truncate", "relu3", "--append", layers, "--out", full)
        self.check(full, (1, 28, 28))
        for opset in ("20", "18", "17", "13"):
            with self.subTest(opset=opset):
                older = self.path("older.onnx")
                graft("edit", full, "--opset", opset, "--out", older)
                self.check(older, (1, 28, 28))
                names = {node.op_type for node in onnx.load(older).graph.node}
                self.assertEqual("LayerNormalization" in names, int(opset) >= 17)
                self.assertEqual("Gelu" in names, int(opset) >= 20)

    def test_replaced_inserted_and_merged(self):
        fresh, out, tail = (self.path(n + ".onnx") for n in ("fresh", "out", "tail"))
        graft("new", "resnet20", "--input", "3x32x32", "--classes", "10", "--out", fresh)
        graft("new", "mlp", "--input", "4", "--classes", "3", "--out", tail)
        graft("edit", fresh, "--replace-head", "4", "--insert-after", "last:1=layer_norm", "--merge", tail,
              "--merge-prefix", "tail/", "--rename", "tail/logits=scores", "--out", out)
        self.check(out, (3, 32, 32))


if __name__ == "__main__":
    unittest.main()
