"""Training in Python: all kinds of data, loops of one's own, callbacks, losses as functions."""
import array
import contextlib
import io
import json
import os
import signal
import tempfile
import threading
import time
import unittest
import unittest.mock

from needed import needed

with needed():
    import matplotlib
    import numpy as np
    from onnx import TensorProto, helper

import graft


def samples(count=96, seed=5):
    """Points of 4 numbers whose class is the sign of their first."""
    x = np.random.default_rng(seed).standard_normal((count, 4)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(np.int64)


def trainer(**options):
    options.setdefault("optimizer", graft.Adam(lr=0.02))
    return graft.Trainer(graft.new("mlp", (4,), 2, seed=1), **options)


def fit(t, data, **options):
    options.setdefault("verbose", False)
    return t.fit(data, **options)


class Fit(unittest.TestCase):
    def test_learns_and_says_what_it_did(self):
        t = trainer()
        history = fit(t, samples(), epochs=8, batch=16, validation=samples(50, 6))
        self.assertEqual(len(history), 8)
        self.assertLess(history["loss"][-1], history["loss"][0])
        self.assertGreater(history["val_accuracy"][-1], 0.9)
        self.assertEqual(history.epochs[0]["samples"], 96)
        self.assertEqual(t.updates, 48)
        found = t.evaluate(samples(50, 6))
        self.assertEqual(found.samples, 50)
        self.assertAlmostEqual(found.loss, history["val_loss"][-1], places=6)

    def test_groups_and_averages(self):
        groups = [graft.ParameterGroup("fc1.*", start=2),
                  graft.ParameterGroup(".*bias", lr=0.5, schedule=graft.constant_lr())]
        t = trainer(groups=groups, layer_decay=0.5, ema=0.9)
        before = t.parameters["fc1.weight"].copy()
        t.step(*samples())
        np.testing.assert_array_equal(t.parameters["fc1.weight"], before)
        self.assertEqual(t.learning_rate_of("fc3.bias"), 0.5)
        self.assertAlmostEqual(t.learning_rate_of("fc2.weight"), 0.01)
        self.assertEqual(t.learning_rate_of("fc1.weight"), 0.0)
        trained = t.parameters["fc3.weight"].copy()
        t.use_averages()
        self.assertFalse(np.array_equal(t.parameters["fc3.weight"], trained))
        with self.assertRaisesRegex(graft.Error, "the model holds averages"):
            t.step(*samples())
        t.use_averages(False)
        np.testing.assert_array_equal(t.parameters["fc3.weight"], trained)
        with self.assertRaisesRegex(graft.Error, "'fc9.*' matches none"):
            trainer(groups=[graft.ParameterGroup("fc9.*", lr=1.0)])

    def test_the_same_seed_gives_the_same_bits(self):
        def weights():
            t = trainer()
            fit(t, samples(), epochs=2, batch=16, seed=3)
            return [a.copy() for a in t.parameters.values()]

        for first, second in zip(weights(), weights()):
            np.testing.assert_array_equal(first, second)

    def test_prints_a_line_an_epoch(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            trainer().fit(samples(), epochs=2)
        lines = out.getvalue().splitlines()
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[1], r"^epoch 2: loss \d\.\d{4}, accuracy \d+\.\d\d %; \d+\.\d s$")

    def test_an_own_loop_is_fit(self):
        data = samples()
        fitted, looped = trainer(), trainer()
        loader = graft.Loader(data, 16, shuffle=True, seed=3)
        fit(fitted, graft.Loader(data, 16, shuffle=True, seed=3), epochs=2)
        for _ in range(2):
            for x, y in loader:
                looped.step(x, y)
        for name, parameter in fitted.parameters.items():
            np.testing.assert_array_equal(parameter, looped.parameters[name])

    def test_a_trainer_refuses_an_edited_model(self):
        t = trainer()
        t.step(*samples())
        with self.assertRaises(graft.Error):
            t.model.truncate("nothing")
        t.step(*samples())
        t.model.truncate(t.model.nodes[0].outputs[0].name)  # most parameters go
        for call in (lambda: t.step(*samples()), lambda: t.parameters):
            with self.assertRaisesRegex(graft.Error, "make a new Trainer"):
                call()

    def test_errors(self):
        x, y = samples()
        for kind, call in {
            "argument": lambda: trainer(loss="nonsense"),
            "type": lambda: trainer().step(x, np.array(["a"] * len(y), dtype=object)),
            "shape": lambda: trainer().step(x[:, :2], y),
        }.items():
            with self.subTest(kind), self.assertRaises(graft.Error) as caught:
                call()
            self.assertEqual(caught.exception.kind, kind, str(caught.exception))
        with self.assertRaises(graft.Error) as caught:
            fit(trainer(optimizer=graft.SGD(lr=1e30)), (x, y), epochs=2)
        self.assertEqual(caught.exception.kind, "numeric")
        with self.assertRaises(graft.Error):
            trainer().step(x, np.where(y == 1, 7, y))

    def test_options_reach_the_step(self):
        t = trainer(trainable=".*weight", freeze="fc1.*", schedule="cosine", accumulate=2,
                    clip_norm=1.0, memory="64M")
        self.assertTrue(t.parameters)
        self.assertTrue(all(n.endswith("weight") and not n.startswith("fc1") for n in t.parameters))
        fit(t, samples(), epochs=1, batch=16)
        self.assertEqual(t.updates, 3)
        self.assertLess(t.learning_rate, 0.02)
        with self.assertRaises(graft.Error):
            trainer(memory="64X")


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


class Gradients(unittest.TestCase):
    def test_are_the_step_of_plain_descent(self):
        x, y = samples()
        t = trainer(optimizer=graft.SGD(lr=0.5))
        before = {name: array.copy() for name, array in t.parameters.items()}
        gradients = t.gradients(x, y)
        self.assertEqual(gradients.keys(), before.keys())
        for name, parameter in t.parameters.items():
            np.testing.assert_array_equal(parameter, before[name])
        t.step(x, y)
        for name, parameter in t.parameters.items():
            np.testing.assert_allclose(before[name] - 0.5 * gradients[name], parameter, atol=1e-6)

    def test_parameters_are_live(self):
        x, y = samples()
        t = trainer()
        bias = t.parameters["fc3.bias"]
        before = bias.copy()
        t.step(x, y)
        self.assertTrue((bias != before).any())

    def test_predict_follows_training(self):
        x, y = samples()
        t = trainer()
        first = t.predict(x)
        np.testing.assert_array_equal(first, t.predict(x, batch=10))
        np.testing.assert_array_equal(first, t.predict(graft.Loader((x, y), 10)))
        fit(t, (x, y), epochs=3)
        self.assertGreater((t.predict(x).argmax(1) == y).mean(), 0.8)
        self.assertFalse((t.predict(x) == first).all())

    def test_predict_runs_where_training_does(self):
        with unittest.mock.patch("graft.trainer.Session", wraps=graft.Session) as session:
            trainer(device="cpu").predict(samples()[0])
        self.assertEqual(session.call_args.kwargs["device"], "cpu")


class Functions(unittest.TestCase):
    def test_a_loss_as_a_function(self):
        x, y = samples()
        target = np.stack([y, 1 - y], 1).astype(np.float32)

        def squared(prediction, target):
            return ((prediction - target) ** 2).mean()

        own, known = trainer(loss=squared), trainer(loss="mse")
        for _ in range(3):
            self.assertAlmostEqual(own.step(x, target), known.step(x, target), places=6)

    def test_a_loss_with_settings(self):
        x, y = samples()
        ignoring = trainer(loss="cross_entropy:ignore_index=1")
        of_class_0 = trainer()
        self.assertAlmostEqual(ignoring.step(x, y), of_class_0.step(x[y == 0], y[y == 0]), places=6)
        with self.assertRaisesRegex(graft.Error, "ignore_index"):
            trainer(loss="mse:ignore_index=1")

    def test_operands_are_broadcast_on_either_side(self):
        x, y = samples()
        weights, mix = np.array([1, 3], np.float32), np.eye(len(x), dtype=np.float32)

        def left(prediction, target):
            return ((weights * (mix @ prediction - target)) ** 2).mean()

        def right(prediction, target):
            return (((prediction - target) * weights) ** 2).mean()

        target = np.stack([y, 1 - y], 1).astype(np.float32)
        self.assertAlmostEqual(trainer(loss=left).step(x, target), trainer(loss=right).step(x, target),
                               places=6)

    def test_ops_and_classes(self):
        def focal(logits, target):
            log_p = graft.ops.log_softmax(logits, axis=1)
            nll = graft.ops.call("NegativeLogLikelihoodLoss", log_p, target, reduction="none")
            return ((1.0 - graft.ops.exp(-nll)) ** 2 * nll).mean()

        t = trainer(loss=graft.custom_loss(focal, targets="classes"))
        self.assertIsNotNone(fit(t, samples(), epochs=1)["accuracy"][0])

    def test_several_targets(self):
        x, y = samples()
        one_hot = np.stack([1 - y, y], 1).astype(np.float32)
        model = graft.new("mlp", (4,), 2, seed=1)
        name = model.outputs[0].name

        def both(outputs, targets):
            return ((outputs[0] - targets[0]) ** 2).mean() + ((outputs[0] - targets[1]) ** 2).mean()

        own = graft.Trainer(model, loss=graft.joint_loss(both, [name]))
        text = trainer(loss=f"{name}=mse+{name}=mse", optimizer="adamw")
        for _ in range(3):
            self.assertAlmostEqual(own.step(x, (one_hot, 2 * one_hot)),
                                   text.step(x, (one_hot, 2 * one_hot)), places=5)
        with self.assertRaisesRegex(graft.Error, "has 2 parts, the batch 3 targets"):
            text.step(x, (one_hot, one_hot, one_hot))

    def test_an_optimizer_as_a_function(self):
        def momentum(p, g, lr, t, velocity):
            velocity = velocity * 0.9 + g
            return p - lr * velocity, velocity

        x, y = samples()
        own = trainer(optimizer=graft.CustomOptimizer(momentum, lr=0.1, state=["velocity"]))
        known = trainer(optimizer=graft.SGD(lr=0.1, momentum=0.9))
        for _ in range(4):
            own.step(x, y)
            known.step(x, y)
        for name, parameter in own.parameters.items():
            np.testing.assert_allclose(parameter, known.parameters[name], atol=1e-6)

    def test_what_a_function_raises_comes_out(self):
        def wrong(prediction, target):
            raise ZeroDivisionError("mine")

        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            trainer(loss=wrong).step(*samples())
        with self.assertRaises(graft.Error):
            trainer(loss=lambda p, t: 3).step(*samples())

    def test_a_function_may_look_at_the_model(self):
        model = graft.new("mlp", (4,), 2, seed=1)
        seen = []

        def loss(prediction, target):
            seen.append((model.outputs[0].name, len(model.weights)))
            return ((prediction - target) ** 2).mean() + (model.weights["fc1.bias"] ** 2).sum()

        x, y = samples()
        graft.Trainer(model, loss=loss).step(x, np.zeros((len(x), 2), np.float32))
        self.assertEqual(seen[0], ("logits", 6))

    def test_a_kept_value_is_refused(self):
        kept = []

        def keep(prediction, target):
            kept.append(prediction)
            return prediction.mean()

        trainer(loss=keep).step(*samples())
        with self.assertRaisesRegex(graft.Error, "has been built"):
            kept[0] + 1

    def test_every_name_has_an_object(self):
        objects = {name.lower(): getattr(graft, name) for name in graft.__all__}
        for name in [*graft.optimizer_names(), *graft.loss_names()]:
            with self.subTest(name):
                self.assertTrue(callable(objects[name]))
                trainer(**({"loss": name} if name in graft.loss_names() else {"optimizer": name}))


class Callbacks(unittest.TestCase):
    def test_checkpoint_keeps_last_and_best(self):
        with tempfile.TemporaryDirectory() as folder:
            run = os.path.join(folder, "run", "a")
            t = trainer()
            history = fit(t, samples(), epochs=3, validation=samples(50, 6),
                          callbacks=[graft.Checkpoint(run)])
            last = graft.load(os.path.join(run, "last.onnx"))
            for name, array in t.parameters.items():
                np.testing.assert_array_equal(last.weights[name], array)
            best = graft.Trainer(graft.load(os.path.join(run, "best.onnx")))
            self.assertAlmostEqual(best.evaluate(samples(50, 6)).loss, min(history["val_loss"]), 6)
            with open(os.path.join(run, "history.jsonl"), encoding="utf-8") as file:
                self.assertEqual([json.loads(line) for line in file], history.epochs)

    def test_checkpoint_keeps_what_was_good_before_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            t, keep = trainer(), graft.Checkpoint(folder)
            fit(t, samples(), callbacks=[keep])
            t.learning_rate = 1e30
            with self.assertRaises(graft.Error):
                fit(t, samples(), epochs=2, callbacks=[keep])
            last = graft.load(os.path.join(folder, "last.onnx"))
            for name, array in last.weights.items():
                self.assertTrue(np.isfinite(array).all(), name)

    def test_early_stopping_restores_the_best(self):
        t = trainer(optimizer=graft.SGD(lr=0.05))
        worse = graft.EarlyStopping("loss", patience=2, min_delta=10.0, restore_best=True)
        history = fit(t, samples(), epochs=9, callbacks=[worse])
        self.assertEqual(len(history), 3)
        with self.assertRaisesRegex(graft.Error, "validation data"):
            fit(trainer(), samples(), callbacks=[graft.EarlyStopping("val_loss")])

    def test_any_callback_stops(self):
        class Stop(graft.Callback):
            def on_step(self, trainer, report):
                return trainer.updates < 2

        t = trainer()
        self.assertEqual(len(fit(t, samples(), epochs=5, batch=16, callbacks=[Stop()])), 1)
        self.assertEqual(t.updates, 2)


class Interrupts(unittest.TestCase):
    def test_control_c_stops_and_saves(self):
        class Press(graft.Callback):
            def on_step(self, trainer, report):
                if trainer.updates == 3:
                    os.kill(os.getpid(), signal.SIGINT)

        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            t = trainer()
            history = fit(t, samples(), epochs=50, batch=16,
                          callbacks=[Press(), graft.Checkpoint(folder)])
            self.assertTrue(history.interrupted)
            self.assertLessEqual(t.updates, 4)
            self.assertTrue(os.path.exists(os.path.join(folder, "last.onnx")))
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_threads_go_on_while_a_step_runs(self):
        t = graft.Trainer(graft.new("resnet18", (3, 32, 32), 10))
        x, y = np.zeros((16, 3, 32, 32), np.float32), np.zeros(16, np.int64)
        t.plan(x, y)
        ticks, done = [], threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.perf_counter())
                time.sleep(0.001)

        thread = threading.Thread(target=tick)
        thread.start()
        start = time.perf_counter()
        t.step(x, y)
        stop = time.perf_counter()
        done.set()
        thread.join()
        within = [at for at in ticks if start < at < stop]
        self.assertGreater(len(within), 3, f"{stop - start:.3f} s")


    def test_threads_may_ask_while_steps_run(self):
        t, (x, y) = trainer(), samples()
        t.step(x, y)

        def steps():
            for rows in (*range(1, 60), *range(60, 0, -1)):
                t.step(x[:rows], y[:rows])

        thread = threading.Thread(target=steps)
        thread.start()
        while thread.is_alive():
            self.assertTrue(np.isfinite(t.prediction).all())
            self.assertGreater(t.memory["arena"], 0)
        thread.join()
        self.assertEqual((t.updates, t.prediction.shape), (120, (1, 2)))


class Histories(unittest.TestCase):
    def test_plot_and_html(self):
        history = fit(trainer(), samples(), epochs=2, validation=samples(50, 6))
        self.assertIn("<td>2</td>", history._repr_html_())
        self.assertIn("2 epochs", repr(history))
        matplotlib.use("agg")
        axes = history.plot()
        self.assertEqual([len(ax.lines) for ax in axes], [2, 2])
        np.testing.assert_array_equal(axes[0].lines[1].get_ydata(), history["val_loss"])


if __name__ == "__main__":
    unittest.main()
