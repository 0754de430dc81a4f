"""Damaged files end in one typed error that names the place, soon, and without much memory.

Usage: malformed_test.py GRAFT. Ten kinds of damage to each of ten training cases; of each file `graft
inspect` must say so with exit code 2, within 2 s of processor time and 256 MB above the file's size. Fails
where onnx is not installed, unless GRAFT_OFFLINE is set: then it exits with 77 (skipped).
"""
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

from needed import needed

with needed():
    import onnx
    from onnx import TensorProto

GRAFT = os.path.abspath(sys.argv.pop(1))
CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "training_cases")
MODELS = ("bert_adamw", "convnext_adamw", "crnn_ctc_adam", "gpt_tied_adamw", "gru_rmsprop",
          "mobilenet_momentum", "mlp_mse_adagrad", "resnet_momentum", "unet_bce_adam", "vit_adam")
KIND = re.compile(r"graft: (io|model|shape|type|unsupported|argument): ")
SECONDS = 2
MEGABYTES = 256


def weight(model, chance):
    """An initializer whose elements the file holds."""
    found = [t for t in model.graph.initializer if t.raw_data and t.dims and t.data_type == TensorProto.FLOAT]
    return chance.choice(found)


def reader(model, chance):
    return chance.choice([node for node in model.graph.node if any(node.input)])


# Each damages the model, and returns what the error must name.


def elements_missing(model, chance):
    tensor = weight(model, chance)
    tensor.raw_data = tensor.raw_data[:-4]
    return tensor.name


def huge_dim(model, chance):
    tensor = weight(model, chance)
    tensor.dims[0] = 1 << 44
    return tensor.name


def negative_dim(model, chance):
    tensor = weight(model, chance)
    tensor.dims[0] = -3
    return tensor.name


def unknown_element_type(model, chance):
    tensor = weight(model, chance)
    tensor.data_type = 77
    return tensor.name


def data_outside_the_folder(model, chance):
    tensor = weight(model, chance)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../etc/passwd")
    return tensor.name


def unknown_input(model, chance):
    node = reader(model, chance)
    node.input[0] = "nowhere"
    return "nowhere"


def cycle(model, chance):
    node = reader(model, chance)
    node.input[0] = node.output[0]
    return node.name


def written_twice(model, chance):
    first, second = chance.sample(list(model.graph.node), 2)
    second.output[0] = first.output[0]
    return first.output[0]


def unknown_op(model, chance):
    chance.choice(model.graph.node).op_type = "Frobnicate"
    return "Frobnicate"


def unknown_output(model, chance):
    model.graph.output[0].name = "nothing"
    return "nothing"


DAMAGES = (elements_missing, huge_dim, negative_dim, unknown_element_type, data_outside_the_folder,
           unknown_input, cycle, written_twice, unknown_op, unknown_output)


class Malformed(unittest.TestCase):
    def inspect(self, path):
        """Exit code, what it said, processor seconds, megabytes."""
        with tempfile.TemporaryFile("w+") as said:
            child = subprocess.Popen([GRAFT, "inspect", path], stdout=subprocess.DEVNULL, stderr=said)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            return (child.returncode, said.read(), usage.ru_utime + usage.ru_stime,
                    usage.ru_maxrss / 1024)

    def expect_refusal(self, path, place):
        code, said, seconds, megabytes = self.inspect(path)
        self.assertEqual(code, 2, said)
        self.assertRegex(said, KIND)
        self.assertIn(place, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertLess(seconds, SECONDS)
        self.assertLess(megabytes, MEGABYTES + os.path.getsize(path) / (1 << 20))

    def test_ten_damages_to_ten_models(self):
        with tempfile.TemporaryDirectory() as folder:
            for number, name in enumerate(MODELS):
                model = onnx.load(os.path.join(CASES, name, "model.onnx"))
                for damage in DAMAGES:
                    with self.subTest(model=name, damage=damage.__name__):
                        broken = onnx.ModelProto()
                        broken.CopyFrom(model)
                        place = damage(broken, random.Random(number))
                        path = os.path.join(folder, "broken.onnx")
                        with open(path, "wb") as file:
                            file.write(broken.SerializeToString())
                        self.expect_refusal(path, place)

    def test_bytes_cut_off(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in MODELS:
                with self.subTest(model=name):
                    with open(os.path.join(CASES, name, "model.onnx"), "rb") as file:
                        content = file.read()
                    path = os.path.join(folder, "cut.onnx")
                    with open(path, "wb") as file:
                        file.write(content[:len(content) // 2])
                    self.expect_refusal(path, path)


if __name__ == "__main__":
    unittest.main()
