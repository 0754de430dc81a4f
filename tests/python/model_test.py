"""Models in Python: what they show, surgery, weights as live views, files."""
import os
import tempfile
import threading
import unittest

from needed import needed

with needed():
    import numpy as np
    from onnx import TensorProto, helper

import graft


class Models(unittest.TestCase):
    def setUp(self):
        self.model = graft.new("lenet", (1, 28, 28), 10, seed=3)

    def test_says_what_it_is(self):
        x, = self.model.inputs
        self.assertEqual((x.name, x.dtype, x.shape), ("input", "f32", ("N", 1, 28, 28)))
        self.assertEqual(self.model.outputs[0].shape, ("N", 10))
        table = self.model._table()
        self.assertIn("f32[N,20,24,24]", table)  # inferred: no file says it
        self.assertIn(f"{sum(a.size for a in self.model.weights.values()):,} numbers", table)
        self.assertLessEqual(max(len(line) for line in table.splitlines()), 100)

    def test_html_is_escaped(self):
        self.model.rename("logits", "<b>")
        page = self.model._repr_html_()
        self.assertIn("&lt;b&gt;", page)
        self.assertNotIn("<b>", page)

    def test_surgery_chains(self):
        model = self.model.truncate("relu3").append("dropout:0.5", graft.Linear("head", 4, seed=1))
        self.assertIs(model, self.model)
        self.assertEqual(model.outputs[0].name, "head")
        self.assertEqual(model.outputs[0].shape, ("N", 4))
        self.assertEqual(model.weights["head.weight"].shape, (4, 500))
        self.assertEqual(model.run(np.zeros((2, 1, 28, 28))).shape, (2, 4))

    def test_adapters_and_what_is_frozen(self):
        model = graft.new("mlp", (1, 4, 4), 3)
        base = model.copy()
        self.assertEqual(model.add_lora("fc[12]", rank=2, alpha=4), ["fc1", "fc2"])
        model.weights["fc1.lora_B.weight"][:] = 0.5
        path = os.path.join(tempfile.mkdtemp(), "a.safetensors")
        model.save_lora(path)
        base.apply_lora(path).insert_dropout("fc1", 0.3).unfreeze("fc3.*")
        self.assertIn("fc2.bias", base.metadata["graft.frozen"].split())
        self.assertNotIn("fc3.bias", base.metadata["graft.frozen"].split())
        x = np.random.default_rng(1).random((2, 1, 4, 4), dtype=np.float32)
        apart, = graft.Session(model).run(x).values()
        again, = graft.Session(base).run(x).values()
        merged, = graft.Session(model.merge_lora()).run(x).values()
        np.testing.assert_array_equal(again, apart)
        np.testing.assert_allclose(merged, apart, rtol=1e-4, atol=1e-5)
        self.assertNotIn("graft.frozen", model.metadata)
        with self.assertRaisesRegex(graft.Error, "matches none of 0 BatchNormalizations"):
            model.set_norms(".*", "fixed")

    def test_half_precision(self):
        model = graft.new("mlp", (1, 4, 4), 3)
        x = np.random.default_rng(1).random((2, 1, 4, 4), dtype=np.float32)
        wide, = graft.Session(model).run(x).values()
        narrow, = graft.Session(model.set_precision("bf16")).run(x).values()
        np.testing.assert_allclose(narrow, wide, atol=0.03 * np.abs(wide).max())
        self.assertFalse(np.array_equal(narrow, wide))
        with self.assertRaisesRegex(graft.Error, "precision 'f8': wanted f16 or bf16"):
            model.set_precision("f8")

    def test_every_layer_can_be_appended(self):
        image = [graft.Conv("c", 8, 3, stride=2, padding=[1, 1]), graft.BatchNorm("bn"),
                 graft.Residual([graft.Conv("r", 8, padding=1)]), graft.MaxPool(2),
                 graft.LeakyRelu(0.2), graft.AveragePool((2, 2), stride=1), graft.Silu(),
                 graft.Gelu("g"), graft.GlobalAveragePool(), graft.Flatten(), graft.Dropout(0.1),
                 graft.Tanh(), graft.Sigmoid(), graft.Relu(), graft.Relu6(), graft.Softmax(),
                 graft.LogSoftmax(), graft.Reshape((2, 4)), graft.LayerNorm(axes=2),
                 graft.GroupNorm("gn", 2), graft.MultiHeadAttention("a", 2),
                 graft.LSTM("lstm", 3, depth=2, bidirectional=True),
                 graft.GRU("gru", 4, steps="last", init="xavier_normal"),
                 graft.Reshape([4, 1, 1]), graft.ConvTranspose("up", 3, stride=2, seed=2),
                 graft.Flatten(), graft.Cosine("cos", 6, seed=3),
                 graft.Linear("l", 5, init="normal:std=0.02")]
        rows = graft.Embedding("e", 7, 2)
        of_text = {usage.split(":")[0].split("[")[0].replace("_", "")
                   for usage in graft._core.layer_usages()}
        self.assertLessEqual(of_text, {type(layer).__name__.lower() for layer in [*image, rows]})
        model = graft.new("resnet20", (3, 32, 32), 10)
        first = model.nodes[0].outputs[0].name
        model.truncate(first).append(*image)
        self.assertEqual(model.run(np.ones((2, 3, 32, 32))).shape, (2, 5))
        with self.assertRaisesRegex(graft.Error, "wanted indices"):
            model.append(rows)

    def test_places_are_names_patterns_or_counts(self):
        copies = [self.model.copy() for _ in range(3)]
        self.assertEqual(copies[0].truncate("last:1").outputs[0].name, "relu3")
        self.assertEqual(copies[1].truncate("conv.*").outputs[0].name, "conv2")
        copies[2].append("linear:3:name=extra", after="relu3", init="zeros")
        self.assertEqual([o.name for o in copies[2].outputs], ["logits", "extra"])
        np.testing.assert_array_equal(copies[2].weights["extra.weight"], np.zeros((3, 500)))

    def test_inserts_and_replaces_heads(self):
        x = np.ones((2, 1, 28, 28))
        before = self.model.run(x)
        self.model.insert("dropout:0.5:name=drop", after="relu3")
        np.testing.assert_array_equal(self.model.run(x), before)
        self.assertEqual(self.model.replace_head(4, init="zeros").outputs[0].shape, ("N", 4))
        np.testing.assert_array_equal(self.model.run(x), np.zeros((2, 4)))

    def test_arrays_that_c_may_not_read_are_copied(self):
        model = graft.new("mlp", (4,), 3)
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        apart = np.frombuffer(b"." + x.tobytes(), np.float32, offset=1).reshape(2, 4)
        self.assertFalse(apart.flags.aligned)
        np.testing.assert_array_equal(model.run(apart), model.run(x))

    def test_merges_models(self):
        head = graft.new("mlp", (10,), 3)
        x = np.ones((2, 1, 28, 28))
        wanted = head.run(self.model.run(x))
        self.model.merge(head, {"logits": "input"}, prefix="head/")
        np.testing.assert_allclose(self.model.run(x), wanted, rtol=1e-6)
        self.assertIn("head/fc1.weight", self.model.weights)
        self.model.add_prefix("all/")
        self.assertEqual(self.model.inputs[0].name, "all/input")

    def test_opset(self):
        x = np.ones((2, 1, 28, 28))
        before = self.model.run(x)
        self.assertEqual(self.model.set_opset(13).opset, 13)
        np.testing.assert_array_equal(self.model.run(x), before)

    def test_unknown_layer_is_refused(self):
        with self.assertRaises(graft.Error) as caught:
            self.model.append(3)
        self.assertIn("wanted a layer", str(caught.exception))
        self.assertEqual(caught.exception.kind, "argument")

    def test_weights_are_live_views(self):
        weight = self.model.weights["fc2.weight"]
        x = np.random.default_rng(0).random((3, 1, 28, 28), np.float32)
        before = self.model.run(x)
        weight *= 2
        bias = self.model.weights["fc2.bias"]
        np.testing.assert_allclose(self.model.run(x) - bias, 2 * (before - bias), rtol=1e-4, atol=1e-5)
        self.model.weights["fc2.weight"] = np.zeros(weight.shape)
        self.assertEqual(weight.any(), False)

    def test_weights_refuse_what_does_not_fit(self):
        with self.assertRaises(graft.Error) as caught:
            self.model.weights["fc2.bias"] = np.zeros(3, np.float32)
        self.assertEqual(caught.exception.kind, "shape")
        with self.assertRaises(KeyError):
            self.model.weights["nothing"]

    def test_copies_in_another_type_are_read_only(self):
        model = graft.new("mlp", (4,), 3).set_precision("bf16")
        weight = model.weights["fc1.weight"]
        self.assertEqual(weight.dtype, np.float32)
        with self.assertRaisesRegex(ValueError, "read-only"):
            weight[:] = 0
        model.weights["fc1.weight"] = np.zeros(weight.shape)
        self.assertFalse(model.weights["fc1.weight"].any())

    def test_views_outlive_the_model(self):
        weight = self.model.weights["fc2.weight"]
        copy = weight.copy()
        del self.model
        np.testing.assert_array_equal(weight, copy)

    def test_copies_share_nothing(self):
        copy = self.model.copy()
        copy.weights["fc2.bias"][:] = 7
        self.assertFalse((self.model.weights["fc2.bias"] == 7).any())

    def test_threads_may_look_while_one_edits(self):
        names = ["logits", "a name that no short string holds"]
        done = threading.Event()

        def edit():
            while not done.is_set():
                self.model.rename(*names)
                self.model.rename(*reversed(names))

        thread = threading.Thread(target=edit)
        thread.start()
        try:
            for _ in range(2000):
                seen = {self.model.nodes[-1].outputs[0].name, self.model.outputs[0].name}
                self.assertLessEqual(seen, set(names))
                self.assertEqual(set(self.model.copy().weights), set(self.model.weights))
        finally:
            done.set()
            thread.join()

    def test_files_and_bytes(self):
        self.model.metadata = {"task": "digits"}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            self.model.save(path)
            loaded = graft.load(path)
            self.assertEqual(loaded.metadata, {"task": "digits"})
            self.assertEqual(loaded.to_bytes(), graft.parse(self.model.to_bytes()).to_bytes())

    def test_errors_have_a_kind(self):
        for kind, call in {
            "io": lambda: graft.load("/no/such/file.onnx"),
            "model": lambda: graft.parse(b"no model"),
            "argument": lambda: self.model.truncate("nothing"),
            "shape": lambda: self.model.run(np.zeros((1, 3, 28, 28))),
            "type": lambda: self.model.run(object()),
        }.items():
            with self.subTest(kind), self.assertRaises(graft.Error) as caught:
                call()
            self.assertEqual(caught.exception.kind, kind, str(caught.exception))


