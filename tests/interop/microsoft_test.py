"""What onnxruntime's fused ops compute, Graft computes by standard ops, and trains.

Usage: microsoft_test.py GRAFT. Each op of com.microsoft that Graft writes in standard ops, in its
variants, must give in `graft run` what it gives in onnxruntime; files that onnxruntime has optimized
must, too, and can train. Fails where onnx or onnxruntime is not installed, unless GRAFT_OFFLINE is
set: then it exits with 77 (skipped).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from needed import needed

with needed():
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

GRAFT = os.path.abspath(sys.argv.pop(1))
CASES = pathlib.Path(__file__).parent.parent / "training_cases"
TOLERANCE = 2e-5
RANDOM = np.random.default_rng(1)


def normal(*shape):
    return RANDOM.standard_normal(shape, dtype=np.float32)


def small(*shape):
    return 0.3 * normal(*shape)


def ids(limit, *shape):
    return RANDOM.integers(0, limit, shape).astype(np.int32)


def packed(values, bits):
    """Numbers in bytes along the last axis, the low ones first."""
    per_byte = 8 // bits
    padding = -values.shape[-1] % per_byte
    values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, padding)])
    groups = values.reshape(*values.shape[:-1], -1, per_byte)
    shifts = np.arange(per_byte) * bits
    return (groups.astype(np.uint32) << shifts).sum(-1).astype(np.uint8)


def bits_weight(n, k, block, bits):
    """B and scales of a MatMulNBits."""
    blocks = -(-k // block)
    numbers = RANDOM.integers(0, 2**bits, (n, blocks, block))
    scales = (0.02 + 0.05 * RANDOM.random((n, blocks))).astype(np.float32)
    return packed(numbers, bits), scales


def graft(*arguments):
    run = subprocess.run([GRAFT, *arguments], capture_output=True, text=True)
    if run.returncode:
        raise AssertionError(f"graft {' '.join(arguments)}: exit {run.returncode}: {run.stderr}")
    return run.stdout


def model_of(op, inputs, outputs=1, fixed=(), **attributes):
    """A model of one node. `inputs`: arrays or None; those at the places `fixed` are initializers."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    given = {n: x for i, (n, x) in enumerate(zip(names, inputs)) if n and i not in fixed}
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain="com.microsoft", name="fused", **attributes)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype),
                                       ["N", *x.shape[1:]] if x.ndim > 1 else x.shape)
         for n, x in given.items()],
        [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in results],
        [numpy_helper.from_array(x, f"x{i}") for i, x in enumerate(inputs) if i in fixed and x is not None])
    for output in graph.output:
        output.ClearField("type")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), given


