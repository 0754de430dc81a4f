"""What verbs print with --json is as docs/json-lines.schema.json says.

Usage: json_lines_test.py GRAFT. Fails where jsonschema is not installed, unless GRAFT_OFFLINE is set:
then it exits with 77 (skipped).
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from needed import needed

with needed():
    import jsonschema
    import numpy as np
    import onnx

GRAFT = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with open(os.path.join(ROOT, "docs", "json-lines.schema.json"), encoding="utf-8") as file:
    SCHEMA = json.load(file)


def graft(*arguments):
    run = subprocess.run([GRAFT, *arguments], capture_output=True, text=True)
    if run.returncode:
        raise AssertionError(f"graft {' '.join(arguments)}: exit {run.returncode}: {run.stderr}")
    return run.stdout


class JsonLines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        os.chdir(cls.folder.name)
        graft("new", "mlp", "--input", "1x4x4", "--classes", "3", "--out", "mlp.onnx")
        random = np.random.default_rng(1)
        np.savez("data.npz", input=random.random((20, 1, 4, 4), dtype=np.float32),
                 label=random.integers(0, 3, 20))

    def lines(self, *arguments):
        return [json.loads(line) for line in graft(*arguments, "--json").splitlines()]

    def check(self, lines, definition):
        schema = {"$ref": f"#/$defs/{definition}", "$defs": SCHEMA["$defs"]}
        validator = jsonschema.Draft202012Validator(schema)
        self.assertTrue(lines)
        for line in lines:
            errors = [error.message for error in validator.iter_errors(line)]
            self.assertFalse(errors, line)

    def test_the_schema_is_one(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_what_is_wrong_is_found(self):
        with self.assertRaises(AssertionError):
            self.check([{"event": "epoch", "epoch": 0}], "train")
        with self.assertRaises(AssertionError):
            self.check([{"event": "other"}], "train")

    def test_train(self):
        lines = self.lines("train", "mlp.onnx", "--data", "npz:data.npz", "--validate",
                           "npz:data.npz", "--epochs", "2", "--out", "trained.onnx")
        self.check(lines, "train")
        events = [line["event"] for line in lines]
        self.assertEqual([events[0], events[-1], events.count("epoch")], ["start", "end", 2])

    def test_a_run_with_a_folder(self):
        lines = self.lines("train", "mlp.onnx", "--data", "npz:data.npz", "--validate",
                           "npz:data.npz", "--epochs", "1", "--run", "run", "--metrics", "f1",
                           "--out", "trained.onnx")
        self.check(lines, "train")
        self.assertEqual([line["event"] for line in lines],
                         ["start", "run", "validation", "epoch", "end"])
        self.assertIn("validation_f1", lines[3])

    def test_a_dry_run(self):
        lines = self.lines("train", "mlp.onnx", "--data", "npz:data.npz", "--dry-run", "--out",
                           "never.onnx")
        self.check(lines, "train")
        self.assertEqual([line["event"] for line in lines], ["start", "dry_run"])

    def test_lr_find(self):
        self.check(self.lines("lr-find", "mlp.onnx", "--data", "npz:data.npz"), "lr_find")

    def test_eval(self):
        lines = self.lines("eval", "mlp.onnx", "--data", "npz:data.npz", "--metrics", "f1")
        self.check(lines, "eval")
        self.assertIn("f1", lines[0])

    def test_predict(self):
        lines = self.lines("predict", "mlp.onnx", "--data", "npz:data.npz", "--top", "2")
        self.check(lines, "predict")
        self.assertEqual([(line["sample"], len(line["best"])) for line in lines],
                         [(sample, 2) for sample in range(20)])

    def test_run_names_classes(self):
        model = onnx.load("mlp.onnx")
        names = model.metadata_props.add()
        names.key, names.value = "names", "{0: 'a', 1: 'b', 2: 'c'}"
        onnx.save(model, "named.onnx")
        np.save("x.npy", np.zeros((2, 1, 4, 4), np.float32))
        lines = self.lines("run", "named.onnx", "--input", "input=x.npy", "--out", "outputs")
        self.check(lines, "run")
        self.assertEqual(len(lines[0]["best"]), 2)

    def test_bench(self):
        self.check(self.lines("bench", "mlp.onnx", "--seconds", "0"), "bench")
        self.check(self.lines("bench", "mlp.onnx", "--train", "--seconds", "0"), "bench")

    def test_inspect(self):
        lines = self.lines("inspect", "mlp.onnx")
        self.check(lines, "inspect")
        known = SCHEMA["$defs"]["inspect"]["properties"]
        self.assertFalse(set(lines[0]) - set(known), "members that the schema does not tell of")
        self.check(self.lines("inspect", "mlp.onnx", "--passes"), "inspect_passes")

    def test_run(self):
        np.save("x.npy", np.zeros((2, 1, 4, 4), np.float32))
        self.check(self.lines("run", "mlp.onnx", "--input", "input=x.npy", "--out", "outputs"), "run")

    def test_machine(self):
        self.check(self.lines("devices"), "devices")
        self.check(self.lines("doctor"), "doctor")


if __name__ == "__main__":
    unittest.main()
