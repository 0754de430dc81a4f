#!/usr/bin/env python3
"""Kills training with -9 at random moments, resumes it, and compares the end with that of a run
that was left alone: the weights must be equal bit for bit, and no file may be torn.

    kill_test.py GRAFT [KILLS [SEED]]

KILLS in all (default 12), half of them of LeNet, half of a net with Dropout, augmentation,
accumulation and momentum. Prints how many kills hit training, and exits with 1 if anything differs.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMON = ["--data", "fashion-mnist", "--validate", "none", "--threads", "1",
          "--checkpoint-minutes", "0.002"]
SETTINGS = {
    "lenet": ["--limit", "768", "--epochs", "3"],
    "dropout": ["--limit", "768", "--epochs", "3", "--augment", "--accumulate", "3",
                "--optimizer", "sgd", "--momentum", "0.9", "--normalize", "data"],
}


def call(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def make_models(graft, folder):
    call(graft, "new", "lenet", "--out", folder / "lenet.onnx")
    call(graft, "edit", folder / "lenet.onnx", "--truncate", "relu3", "--append",
         "dropout:0.5,linear:10:name=head", "--out", folder / "dropout.onnx")


def read(path):
    """A safetensors file whose header says where it ends."""
    content = path.read_bytes()
    assert len(content) > 8 + int.from_bytes(content[:8], "little"), f"{path} is torn"
    return content


def train_until_done(graft, name, folder, run, out, left, seconds):
    """Starts and kills until it is done; returns how many kills hit it."""
    kills = 0
    while True:
        command = [graft, "train", folder / f"{name}.onnx", *COMMON, *SETTINGS[name],
                   "--run", run, "--resume", "auto", "--out", out]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if kills < left:
            time.sleep(random.uniform(0.0, seconds))
            process.kill()
        error = process.communicate()[1].decode()
        if process.returncode == 0:
            return kills
        assert process.returncode == -9, f"exit code {process.returncode}: {error}"
        kills += 1
        for path in run.glob("*.safetensors"):
            read(path)


def test(graft, name, folder, wanted_kills):
    whole = folder / f"{name}_whole.onnx"
    start = time.monotonic()
    call(graft, "train", folder / f"{name}.onnx", *COMMON, *SETTINGS[name], "--no-run", "--out",
         whole)
    seconds = time.monotonic() - start
    kills = attempts = 0
    while attempts < wanted_kills:
        run = folder / f"{name}_{attempts}"
        out = folder / f"{name}_{attempts}.onnx"
        hit = train_until_done(graft, name, folder, run, out, min(20, wanted_kills - attempts),
                               seconds * 0.7)
        assert out.read_bytes() == whole.read_bytes(), f"{name}: other weights after {hit} kills"
        kills += hit
        attempts += max(hit, 1)
    assert kills > 0, f"{name}: every run ended before its kill"
    print(f"{name}: {kills} kills, every end equal", flush=True)


def main():
    graft = Path(sys.argv[1]).resolve()
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    random.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    os.environ.pop("GRAFT_NO_RUN", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_models(graft, folder)
        for setting in SETTINGS:
            test(graft, setting, folder, kills // 2)


if __name__ == "__main__":
    main()