class Fused(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_graft(self, model, inputs):
        arguments = []
        for i, (name, array) in enumerate(inputs.items()):
            np.save(self.path(f"{i}.npy"), array)
            arguments += ["--input", f"{name}=" + self.path(f"{i}.npy")]
        graft("run", model, *arguments, "--out", self.path("out"))

    def output(self, name):
        return np.load(os.path.join(self.path("out"), name.replace("/", "_") + ".npy"))

    def run_both(self, model, inputs):
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        wanted = session.run(None, inputs)
        self.run_graft(model, inputs)
        for output, value in zip(session.get_outputs(), wanted):
            found = self.output(output.name)
            self.assertEqual((found.shape, found.dtype), (value.shape, value.dtype), output.name)
            worst = float(np.abs(found.astype(np.float64) - value).max())
            scale = max(1.0, float(np.abs(value).max()))
            # Quantized numbers that lie between two may become either.
            limit = TOLERANCE * scale if value.dtype.kind == "f" else 1
            self.assertLessEqual(worst, limit, output.name)

    def check(self, op, inputs, **settings):
        with self.subTest(op=op, **{k: str(v) for k, v in settings.items()}):
            model, given = model_of(op, inputs, **settings)
            onnx.save(model, self.path("m.onnx"))
            self.run_both(self.path("m.onnx"), given)

    def test_products(self):
        self.check("FusedMatMul", [normal(2, 3, 4), normal(2, 5, 4)], transB=1, alpha=0.5)
        self.check("FusedMatMul", [normal(2, 4, 3), normal(4, 5)], transA=1)
        for activation in ("Relu", "Tanh", "LeakyRelu"):
            self.check("FusedGemm", [normal(3, 4), normal(5, 4), normal(5)], fixed=(1, 2), transB=1,
                       alpha=0.7, beta=0.3, activation=activation,
                       **({"activation_alpha": 0.2} if activation == "LeakyRelu" else {}))

    def test_convolutions(self):
        x, w, b, z = normal(2, 3, 6, 6), normal(4, 3, 3, 3), normal(4), normal(2, 4, 6, 6)
        settings = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3], "fixed": (1, 2)}
        self.check("FusedConv", [x, w, b], activation="Relu", **settings)
        self.check("FusedConv", [x, w, b, z], activation="Relu", **settings)
        self.check("FusedConv", [x, w], activation="Sigmoid", **settings | {"fixed": (1,)})
        self.check("FusedConv", [x, w, b], activation="Clip", activation_params=[0.0, 6.0], **settings)
        self.check("FusedConv", [x, w, b], activation="HardSigmoid", activation_params=[0.3, 0.4],
                   **settings)

    def test_activations(self):
        self.check("Gelu", [normal(3, 8)])
        self.check("BiasGelu", [normal(2, 3, 8), normal(8)], fixed=(1,))
        self.check("FastGelu", [normal(2, 3, 8), normal(8)], fixed=(1,))
        self.check("FastGelu", [normal(2, 3, 8)])
        self.check("QuickGelu", [normal(2, 8)])
        self.check("QuickGelu", [normal(2, 8)], alpha=1.3)

    def test_normalizations(self):
        x, skip, scale, bias = normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8)
        fixed = (2, 3, 4)
        self.check("SkipLayerNormalization", [x, skip, scale, bias], fixed=fixed, epsilon=1e-5)
        self.check("SkipLayerNormalization", [x, skip, scale, bias, normal(8)], fixed=fixed)
        self.check("SkipSimplifiedLayerNormalization", [x, skip, scale], fixed=fixed, epsilon=1e-6)
        model, given = model_of("SimplifiedLayerNormalization", [x, scale], fixed=(1,), epsilon=1e-6)
        model.graph.node[0].domain = ""
        onnx.save(model, self.path("rms.onnx"))
        self.run_both(self.path("rms.onnx"), given)
        model, given = model_of("SkipLayerNormalization", [x, skip, scale, bias, normal(8)], fixed=fixed)
        node = model.graph.node[0]
        node.output.extend(["", "", "sum"])
        model.graph.output.add().name = "sum"
        onnx.save(model, self.path("sum.onnx"))
        self.run_both(self.path("sum.onnx"), given)

    def test_embeddings(self):
        words, places, segments = normal(20, 8), normal(6, 8), normal(2, 8)
        scale, bias = normal(8), normal(8)
        fixed = (2, 3, 4, 5, 6)
        mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
        self.check("EmbedLayerNormalization",
                   [ids(20, 2, 5), ids(2, 2, 5), words, places, segments, scale, bias, mask],
                   fixed=fixed, outputs=2)
        self.check("EmbedLayerNormalization",
                   [ids(20, 2, 5), None, words, places, None, scale, bias], fixed=fixed, outputs=2)
        self.check("EmbedLayerNormalization",
                   [ids(20, 2, 5), None, words, places, None, scale, bias, None, ids(6, 2, 5)],
                   fixed=fixed, outputs=2)

    def test_attention(self):
        x, w, b = normal(2, 5, 8), small(8, 24), small(24)
        flags = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
        lengths = np.array([3, 5], np.int32)
        for mask in (None, flags, lengths):
            self.check("Attention", [x, w, b, mask], fixed=(1, 2), num_heads=2)
        self.check("Attention", [x, w, b], fixed=(1, 2), num_heads=2, unidirectional=1)
        self.check("Attention", [x, w, b], fixed=(1, 2), num_heads=4, scale=0.2)
        self.check("Attention", [x, small(8, 20), small(20)], fixed=(1, 2), num_heads=2,
                   qkv_hidden_sizes=[8, 8, 4])
        self.check("Attention", [x, w, b, None, None, normal(2, 2, 5, 5)], fixed=(1, 2), num_heads=2)

    def test_multi_head_attention(self):
        q, k, v = normal(2, 4, 8), normal(2, 6, 8), normal(2, 6, 8)
        self.check("MultiHeadAttention", [q, k, v], num_heads=2)
        self.check("MultiHeadAttention", [q, k, v, small(24)], fixed=(3,), num_heads=4)
        mask = np.array([[1, 1, 1, 1, 0, 0], [1] * 6], np.int32)
        self.check("MultiHeadAttention", [q, k, v, None, mask], num_heads=2)
        self.check("MultiHeadAttention", [q, k, v, None, None, normal(2, 2, 4, 6)], num_heads=2)

    def group_query(self, x, total=None, past=None, extra=(), lengths=None, **settings):
        """`x`: q, k, v or all in the first. `extra`: cosines, sines, places, bias."""
        total = total or x[0].shape[1]
        lengths = np.full(len(x[0]), total - 1, np.int32) if lengths is None else lengths
        inputs = [*x, *[None] * (3 - len(x)), *(past or (None, None)), lengths, np.array(total, np.int32),
                  *extra]
        self.check("GroupQueryAttention", inputs, outputs=3, fixed=(6, 7, 8), num_heads=4,
                   kv_num_heads=2, **settings)

    def test_group_query_attention(self):
        q, k, v = normal(2, 5, 64), normal(2, 5, 32), normal(2, 5, 32)
        self.group_query([q, k, v])
        self.group_query([q, k, v], scale=0.2)
        self.group_query([q, k, v], softcap=1.5)
        self.group_query([q, k, v], local_window_size=2)
        self.group_query([np.concatenate([q, k, v], 2)])
        angles = RANDOM.random((12, 8), dtype=np.float32)
        tables = [np.cos(angles), np.sin(angles)]
        past = [normal(2, 2, 3, 16), normal(2, 2, 3, 16)]
        for interleaved in (0, 1):
            self.group_query([q, k, v], extra=tables, do_rotary=1, rotary_interleaved=interleaved)
        self.group_query([q[:, :1], k[:, :1], v[:, :1]], total=4, past=past, extra=tables, do_rotary=1)
        self.group_query([q, k, v], extra=[None, None, None, normal(1, 4, 5, 5)])

    def test_group_query_attention_of_samples_that_end_early(self):
        inputs = [normal(2, 5, 32), normal(2, 5, 16), normal(2, 5, 16), None, None,
                  np.array([2, 4], np.int32), np.array(5, np.int32)]
        model, given = model_of("GroupQueryAttention", inputs, 3, (6,), num_heads=4, kv_num_heads=2)
        onnx.save(model, self.path("m.onnx"))
        wanted = onnxruntime.InferenceSession(self.path("m.onnx")).run(None, given)[0]
        arguments = []
        for name, array in given.items():
            np.save(self.path(name + ".npy"), array)
            arguments += ["--input", f"{name}=" + self.path(name + ".npy")]
        graft("run", self.path("m.onnx"), *arguments, "--out", self.path("out"))
        found = np.load(self.path("out") + "/y0.npy")
        np.testing.assert_allclose(found[0, :3], wanted[0, :3], atol=2e-5)
        np.testing.assert_allclose(found[1], wanted[1], atol=2e-5)

    def test_quantized_products(self):
        def number(value, dtype=np.float32):
            return np.array(value, dtype)

        a = RANDOM.integers(0, 255, (3, 6)).astype(np.uint8)
        # Seven bits: onnxruntime adds two products in 16 bits on processors of AVX2 alone. For eight,
        # test_quantized_products_of_eight_bits asks NumPy.
        b = RANDOM.integers(-63, 63, (5, 6)).astype(np.int8)
        bias = RANDOM.integers(-2000, 2000, 5).astype(np.int32)
        zero_a, zero_b = number(120, np.uint8), number(0, np.int8)
        settings = {"fixed": (1, 2, 3, 4, 5, 6, 7, 8), "transB": 1}
        head = [a, number(0.02), zero_a, b, number(0.01), zero_b]
        self.check("QGemm", head, **settings)
        self.check("QGemm", [*head, bias], alpha=0.5, **settings)
        rows = (0.01 + 0.01 * RANDOM.random(5)).astype(np.float32)
        self.check("QGemm", [a, number(0.02), zero_a, b, rows, np.zeros(5, np.int8), bias], **settings)
        self.check("QGemm", [*head, bias, number(0.05), number(128, np.uint8)], **settings)

    def test_quantized_products_of_eight_bits(self):
        a = RANDOM.integers(0, 256, (3, 40)).astype(np.uint8)
        b = RANDOM.integers(-128, 128, (5, 40)).astype(np.int8)
        a[0], b[0] = 255, 127
        scales, zeros = np.float32([0.02, 0.01]), (np.uint8(3), np.int8(-2))
        head = [a, scales[0], zeros[0], b, scales[1], zeros[1]]
        model, given = model_of("QGemm", [np.asarray(x) for x in head], fixed=(1, 2, 3, 4, 5), transB=1)
        onnx.save(model, self.path("m.onnx"))
        self.run_graft(self.path("m.onnx"), given)
        wanted = (a.astype(np.int64) - int(zeros[0])) @ (b.astype(np.int64) - int(zeros[1])).T
        wanted = wanted * scales.astype(np.float64).prod()
        np.testing.assert_allclose(self.output("y0"), wanted, rtol=1e-6)

    def test_rotary_embedding(self):
        angles = RANDOM.random((10, 4), dtype=np.float32)
        tables = [np.cos(angles), np.sin(angles)]
        places = ids(10, 2, 5).astype(np.int64)
        first = np.array([3], np.int64)
        for interleaved in (0, 1):
            for at in (places, first):
                self.check("RotaryEmbedding", [normal(2, 5, 16), at, *tables], fixed=(2, 3),
                           interleaved=interleaved)
        self.check("RotaryEmbedding", [normal(2, 3, 5, 8), places, *tables], fixed=(2, 3))

    def test_weights_of_few_bits(self):
        for bits, block, k in ((4, 16, 32), (4, 32, 80), (8, 16, 48)):
            b, scales = bits_weight(6, k, block, bits)
            blocks = scales.shape[1]
            zeros = packed(RANDOM.integers(0, 2**bits, (6, blocks)), bits)
            settings = {"K": k, "N": 6, "bits": bits, "block_size": block}
            x = normal(2, 3, k)
            self.check("MatMulNBits", [x, b, scales], fixed=(1, 2), **settings)
            self.check("MatMulNBits", [x, b, scales, zeros], fixed=(1, 2, 3), **settings)
        self.check("MatMulNBits", [x, b, scales, None, None, normal(6)], fixed=(1, 2, 5), **settings)

    def test_adapters_beside_weights_of_few_bits(self):
        b, scales = bits_weight(4, 32, 16, 4)
        model, _ = model_of("MatMulNBits", [normal(8, 32), b, scales, None, None, normal(4)],
                            fixed=(1, 2, 5), K=32, N=4, bits=4, block_size=16)
        base, adapted, trained, merged = (self.path(f"{i}.onnx") for i in range(4))
        onnx.save(model, base)
        np.savez(self.path("data.npz"), x0=normal(64, 32), y=np.arange(64) % 4)
        graft("edit", base, "--lora", ".*", "--rank", "2", "--out", adapted)
        trainable = json.loads(graft("inspect", adapted, "--json"))["trainable"]
        self.assertEqual([t["name"] for t in trainable],
                         ["fused.lora_A.weight", "fused.lora_B.weight"])
        log = graft("train", adapted, "--data", "npz:" + self.path("data.npz"), "--optimizer", "adam",
                    "--lr", "0.05", "--epochs", "3", "--json", "--no-run", "--out", trained)
        self.assertIn("loss", log)
        kept = {t.name: numpy_helper.to_array(t) for t in onnx.load(trained).graph.initializer}
        np.testing.assert_array_equal(kept["x1"], b)
        np.testing.assert_array_equal(kept["x2"], scales)
        self.assertGreater(np.abs(kept["fused.lora_B.weight"]).max(), 0.01)
        inputs = {"x0": normal(5, 32)}
        self.run_both(trained, inputs)
        graft("edit", trained, "--merge-lora", "--out", merged)
        answers = [onnxruntime.InferenceSession(m).run(None, inputs)[0] for m in (trained, merged)]
        np.testing.assert_allclose(*answers, rtol=1e-4, atol=1e-5)

    def test_optimized_files(self):
        for case in ("bert_adamw", "gpt_tied_adamw", "resnet_momentum", "vit_script_adam"):
            with self.subTest(case=case):
                source = str(CASES / case / "model.onnx")
                options = onnxruntime.SessionOptions()
                level = onnxruntime.GraphOptimizationLevel
                options.graph_optimization_level = level.ORT_ENABLE_EXTENDED
                options.optimized_model_filepath = self.path("optimized.onnx")
                onnxruntime.InferenceSession(source, options)
                optimized = onnx.load(self.path("optimized.onnx"))
                self.assertTrue(any(n.domain == "com.microsoft" for n in optimized.graph.node))
                data = onnx.load_tensor(str(CASES / case / "test_data_set_0" / "input_0.pb"))
                name = onnx.load(source).graph.input[0].name
                self.run_both(self.path("optimized.onnx"), {name: numpy_helper.to_array(data)})
                self.assertIn("has a gradient", graft("inspect", self.path("optimized.onnx")))


    def blocked(self, source, inputs):
        """A file that onnxruntime has put in blocks of channels, where its machine has such."""
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.optimized_model_filepath = self.path("blocked.onnx")
        onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        domains = {n.domain for n in onnx.load(self.path("blocked.onnx")).graph.node}
        if "com.microsoft.nchwc" not in domains:
            self.skipTest("onnxruntime knows no blocks of channels for this processor")
        self.run_both(self.path("blocked.onnx"), inputs)

    def test_blocks_of_channels(self):
        """Narrow and wide channels, groups, pools, a shortcut, sizes doubled."""
        weights, nodes = [], []

        def conv(x, y, out, into, group=1, size=3, **settings):
            weights.append(numpy_helper.from_array(0.3 * normal(out, into // group, size, size), y + "_w"))
            weights.append(numpy_helper.from_array(normal(out), y + "_b"))
            nodes.append(helper.make_node("Conv", [x, y + "_w", y + "_b"], [y], name=y, group=group,
                                          pads=[size // 2] * 4, **settings))

        def node(op, inputs, output, **settings):
            nodes.append(helper.make_node(op, inputs, [output], name=output, **settings))

        conv("x", "a", 24, 3)
        node("Relu", ["a"], "ra")
        conv("ra", "d", 40, 24)
        conv("d", "e", 32, 40, size=1)
        conv("e", "depthwise", 32, 32, group=32)
        conv("depthwise", "grouped", 32, 32, group=2)
        node("Add", ["grouped", "e"], "sum")
        node("Relu", ["sum"], "rs")
        node("MaxPool", ["rs"], "p", kernel_shape=[2, 2], strides=[2, 2])
        conv("p", "f", 20, 32, strides=[2, 2])
        node("AveragePool", ["f"], "q", kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1])
        conv("q", "g", 20, 20, size=1)
        node("GlobalAveragePool", ["g"], "y")
        graph = helper.make_graph(
            nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 16, 16])],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", None, None, None])
             for n in ("y", "rs")], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, self.path("plain.onnx"))
        self.blocked(self.path("plain.onnx"), {"x": normal(2, 3, 16, 16)})

    def test_files_in_blocks_of_channels_train(self):
        case = CASES / "resnet_momentum"
        data = numpy_helper.to_array(onnx.load_tensor(str(case / "test_data_set_0" / "input_0.pb")))
        name = onnx.load(str(case / "model.onnx")).graph.input[0].name
        self.blocked(str(case / "model.onnx"), {name: data})
        classes = np.arange(len(data)) % 10
        np.savez(self.path("data.npz"), **{name: data, "y": classes})
        lines = graft("train", self.path("blocked.onnx"), "--data", "npz:" + self.path("data.npz"), "--lr",
                      "0.01", "--epochs", "4", "--batch", str(len(data)), "--json", "--no-run", "--out",
                      self.path("trained.onnx")).splitlines()
        losses = [json.loads(line)["loss"] for line in lines if '"loss"' in line and '"epoch"' in line]
        self.assertLess(losses[-1], losses[0])
        self.run_both(self.path("trained.onnx"), {name: data})


if __name__ == "__main__":
    unittest.main()
