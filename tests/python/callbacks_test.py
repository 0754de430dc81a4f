"""What is called while a model trains, and Ctrl-C."""
import contextlib
import io
import json
import os
import signal
import tempfile
import threading
import time
import unittest

from needed import needed

with needed():
    import numpy as np

import graft
from nets import fit, samples, trainer


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


if __name__ == "__main__":
    unittest.main()
