"""Training in Python: fit, loops of one's own, gradients, histories."""
import contextlib
import io
import threading
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
        by_tens = t.predict(x, batch=10)
        np.testing.assert_allclose(by_tens, first, rtol=1e-5, atol=1e-6)  # kernels go by the shape
        np.testing.assert_array_equal(by_tens, t.predict(graft.Loader((x, y), 10)))
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
