"""examples/flower with a server and two clients on this machine, each with many samples of half of
the classes and few of the others."""
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np
from needed import needed

with needed():
    import flwr  # noqa: F401

import graft

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower"
PROGRAMS = Path(sys.executable).parent
CLASSES, SIDE, SECONDS = 10, 12, 300


def samples(classes, count, seed):
    """Class c is bright in row c."""
    y = np.array(classes)[np.arange(count) % len(classes)]
    x = np.random.default_rng(seed).standard_normal((count, 1, SIDE, SIDE), np.float32) * 0.5
    x[np.arange(count), 0, y] += 1
    return {"x": x, "y": y}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Flower(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.port = free_port()
        home = self.folder / "home"
        home.mkdir()
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{self.port}"\n'
            "insecure = true\n")
        self.environment = os.environ | {
            "FLWR_HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1",
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}", "OMP_WAIT_POLICY": "passive"}

    def start(self, name, *arguments):
        """A program of Flower that serves until the test ends."""
        log = self.enterContext(open(self.folder / "log", "a"))
        process = subprocess.Popen([PROGRAMS / name, "--insecure", *arguments], stdout=log,
                                   stderr=log, env=self.environment, cwd=self.folder)
        self.addCleanup(self.stop, process)

    def stop(self, process):
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def wait_for_server(self):
        end = time.monotonic() + SECONDS / 5
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", self.port)).close()
            time.sleep(0.2)
        self.fail((self.folder / "log").read_text())

    def test_accuracy_improves_over_four_rounds(self):
        parts = {"a": [*range(10), *range(5), *range(5)],
                 "b": [*range(10), *range(5, 10), *range(5, 10)]}
        for name, classes in parts.items():
            np.savez(self.folder / f"{name}.npz", **samples(classes, 1600, 1))
        held_back = samples(range(CLASSES), 500, 2)
        np.savez(self.folder / "held_back.npz", **held_back)
        start = graft.new("mlp", (1, SIDE, SIDE), CLASSES, seed=1)
        start.save(self.folder / "model.onnx")
        app = shutil.copytree(EXAMPLE, self.folder / "app")
        self.start("flower-superlink", "--host", "127.0.0.1", "--port", str(self.port),
                   "--disable-runtime-dependency-installation")
        self.wait_for_server()
        for name in parts:
            self.start("flower-supernode", "--superlink", f"127.0.0.1:{self.port}", "--host",
                       "127.0.0.1", "--port", str(free_port()), "--node-config",
                       f'data="npz:{self.folder}/{name}.npz"')
        config = (f'model="{self.folder}/model.onnx" out="{self.folder}/trained.onnx" '
                  f'held-back="npz:{self.folder}/held_back.npz"')
        run = subprocess.run([PROGRAMS / "flwr", "run", app, "here", "--stream", "--run-config",
                              config], capture_output=True, text=True, env=self.environment,
                             timeout=SECONDS)
        said = run.stdout + run.stderr + (self.folder / "log").read_text()
        self.assertEqual(run.returncode, 0, said)
        trained = graft.load(self.folder / "trained.onnx")
        found = graft.Trainer(trained).evaluate((held_back["x"], held_back["y"])).accuracy
        rounds = [float(x) for x in re.findall(r"round \d: .* accuracy ([0-9.]+)", run.stdout)]
        self.assertEqual(len(rounds), 5, said)
        self.assertAlmostEqual(rounds[-1], found, places=4)
        self.assertLess(rounds[0], 0.3)
        self.assertGreater(rounds[1], rounds[0] + 0.2)
        self.assertGreater(rounds[4], max(rounds[1] + 0.1, 0.95))


if __name__ == "__main__":
    unittest.main()
