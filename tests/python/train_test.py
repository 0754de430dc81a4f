"""Training in Python: fit, loops of one's own, gradients, callbacks, interrupts."""
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

import graft
from nets import fit, samples, trainer


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
        for size in ("64X", "inf", "-5M", -1, None):
            with self.subTest(size), self.assertRaisesRegex(graft.Error, f"found {size!r} as a size"):
                trainer(memory=size)

    def test_an_option_of_another_type_is_named(self):
        for name, value, wanted in (("seed", -1, "integer from 0 on"), ("trainable", 3, "text"),
                                    ("clip_norm", "1", "a number or None"), ("device", None, "text"),
                                    ("groups", ["fc1.*"], "a list of graft.ParameterGroup"),
                                    ("precision", 16, "text"), ("schedule", 3, "graft.Schedule")):
            with self.subTest(name), self.assertRaisesRegex(
                    graft.Error, f"option '{name}' is .*wanted .*{wanted}") as caught:
                trainer(**{name: value})
            self.assertEqual(caught.exception.kind, "type")

    def test_labels_that_the_loss_ignores(self):
        x, y = samples()
        kept = y.copy()
        kept[::3] = -100
        t = trainer(loss="cross_entropy:ignore_index=-100")
        rest = trainer()
        rest_of = np.arange(len(y)) % 3 != 0
        self.assertAlmostEqual(fit(t, (x, kept), batch=96)["loss"][0],
                               fit(rest, (x[rest_of], y[rest_of]), batch=96)["loss"][0], places=6)
        self.assertEqual(t.evaluate((x, kept)).samples, 96)
        loader = graft.Loader((x, kept), 96, ignore_index=-100)
        self.assertEqual(next(iter(loader))[1].min(), -100)
        with self.assertRaisesRegex(graft.Error, "label -100 of sample 0"):
            fit(trainer(), (x, kept))

    def test_means_do_not_depend_on_the_batch(self):
        x, y = samples()
        y[: len(y) // 2] = 0
        for loss in ("cross_entropy:ignore_index=0", "cross_entropy:ignore_index=0:reduction=sum"):
            t = trainer(loss=loss)
            whole, parts = (t.evaluate((x, y), batch=size) for size in (len(y), 7))
            self.assertEqual(whole.judged, np.count_nonzero(y))
            self.assertAlmostEqual(whole.accuracy, parts.accuracy, places=6)
            self.assertAlmostEqual(whole.loss, parts.loss, places=5)

    def test_a_target_is_read_once(self):
        x, y = samples()
        self.assertEqual(trainer().step(x, y.__dlpack__()), trainer().step(x, y))


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

    def test_are_those_before_clipping(self):
        x, y = samples()
        plain, clipped = trainer().gradients(x, y), trainer(clip_norm=1e-3).gradients(x, y)
        for name, gradient in plain.items():
            np.testing.assert_array_equal(clipped[name], gradient)

    def test_follow_parameters_of_16_bits(self):
        x, y = samples()
        model = graft.new("mlp", (4,), 2, seed=1).set_precision("bf16")
        t = graft.Trainer(model, optimizer=graft.SGD(lr=0.5))
        t.gradients(x, y)
        for _ in range(3):
            t.step(x, y)
        fresh = graft.Trainer(graft.parse(model.to_bytes())).gradients(x, y)
        for name, gradient in t.gradients(x, y).items():
            np.testing.assert_array_equal(gradient, fresh[name], name)
            gradient[:] = 0  # one's own

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


    def test_predict_refuses_an_edited_model(self):
        x, _ = samples()
        t = trainer()
        t.predict(x)
        t.model.truncate(t.model.nodes[0].outputs[0].name)
        with self.assertRaisesRegex(graft.Error, "make a new Trainer"):
            t.predict(x)

    def test_predict_waits_for_a_step(self):
        x, y = samples()
        planning, predicted = threading.Event(), threading.Event()
        seen = []

        def loss(prediction, target):
            planning.set()
            seen.append(predicted.wait(0.3))
            return (prediction ** 2).mean()

        t = trainer(loss=loss)
        t.predict(x)

        def predict():
            planning.wait()
            t.predict(x)
            predicted.set()

        thread = threading.Thread(target=predict)
        thread.start()
        t.step(x, np.zeros((len(x), 2), np.float32))
        thread.join()
        self.assertEqual(set(seen), {False})


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

    def test_the_best_is_what_was_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            t = trainer(ema=0.5)
            history = fit(t, samples(), epochs=3, validation=samples(50, 6),
                          callbacks=[graft.Checkpoint(folder)])
            best = graft.Trainer(graft.load(os.path.join(folder, "best.onnx")))
            self.assertAlmostEqual(best.evaluate(samples(50, 6)).loss, min(history["val_loss"]), 6)
            last = graft.load(os.path.join(folder, "last.onnx"))
            for name, array in t.parameters.items():
                np.testing.assert_array_equal(last.weights[name], array)
            with self.assertRaisesRegex(graft.Error, "best.onnx"):
                fit(t, samples(), callbacks=[graft.EarlyStopping("loss", restore_best=True)])

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

    def test_a_bool_of_numpy_stops(self):
        class Stop(graft.Callback):
            def on_epoch(self, trainer, record):
                return np.float32(record["epoch"]) < 2

        self.assertEqual(len(fit(trainer(), samples(), epochs=5, callbacks=[Stop()])), 2)


class Diary(graft.Callback):
    """Keeps what the steps say, and how far the trainer is ahead of them."""

    def __init__(self, looks):
        self.looks = looks
        self.losses = []
        self.ahead = []

    def on_step(self, trainer, report):
        self.losses.append(report.loss)
        self.ahead.append(trainer.updates - len(self.losses))

    def looks_at_step(self, trainer):
        return self.looks


class LateSteps(unittest.TestCase):
    """As on a card, which is at the next step when one is reported."""

    def train(self, *callbacks):
        t = trainer()
        t._overlaps = True
        history = fit(t, samples(), epochs=2, batch=32, callbacks=callbacks)
        return history, {name: array.copy() for name, array in t.parameters.items()}

    def test_say_and_do_what_steps_do_that_are_waited_for(self):
        late, waited_for = Diary(looks=False), Diary(looks=True)
        history, parameters = self.train(late)
        wanted, wanted_parameters = self.train(waited_for)
        self.assertEqual(late.ahead, [1, 1, 0] * 2)
        self.assertEqual(waited_for.ahead, [0] * 6)
        self.assertEqual(late.losses, waited_for.losses)
        for name in ("loss", "accuracy", "samples"):
            self.assertEqual(history[name], wanted[name])
        for name, array in wanted_parameters.items():
            np.testing.assert_array_equal(parameters[name], array)

    def test_a_callback_that_overrides_on_step_looks_at_it(self):
        class Look(graft.Callback):
            def on_step(self, trainer, report):
                pass

        diary = Diary(looks=False)
        self.train(diary, Look())
        self.assertEqual(diary.ahead, [0] * 6)
        self.assertFalse(graft.EarlyStopping().looks_at_step(None))

    def test_a_checkpoint_looks_at_the_steps_that_it_writes(self):
        diary = Diary(looks=False)
        with tempfile.TemporaryDirectory() as folder:
            self.train(diary, graft.Checkpoint(folder, every=2))
        self.assertEqual(diary.ahead, [1, 0, 0, 0, 1, 0])

    def test_end_behind_the_step_that_was_started_meanwhile(self):
        class Stop(Diary):
            def on_step(self, trainer, report):
                super().on_step(trainer, report)
                return False

        stop = Stop(looks=False)
        history, _ = self.train(stop)
        self.assertEqual(stop.ahead, [1, 0])
        self.assertEqual(history["samples"], [64])


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

    def test_control_c_at_the_end_is_noted(self):
        class Press(graft.Callback):
            def on_end(self, trainer, history):
                os.kill(os.getpid(), signal.SIGINT)

        with contextlib.redirect_stderr(io.StringIO()) as said:
            history = fit(trainer(), samples(), callbacks=[Press()])
        self.assertTrue(history.interrupted)
        self.assertIn("interrupted after 3 updates", said.getvalue())

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