class Sessions(unittest.TestCase):
    def test_inputs_by_place_and_name(self):
        session = graft.Session(graft.new("mlp", (4,), 2))
        x = np.ones((1, 4), np.float32)
        expected = session(x)
        np.testing.assert_array_equal(session(input=x), expected)
        np.testing.assert_array_equal(session({"input": x}), expected)
        np.testing.assert_array_equal(session.run(x)["logits"], expected)
        np.testing.assert_array_equal(session([[1, 1, 1, 1]]), expected)
        for wrong in (lambda: session(), lambda: session(x, x), lambda: session(y=x)):
            with self.assertRaises(graft.Error):
                wrong()

    def test_any_layout_and_offset_of_memory(self):
        session = graft.Session(graft.new("mlp", (4,), 2))
        big = np.random.default_rng(1).random((7, 9), np.float32)
        part = big[1:6, 3:7]
        np.testing.assert_array_equal(session(part), session(part.copy()))
        flat = np.random.default_rng(2).random(21, np.float32)[1:].reshape(5, 4)  # odd address
        np.testing.assert_array_equal(session(flat), session(flat.copy()))
        part.setflags(write=False)
        np.testing.assert_array_equal(session(part), session(part.copy()))
        np.testing.assert_array_equal(session(memoryview(flat)), session(flat))

    def test_bound_runs_share_memory_with_the_caller(self):
        session = graft.Session(graft.new("mlp", (4,), 2, seed=1), weights_change=True)
        x = np.ones((3, 4), np.float32)
        bound = session.bind(x)
        scores = bound.outputs["logits"]
        bound.run()
        np.testing.assert_array_equal(scores, session(x))
        x[:] = 2
        bound.run()
        np.testing.assert_array_equal(scores, session(x))
        turned = session.bind(np.asfortranarray(x))
        turned.inputs["input"][:] = 3
        turned.run()
        np.testing.assert_array_equal(turned.outputs["logits"], session(x * 1.5))
        session.set_weights({"fc3.bias": scores[0] * 0 + 7, "fc3.weight": np.zeros((2, 128), np.float32)})
        bound.run()
        np.testing.assert_array_equal(scores, np.full((3, 2), 7, np.float32))
        with self.assertRaisesRegex(graft.Error, "no weight that may change"):
            session.set_weights({"none": x})

    def test_bound_runs_leave_memory_alone_that_is_read_only(self):
        session = graft.Session(graft.new("mlp", (4,), 2))
        given = np.ones((3, 4), np.float32).tobytes()
        bound = session.bind(np.frombuffer(given, np.float32).reshape(3, 4))
        bound.inputs["input"][:] = 2
        bound.run()
        self.assertEqual(given, np.ones((3, 4), np.float32).tobytes())
        np.testing.assert_array_equal(bound.outputs["logits"], session(np.full((3, 4), 2.0)))

    def test_integers_that_do_not_fit_are_refused(self):
        session = graft.Session(chain("Cast", ["x"], TensorProto.INT32, [2], TensorProto.FLOAT, to=1))
        np.testing.assert_array_equal(session(np.array([7, -7])), [7, -7])
        with self.assertRaisesRegex(graft.Error, "input 'x': found .* 3000000000, which does not fit"
                                    " into the i32") as caught:
            session(np.array([1, 3_000_000_000]))
        self.assertEqual(caught.exception.kind, "type")

    def test_maps_are_dicts(self):
        key = helper.make_map_type_proto(
            TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        node = helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml",
                                string_vocabulary=["a", "b", "c"])
        graph = helper.make_graph(
            [node], "g", [helper.make_value_info("x", key)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])])
        session = graft.Session(graft.parse(helper.make_model(graph, opset_imports=[
            helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)],
            ir_version=8).SerializeToString()))
        found = session(x={"c": 2.5, "a": 1.0})
        self.assertEqual((found.dtype, found.tolist()), (np.float32, [[1.0, 0.0, 2.5]]))
        with self.assertRaisesRegex(graft.Error, "wanted strings alone or integers alone"):
            session(x={"c": 2.5, 1: 1.0})

    def test_any_value_in_place_of_the_outputs(self):
        session = graft.Session(graft.new("mlp", (4,), 2), outputs=["relu2", "logits"])
        self.assertEqual(session.output_names, ["relu2", "logits"])
        hidden, logits = session(np.ones((3, 4), np.float32))
        self.assertEqual((hidden.shape, logits.shape), ((3, 128), (3, 2)))
        self.assertGreaterEqual(hidden.min(), 0)

    def test_outputs_are_ones_own(self):
        session = graft.Session(graft.new("mlp", (4,), 2))
        first = session(np.zeros((1, 4)))
        kept = first.copy()
        session(np.ones((1, 4)))
        np.testing.assert_array_equal(first, kept)


def chain(op, inputs, type_in, shape, type_out, **attributes):
    """A model of one node."""
    graph = helper.make_graph(
        [helper.make_node(op, inputs, ["y"], **attributes)], "g",
        [helper.make_tensor_value_info(name, type_in, shape) for name in inputs],
        [helper.make_tensor_value_info("y", type_out, shape)])
    return graft.parse(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                         ir_version=8).SerializeToString())


if __name__ == "__main__":
    unittest.main()
