"""All kinds of data are taken, and are the same."""
import array
import collections
import unittest

from needed import needed

with needed():
    import numpy as np
    from onnx import TensorProto, helper

import graft
from nets import fit, samples, trainer


class Column:
    """Hugging Face's way to be read, as of a data set with_format("numpy")."""
    column_names = ["input", "label"]

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, rows):
        return {"input": self.x[rows], "label": self.y[rows]}


class Samples(Column):
    """PyTorch's Dataset: one sample an index."""
    column_names = property()

    def __getattribute__(self, name):
        if name == "column_names":
            raise AttributeError(name)
        return super().__getattribute__(name)

    def __getitem__(self, index):
        return self.x[index], int(self.y[index])


class OnlyDlpack:
    """What a tensor of another library is to us."""

    def __init__(self, values):
        self._values = np.ascontiguousarray(values)

    def __dlpack__(self, **options):
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


class Data(unittest.TestCase):
    def losses(self, data, **options):
        return fit(trainer(), data, shuffle=False, batch=32, **options)["loss"]

    def test_all_kinds_are_the_same(self):
        x, y = samples()
        batches = [(x[i:i + 32], y[i:i + 32]) for i in (0, 32, 64)]
        expected = self.losses((x, y), epochs=2)
        kinds = {
            "list of batches": batches,
            "dicts": [{"input": a, "label": b} for a, b in batches],
            "DLPack alone": [(OnlyDlpack(a), OnlyDlpack(b)) for a, b in batches],
            "buffers": [(memoryview(a), array.array("q", b)) for a, b in batches],
            "Loader": graft.Loader((x, y), 32),
            "columns": Column(x, y),
            "samples": Samples(x, y),
            "deque of batches": collections.deque(batches),
            "inputs by name": [({"input": a}, b) for a, b in batches],
            "inputs by other names": [({"image": a}, b) for a, b in batches],
            "big-endian": (x.astype(">f4"), y.astype(">i8")),
            "other element types": (x.astype(np.float64), y.astype(np.uint8)),
            "dict of arrays": {"input": x, "label": y},
        }
        for kind, data in kinds.items():
            with self.subTest(kind):
                self.assertEqual(self.losses(data, epochs=2), expected)

    def test_arrays_are_shared(self):
        x, y = samples()
        loader = graft.Loader((x, y), 96)
        first = next(iter(loader))[0]
        x[0] = 9
        self.assertEqual(next(iter(loader))[0][0, 0], 9)
        self.assertNotEqual(first[0, 0], 9)  # what one got is one's own

    def test_a_generator_is_at_its_end_in_the_second_epoch(self):
        x, y = samples()
        with self.assertRaises(graft.Error) as caught:
            fit(trainer(), ((x, y) for _ in range(2)), epochs=2)
        self.assertIn("generator", str(caught.exception))

    def test_two_passes_over_one_loader_are_refused(self):
        loader = graft.Loader(samples(), 16)
        passing = iter(loader)
        next(passing)
        next(iter(loader))
        with self.assertRaises(graft.Error):
            next(passing)

    def test_what_is_no_data_is_refused(self):
        x, y = samples()
        for data in (3, [1, 2], [(x,)], x, {"input": x, "label": y, "other": 3}, "nonsense:x"):
            with self.subTest(data), self.assertRaises(graft.Error):
                fit(trainer(), data)

    def test_an_input_that_is_missing_by_name_is_refused(self):
        t = graft.Trainer(graft.parse(two_inputs()), loss="mse", parameters=["w"])
        a = np.ones((4, 2))
        for data in ([({"a": a, "c": a}, a)], [{"a": a, "c": a, "y": a}]):
            with self.assertRaisesRegex(graft.Error, "has 2 inputs, got 1"):
                fit(t, data)

    def test_element_types_that_are_none_are_named(self):
        x, y = samples()
        for wrong in (x.astype(object), x.astype("datetime64[s]"), x.astype(np.longdouble)):
            with self.subTest(wrong.dtype), self.assertRaises(graft.Error) as caught:
                trainer().step(wrong, y)
            self.assertEqual(caught.exception.kind, "type")
            self.assertIn(f"dtype {wrong.dtype}", str(caught.exception))

    def test_statistics_that_are_not_known_are_asked_for(self):
        for data in (samples(), "npz:x"):
            with self.assertRaisesRegex(graft.Error, "Normalize"):
                graft.Loader(data, transforms="known")

    def test_several_inputs(self):
        model = graft.parse(two_inputs())
        t = graft.Trainer(model, loss="mse", optimizer=graft.SGD(lr=0.1), parameters=["w"])
        a, b, y = np.ones((4, 2)), np.zeros((4, 2)), np.ones((4, 2))
        self.assertAlmostEqual(t.step([a, b], y), 0.25)  # w is 0.5, its gradient -0.5
        self.assertAlmostEqual(t.step({"b": b, "a": a}, y), 0.45**2, places=6)
        t.fit([(a, b, y), ((a, b), y), {"a": a, "b": b, "y": y}], verbose=False)
        self.assertEqual(t.predict([a, b]).shape, (4, 2))


def two_inputs():
    """y = (a - b) * w, by the onnx package."""
    floats = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", 2]) for n in "aby"]
    w = helper.make_tensor("w", TensorProto.FLOAT, [2], [0.5, 0.5])
    nodes = [helper.make_node("Sub", ["a", "b"], ["s"]), helper.make_node("Mul", ["s", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", floats[:2], floats[2:], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                             ir_version=8).SerializeToString()


if __name__ == "__main__":
    unittest.main()
