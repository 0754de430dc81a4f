"""TensorBoard reads the event files of a run, and finds in them what metrics.jsonl says.

Usage: tensorboard_test.py GRAFT. Fails where tensorboard is not installed, unless GRAFT_OFFLINE is
set: then it exits with 77 (skipped).
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from needed import needed

with needed():
    import numpy as np
    from tensorboard.backend.event_processing import event_accumulator

GRAFT = os.path.abspath(sys.argv.pop(1))
BATCHES = 25


def graft(*arguments):
    run = subprocess.run([GRAFT, *map(str, arguments)], capture_output=True, text=True)
    if run.returncode:
        raise AssertionError(f"graft {arguments}: exit {run.returncode}: {run.stderr}")


class TensorBoard(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.run_folder = self.folder / "run"
        graft("new", "mlp", "--input", "1x4x4", "--classes", "3", "--out", self.folder / "mlp.onnx")
        random = np.random.default_rng(1)
        np.savez(self.folder / "data.npz", input=random.random((BATCHES * 4, 1, 4, 4), np.float32),
                 label=random.integers(0, 3, BATCHES * 4))

    def train(self, epochs, *more):
        data = f"npz:{self.folder / 'data.npz'}"
        graft("train", self.folder / "mlp.onnx", "--data", data, "--validate", data, "--batch", 4,
              "--epochs", epochs, "--run", self.run_folder, "--metrics", "f1", "--out",
              self.folder / "out.onnx", *more)

    def scalars(self):
        """Tag to pairs of step and value."""
        read = event_accumulator.EventAccumulator(str(self.run_folder))
        read.Reload()
        return {tag: [(event.step, event.value) for event in read.Scalars(tag)]
                for tag in read.Tags()["scalars"]}

    def logged(self, key):
        """The same of what metrics.jsonl has under the key; event files hold f32."""
        with open(self.run_folder / "metrics.jsonl", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        return [(line["updates"], float(np.float32(line[key]))) for line in lines if key in line]

    def check(self, epochs):
        found = self.scalars()
        for tag, key in [("epoch/loss", "loss"), ("epoch/accuracy", "accuracy"),
                         ("epoch/seconds", "seconds"), ("validation/loss", "validation_loss"),
                         ("validation/accuracy", "validation_accuracy"),
                         ("validation/f1", "validation_f1")]:
            self.assertEqual(found[tag], self.logged(key), tag)
        self.assertEqual([step for step, _ in found["epoch/loss"]],
                         [BATCHES * epoch for epoch in range(1, epochs + 1)])
        tenths = [BATCHES * epoch + step for epoch in range(epochs) for step in (10, 20)]
        for tag in ("step/loss", "step/learning_rate", "step/accuracy"):
            self.assertEqual([step for step, _ in found[tag]], tenths, tag)

    def test_a_run(self):
        self.train(2)
        self.check(2)

    def test_what_a_resumed_run_does_again_is_there_once(self):
        last = self.run_folder / "last.safetensors"
        self.train(1)
        shutil.copy(last, self.folder / "first")
        self.train(2, "--resume", "auto")
        shutil.copy(self.folder / "first", last)  # as if killed before the second was stored
        self.train(3, "--resume", "auto")
        self.assertEqual(len(list(self.run_folder.glob("events.out.tfevents.*"))), 3)
        self.check(3)

    def test_a_torn_file(self):
        self.train(2)
        (events,) = self.run_folder.glob("events.out.tfevents.*")
        whole = self.scalars()
        events.write_bytes(events.read_bytes()[:-10])  # the last event is that of the second epoch
        left = self.scalars()
        self.assertEqual(left["epoch/loss"], whole["epoch/loss"][:1])
        self.assertEqual(left["step/loss"], whole["step/loss"])


if __name__ == "__main__":
    unittest.main()
