"""The package as a program uses it: a transfer on Fashion-MNIST, the command line, types for
editors, and the time that Python adds to a step."""
import ast
import os
import subprocess
import sys
import tempfile
import time
import unittest

from needed import needed

with needed():
    import numpy as np
    import onnxruntime

import graft


def images(split, samples):
    return graft.Loader("fashion-mnist", 64, shuffle=split == "train", seed=7, split=split,
                        samples=samples, transforms="known")


class Program(unittest.TestCase):
    def test_transfer_on_fashion_mnist(self):
        with tempfile.TemporaryDirectory() as folder:
            def path(name):
                return os.path.join(folder, name)

            graft.new("lenet", (1, 28, 28), 10).save(path("lenet.onnx"))
            train, val = images("train", 6400), images("test", 2000)
            m = graft.load(path("lenet.onnx"))
            graft.Trainer(m, optimizer=graft.SGD(lr=0.05, momentum=0.9)).fit(train, verbose=False)

            m.truncate("relu3").append(graft.Linear("head", 10, seed=1))
            t = graft.Trainer(m, loss="cross_entropy", optimizer=graft.AdamW(lr=1e-3),
                              trainable="head.*", memory="512M")
            h = t.fit(train, epochs=3, validation=val, verbose=False,
                      callbacks=[graft.Checkpoint(path("runs/a")), graft.EarlyStopping("val_loss")])
            self.assertEqual(sorted(t.parameters), ["head.bias", "head.weight"])
            self.assertGreater(h["val_accuracy"][-1], 0.78)
            self.assertEqual(t.evaluate(val).accuracy, h["val_accuracy"][-1])
            x, y = next(iter(val))
            expected = t.predict(x)
            for x, y in images("train", 640):
                loss = t.step(x, y)
            self.assertGreater(loss, 0.0)
            self.assertEqual(t.gradients(x, y)["head.bias"].shape, (10,))

            m.save(path("out.onnx"))
            x, _ = next(iter(val))
            theirs, = onnxruntime.InferenceSession(path("out.onnx")).run(None, {"input": x})
            np.testing.assert_allclose(t.predict(x), theirs, atol=1e-4)
            self.assertEqual(expected.shape, theirs.shape)

    def test_a_step_costs_little_more_than_in_cpp(self):
        t = graft.Trainer(graft.new("mlp", (4,), 2))
        x, y = np.ones((2, 4), np.float32), np.zeros(2, np.int64)
        batch = t._core.batch([x], y)

        def fastest(call):
            times = []
            for _ in range(2000):
                start = time.perf_counter()
                call()
                times.append(time.perf_counter() - start)
            return min(times)

        in_cpp, in_python = fastest(lambda: t._core.step(batch)), fastest(lambda: t.step(x, y))
        self.assertLess(in_python - in_cpp, 50e-6)


class CommandLine(unittest.TestCase):
    def run_graft(self, *arguments):
        return subprocess.run([sys.executable, "-m", "graft", *arguments], capture_output=True,
                              text=True)

    def test_is_the_programs(self):
        version = self.run_graft("--version")
        self.assertEqual((version.returncode, version.stdout.strip()), (0, graft.__version__))
        wrong = self.run_graft("nonsense")
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("unknown verb 'nonsense'", wrong.stderr)

    def test_takes_arguments_in_any_encoding(self):
        wrong = subprocess.run([sys.executable, "-m", "graft", b"not\xffutf8"], capture_output=True)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn(b"unknown verb 'not", wrong.stderr)

    def test_writes_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            made = self.run_graft("new", "mlp", "--input", "4", "--classes", "2", "--out", path)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertEqual(graft.load(path).outputs[0].shape, ("N", 2))


class Types(unittest.TestCase):
    def stub(self):
        with open(os.path.join(os.path.dirname(graft._core.__file__), "_core.pyi")) as file:
            return file.read()

    def test_the_stub_has_python_types_only(self):
        stub = self.stub()
        self.assertNotIn("::", stub)
        names = {node.name for node in ast.walk(ast.parse(stub))
                 if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        self.assertLessEqual({"Linear", "AdamW", "custom_loss", "Trainer"}, names)

    def test_all_that_users_see_says_what_it_is(self):
        for name in graft.__all__:
            with self.subTest(name):
                doc = getattr(getattr(graft, name), "__doc__", None)
                self.assertTrue(doc, "no docstring")
                self.assertTrue(doc.strip().endswith("."), doc)


if __name__ == "__main__":
    unittest.main()
