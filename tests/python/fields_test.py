"""A file that is read and written again has every field as it was: those of the training cases, the node
cases of ONNX, here and in its package, and the seeds of the fuzzers."""
import glob
import os
import tempfile
import unittest

from needed import needed

with needed():
    import onnx
    import onnx.backend.test

import graft
from protos import differences

HERE = os.path.dirname(os.path.abspath(__file__))
PLACES = (
    os.path.join(HERE, "..", "training_cases"),
    os.path.join(HERE, "..", "oracles"),
    os.path.join(HERE, "..", "fuzz", "corpus"),
    os.path.join(os.path.dirname(onnx.backend.test.__file__), "data"),
)


class Fields(unittest.TestCase):
    def test_every_file_is_written_as_it_was_read(self):
        checked, refused = 0, {}
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.onnx")
            for place in PLACES:
                files = sorted(glob.glob(os.path.join(place, "**", "*.onnx"), recursive=True))
                self.assertTrue(files, place)
                for file in files:
                    try:
                        model = graft.load(file)
                    except graft.Error as error:
                        refused[file] = str(error)
                        continue
                    model.save(out)
                    found = differences(onnx.load(file, load_external_data=False), onnx.load(out))
                    self.assertEqual(found, [], file)
                    checked += 1
        print(f"{checked} files written as they were read, {len(refused)} not read")
        for file, why in refused.items():
            print(os.path.relpath(file, HERE), why[:150])
        self.assertGreater(checked, 2000)
        self.assertLess(len(refused), 20)


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
