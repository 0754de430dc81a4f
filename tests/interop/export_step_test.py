"""Steps that Graft exports train in onnxruntime as they did in PyTorch.

Usage: export_step_test.py GRAFT. Each training case becomes a folder by `graft export-step`; the
loop that stands in it runs the case's batches, and losses and the trained output are held against
the record within the case's tolerance. Fails where onnx or onnxruntime is not installed, unless
GRAFT_OFFLINE is set: then it exits with 77 (skipped).
"""
import glob
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from needed import needed

with needed():
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import numpy_helper
    from onnx.reference import ReferenceEvaluator

GRAFT = os.path.abspath(sys.argv.pop(1))
CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "training_cases")
# The op that ONNX lacks.
REFUSED = {"crnn_ctc_adam": "CtcLoss"}


def tensors(pattern):
    """Those of the files, in the order of their numbers."""
    paths = sorted(glob.glob(pattern), key=lambda path: int(re.findall(r"\d+", os.path.basename(path))[-1]))
    result = []
    for path in paths:
        tensor = onnx.TensorProto()
        with open(path, "rb") as file:
            tensor.ParseFromString(file.read())
        result.append(numpy_helper.to_array(tensor))
    return result


def optimizer_arguments(settings):
    """PyTorch's names as --optimizer takes them."""
    settings = dict(settings)
    words = [settings.pop("type")]
    rate = settings.pop("lr")
    if "betas" in settings:
        settings["beta1"], settings["beta2"] = settings.pop("betas")
    if "eps" in settings:
        settings["epsilon"] = settings.pop("eps")
    if words == ["sgd"]:
        settings.setdefault("momentum", 0)
    words += [f"{name}={float(value):.9g}" for name, value in settings.items()]
    return ["--optimizer", ":".join(words), "--lr", str(rate)]


def export(case, record, out, *further):
    arguments = [GRAFT, "export-step", os.path.join(CASES, case, "model.onnx"), "--out", out, "--loss", record["loss"]]
    batch = tensors(os.path.join(CASES, case, "test_data_set_0", "step_0_input_0.pb"))[0].shape[0]
    arguments += ["--batch", str(batch), *optimizer_arguments(record["optimizer"])]
    arguments += ["--trainable", "|".join(re.escape(name) for name in record["trainable"])]
    for names in record.get("tied", []):
        arguments += ["--tied", ",".join(names)]
    arguments += further
    return subprocess.run(arguments, capture_output=True, text=True)


def load_loop(folder):
    spec = importlib.util.spec_from_file_location("train", os.path.join(folder, "train.py"))
    loop = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loop)
    return loop


