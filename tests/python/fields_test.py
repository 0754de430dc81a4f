"""A file that is read and written again has every field as it was: those of the training cases, the node
cases of ONNX that are kept here, all cases that the onnx package makes, and those of older ones where
they are installed."""
import glob
import os
import tempfile
import unittest

from needed import needed

with needed():
    import onnx
    from onnx.backend.test.loader import load_model_tests

import graft
from node_cases import KINDS, OLD_CASES
from protos import differences

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def files_of(folder):
    return sorted(glob.glob(os.path.join(folder, "**", "*.onnx"), recursive=True))


def made_by_onnx(path):
    """Lays each case of the package at `path`, one after the other, or says where it lies."""
    for kind in KINDS:
        for case in load_model_tests(kind=kind):
            if case.model is None:
                yield os.path.join(case.model_dir, "model.onnx")
            else:
                onnx.save(case.model, path)
                yield path


class Fields(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.given = os.path.join(folder.name, "given.onnx")
        self.out = os.path.join(folder.name, "out.onnx")

    def check(self, files, fewest):
        count = 0
        for file in files:
            name = file if file != self.given else onnx.load(file).graph.name
            with self.subTest(file=name):
                graft.load(file).save(self.out)
                found = differences(onnx.load(file), onnx.load(self.out))
                self.assertEqual(found, [])
            count += 1
        self.assertGreaterEqual(count, fewest)
        print(f"{self.id().split('.')[-1]}: {count} files")

    def test_training_cases(self):
        self.check(files_of(os.path.join(TESTS, "training_cases")), 18)

    def test_kept_node_cases(self):
        self.check(files_of(os.path.join(TESTS, "oracles")), 193)

    def test_cases_of_the_package(self):
        self.check(made_by_onnx(self.given), 1800)

    def test_cases_of_older_packages(self):
        self.check(files_of(OLD_CASES), 0)


class Differences(unittest.TestCase):
    def test_are_found_in_any_place(self):
        node = onnx.helper.make_node("Add", ["a", "b"], ["c"], name="n", k=3)
        tensor = onnx.helper.make_tensor("a", onnx.TensorProto.FLOAT, [2], [1, 2])
        graph = onnx.helper.make_graph([node], "g", [], [], [tensor])
        one = onnx.helper.make_model(graph)
        other = onnx.ModelProto()
        other.CopyFrom(one)
        self.assertEqual(differences(one, other), [])
        other.graph.node[0].attribute[0].i = 4
        other.graph.initializer[0].float_data[1] = 5
        other.graph.doc_string = ""  # there, and empty
        del other.opset_import[:]
        self.assertEqual(set(differences(one, other)), {
            "graph.node[0].attribute[0].i", "graph.initializer[0].float_data",
            "graph.doc_string: in one of them only", "opset_import: 1 and 0"})


if __name__ == "__main__":
    unittest.main()