class ExportedSteps(unittest.TestCase):
    def close(self, found, wanted, record, what):
        difference = np.abs(np.asarray(found) - wanted) - record["rtol"] * np.abs(wanted)
        self.assertLessEqual(float(difference.max()), record["atol"], what)

    def run_case(self, case, folder, record):
        data = os.path.join(CASES, case, "test_data_set_0")
        for name in ("step.onnx", "eval.onnx"):
            onnx.checker.check_model(onnx.load(os.path.join(folder, name)), full_check=True)
        loop = load_loop(folder)
        about = loop.about
        batches = []
        for step in range(record["steps"]):
            inputs = tensors(os.path.join(data, f"step_{step}_input_*.pb"))
            target = tensors(os.path.join(data, f"step_{step}_target_0.pb"))[0]
            kind = loop.NUMPY[about["target"]["type"]]
            feeds = {i["name"]: value for i, value in zip(about["inputs"], inputs)}
            feeds[about["target"]["name"]] = target.astype(kind).reshape(about["target"]["shape"])
            batches.append(feeds)
        losses, variables = loop.train(record["steps"], iter(batches).__next__)
        self.close(losses, record["losses"], record, "losses")
        self.check_trained_output(data, folder, about, batches[0], variables, record)

    def check_trained_output(self, data, folder, about, batch, variables, record):
        """eval.onnx with the trained variables, where the recorded batch has the step's size."""
        inputs = tensors(os.path.join(data, "input_*.pb"))
        if any(list(value.shape) != i["shape"] for i, value in zip(about["inputs"], inputs)):
            return
        session = onnxruntime.InferenceSession(os.path.join(folder, "eval.onnx"), providers=["CPUExecutionProvider"])
        given = {**batch, **variables, **{i["name"]: value for i, value in zip(about["inputs"], inputs)}}
        wanted = {i.name for i in session.get_inputs()}
        found = session.run([about["prediction"]], {name: value for name, value in given.items() if name in wanted})[0]
        self.close(found, tensors(os.path.join(data, "trained_output_0.pb"))[0], record, "trained output")

    def new_step(self, folder, net, *arguments):
        """The loop of a fresh net's step."""
        model = os.path.join(folder, "model.onnx")
        out = os.path.join(folder, "step")
        subprocess.run([GRAFT, "new", net, "--classes", "10", "--out", model, *arguments[:2]], check=True,
                       capture_output=True)
        subprocess.run([GRAFT, "export-step", model, "--out", out, "--loss", "cross_entropy", *arguments[2:]],
                       check=True, capture_output=True)
        return load_loop(out)

    def test_lenet_in_the_reference_evaluator(self):
        """By the standard's own definition of its ops."""
        with tempfile.TemporaryDirectory() as folder:
            loop = self.new_step(folder, "lenet", "--input", "1x16x16", "--batch", "2", "--optimizer", "adam")
            batches = [loop.batch(np.random.default_rng(seed)) for seed in (1, 2)]
            wanted, _ = loop.train(2, iter(batches).__next__)
            path = os.path.join(loop.here, "step.onnx")

            class Evaluator(ReferenceEvaluator):
                """With the calls of a session of onnxruntime that the loop makes."""
                def __init__(self, path, providers):
                    super().__init__(path)

                def get_outputs(self):
                    return onnx.load(path).graph.output

            session, onnxruntime.InferenceSession = onnxruntime.InferenceSession, Evaluator
            try:
                found, _ = loop.train(2, iter(batches).__next__)
            finally:
                onnxruntime.InferenceSession = session
            np.testing.assert_allclose(found, wanted, rtol=1e-5)

    def test_dropout_draws_in_the_step(self):
        with tempfile.TemporaryDirectory() as folder:
            loop = self.new_step(folder, "mobilenetv2", "--input", "3x32x32", "--batch", "8", "--lr", "0.01",
                                 "--optimizer", "sgd:momentum=0.9")
            ops = [node.op_type for node in onnx.load(os.path.join(loop.here, "step.onnx")).graph.node]
            self.assertEqual(ops.count("RandomUniform"), 1)
            batch = loop.batch(np.random.default_rng(1))
            losses, _ = loop.train(6, lambda: batch)
            self.assertLess(losses[-1], 0.7 * losses[0], losses)

    def test_many_steps_in_one_call(self):
        """As as many calls of a step make."""
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["lenet", "--input", "1x16x16", "--batch", "4", "--optimizer", "adamw"]
            single = self.new_step(folder, *arguments)
            batches = [single.batch(np.random.default_rng(seed)) for seed in range(6)]
            wanted, trained = single.train(6, iter(batches).__next__)
            many = self.new_step(folder, *arguments, "--steps", "3")
            self.assertEqual([1, many.about["steps"]], [single.about["steps"], 3])
            calls = [{name: np.stack([batch[name] for batch in batches[at:at + 3]]) for name in batches[0]}
                     for at in (0, 3)]
            found, variables = many.train(6, iter(calls).__next__)
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
            self.assertEqual(sorted(variables), sorted(trained))
            for name, value in trained.items():
                np.testing.assert_allclose(variables[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
            onnx.checker.check_model(onnx.load(os.path.join(many.here, "step.onnx")), full_check=True)

    def test_older_opsets(self):
        """Lookups, attention, pools and norms in the forms of other versions give the same losses."""
        cases = ("bert_adamw", "unet_bce_adam", "gru_rmsprop", "squeezenet_sgd", "resnet_groupnorm_nesterov",
                 "convnext_adamw")
        for case, opset in [(case, opset) for case in cases for opset in (13, 17, 21)]:
            with self.subTest(case=case, opset=opset), tempfile.TemporaryDirectory() as folder, \
                    open(os.path.join(CASES, case, "training.json")) as file:
                record = json.load(file)
                run = export(case, record, folder, "--opset", str(opset))
                self.assertEqual(run.returncode, 0, run.stderr)
                for name in ("step.onnx", "eval.onnx"):
                    model = onnx.load(os.path.join(folder, name))
                    self.assertEqual([(i.domain, i.version) for i in model.opset_import], [("", opset)])
                    self.assertFalse([a for node in model.graph.node for a in node.attribute
                                      if a.name == "training_mode" and a.i])
                self.run_case(case, folder, record)

    def test_an_opset_that_lacks_an_op_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "model.onnx")
            wide = onnx.helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[9, 9], pads=[4] * 4)
            conv = onnx.helper.make_node("Conv", ["in", "w"], ["x"], kernel_shape=[1, 1])
            tensor = onnx.helper.make_tensor_value_info
            graph = onnx.helper.make_graph(
                [conv, wide], "net", [tensor("in", 1, [2, 1, 9, 9])], [tensor("y", 1, [2, 1, 9, 9])],
                [numpy_helper.from_array(np.ones((1, 1, 1, 1), "f4"), "w")])
            onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8),
                      model)
            command = [GRAFT, "export-step", model, "--out", os.path.join(folder, "step"), "--loss", "mse", "--batch",
                       "2", "--opset"]
            refused = subprocess.run([*command, "13"], capture_output=True, text=True)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn("ScatterElements", refused.stderr)
            self.assertIn("opset 13 lacks reduction = add", refused.stderr)
            self.assertEqual(subprocess.run([*command, "16"], capture_output=True).returncode, 0)

    def test_every_case(self):
        cases = sorted(name for name in os.listdir(CASES) if os.path.exists(os.path.join(CASES, name, "training.json")))
        self.assertGreaterEqual(len(cases), 18)
        for case in cases:
            with self.subTest(case), tempfile.TemporaryDirectory() as folder, \
                    open(os.path.join(CASES, case, "training.json")) as file:
                record = json.load(file)
                run = export(case, record, folder)
                if case in REFUSED:
                    self.assertEqual(run.returncode, 2, run.stderr)
                    self.assertIn(REFUSED[case], run.stderr)
                else:
                    self.assertEqual(run.returncode, 0, run.stderr)
                    self.run_case(case, folder, record)


if __name__ == "__main__":
    unittest.main()
