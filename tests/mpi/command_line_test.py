#!/usr/bin/env python3
"""Trains by `mpirun graft train`, as people would, on what a moment takes.

    command_line_test.py MPIRUN GRAFT
"""

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ranks_test import MOST_SECONDS, launcher

SAMPLES, SIDE = 150, 12
TRAIN = ["--batch", "16", "--optimizer", "sgd", "--lr", "0.05", "--seed", "3", "--threads", "1"]


def write_mnist(folder, samples=SAMPLES, bad_label=None):
    """Class c is bright in row c. `bad_label`: the place of a label that is no class."""
    folder.mkdir()
    for part in ("train", "t10k"):
        labels = bytearray(i % 10 for i in range(samples))
        pixels = b"".join(bytes(255 if y == label else (7 * i + y) % 40
                                for y in range(SIDE) for _ in range(SIDE))
                          for i, label in enumerate(labels))
        if bad_label is not None:
            labels[bad_label] = 77
        (folder / f"{part}-images-idx3-ubyte").write_bytes(
            struct.pack(">IIII", 0x803, samples, SIDE, SIDE) + pixels)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 0x801, samples) + labels)


class Test:
    def __init__(self, mpirun, graft, folder):
        self.mpirun, self.graft, self.folder = mpirun, graft, folder
        subprocess.run([graft, "new", "mlp", "--input", f"1x{SIDE}x{SIDE}", "--out",
                        folder / "mlp.onnx"], check=True, stdout=subprocess.DEVNULL)
        write_mnist(folder / "data")

    def command(self, size, out, *more, data="data"):
        start = [] if size == 1 else launcher(self.mpirun, size)
        return [*start, self.graft, "train", self.folder / "mlp.onnx", "--data",
                f"mnist:{self.folder / data}", "--out", self.folder / out, *TRAIN, *more]

    def run(self, size, out, *more):
        """The JSON lines that it prints."""
        done = subprocess.run(self.command(size, out, "--json", *more), capture_output=True,
                              text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def trains_as_one_process(self):
        def epochs(lines):
            return [line for line in lines if line["event"] == "epoch"]

        wanted = epochs(self.run(1, "1.onnx", "--epochs", "2", "--no-run"))
        for size in (2, 4):
            lines = self.run(size, f"{size}.onnx", "--epochs", "2", "--run", self.folder / "run")
            assert len([line for line in lines if line["event"] == "end"]) == 1, lines
            found = epochs(lines)
            # The last batch has 6 samples: 3 each for 2 ranks, 1 each for 4.
            assert [line["samples"] for line in found] == [SAMPLES - 6 % size] * 2, found
            assert found[-1]["validation_accuracy"] > 0.6, found
            if size == 2:
                for a, b in zip(wanted, found):
                    for name in ("loss", "validation_loss", "validation_accuracy"):
                        assert abs(a[name] - b[name]) < 1e-5, (name, a, b)
            assert (self.folder / f"{size}.onnx").exists()
            assert len((self.folder / "run" / "metrics.jsonl").read_text().splitlines()) == 3
            subprocess.run(["rm", "-r", self.folder / "run"], check=True)

    def ranks_may_update_by_themselves(self):
        def trained(size, out, *more):
            lines = self.run(size, out, "--epochs", "3", "--no-run", *more)
            return [line for line in lines if line["event"] == "epoch"][-1]

        joint = trained(2, "joint.onnx")
        alone = ["--sync-every", "4", "--sync-bn"]
        for out in ("a.onnx", "b.onnx"):
            found = trained(2, out, *alone)
            assert found["loss"] != joint["loss"], found
            assert abs(found["loss"] - joint["loss"]) < 0.3, (found, joint)
            assert found["validation_accuracy"] > 0.6, found
        a, b = ((self.folder / out).read_bytes() for out in ("a.onnx", "b.onnx"))
        assert a == b
        assert trained(1, "one.onnx", *alone)["loss"] == trained(1, "lone.onnx")["loss"]

    def goes_on_with_another_number_of_ranks(self):
        more = ["--run", self.folder / "resumed", "--schedule", "constant"]
        whole = self.run(1, "whole.onnx", "--epochs", "2", "--schedule", "constant", "--no-run")
        self.run(2, "half.onnx", "--epochs", "1", *more)
        rest = self.run(1, "rest.onnx", "--epochs", "2", "--resume", self.folder / "resumed")
        a, b = ([x for x in lines if x["event"] == "epoch"][-1] for lines in (whole, rest))
        assert abs(a["loss"] - b["loss"]) < 1e-5, (a, b)
        last = self.run(4, "four.onnx", "--epochs", "3", "--resume", self.folder / "resumed")
        assert [x["epoch"] for x in last if x["event"] == "epoch"] == [3], last

    def half_the_bytes_and_shares_of_the_state(self):
        momentum = ["--momentum", "0.9", "--schedule", "constant"]

        def trained(size, out, *more):
            lines = self.run(size, out, *momentum, *more)
            return [line for line in lines if line["event"] == "epoch"][-1]

        joint = trained(2, "momentum.onnx", "--epochs", "3", "--no-run")
        short = trained(2, "short.onnx", "--epochs", "3", "--no-run", "--wire-precision", "bf16")
        assert 0.0 < abs(short["loss"] - joint["loss"]) < 0.02, (short, joint)
        folder = self.folder / "shares"
        trained(2, "first.onnx", "--epochs", "1", "--shard-state", "--run", folder)
        trained(4, "second.onnx", "--epochs", "2", "--shard-state", "--resume", folder)
        shares = trained(2, "third.onnx", "--epochs", "3", "--shard-state", "--resume", folder)
        assert abs(shares["loss"] - joint["loss"]) < 0.02, (shares, joint)

    def an_error_on_one_rank_ends_all(self):
        write_mnist(self.folder / "broken", bad_label=140)
        # Rank 1 has other data, which it refuses.
        script = ('if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then data=$BROKEN; fi; '
                  'exec "$@" --data "mnist:$data"')
        words = [str(word) for word in self.command(2, "no.onnx", "--epochs", "50", "--no-run")]
        at = words.index("--data")
        ranks = launcher(self.mpirun, 2)
        program = words[len(ranks):at] + words[at + 2:]
        environment = os.environ | {"data": str(self.folder / "data"),
                                    "BROKEN": str(self.folder / "broken")}
        begin = time.monotonic()
        done = subprocess.run([*ranks, "sh", "-c", script, "sh", *program], env=environment,
                              capture_output=True, text=True, timeout=60, check=False)
        seconds = time.monotonic() - begin
        assert done.returncode != 0
        # mpirun ends rank 0 by a signal, which may be the first that it hears of it.
        said = [line for line in done.stderr.splitlines() if line.startswith("graft: ")
                and "interrupted before the first update" not in line]
        assert len(said) == 1 and said[0].startswith("graft: rank 1: "), done.stderr
        assert "77" in said[0], said
        assert seconds < MOST_SECONDS, f"{seconds:.1f} s"

    def all_say_an_error_once(self):
        done = subprocess.run(self.command(4, "no.onnx", "--loss", "nothing"),
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0
        said = [line for line in done.stderr.splitlines() if line.startswith("graft: ")]
        assert len(said) == 1 and "unknown" in said[0], done.stderr

    def ctrl_c_saves_once(self):
        # While mpirun ends its ranks, it reads nothing that they print: an epoch takes so long that
        # its lines never fill the pipe, at which a rank would wait until it is killed.
        write_mnist(self.folder / "more", samples=40 * SAMPLES)
        for number in (signal.SIGINT, signal.SIGTERM):
            out = self.folder / f"{number}.onnx"
            command = self.command(2, out.name, "--epochs", "1000000", "--no-run", "--validate",
                                   "none", data="more")
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True) as process:
                for line in process.stdout:
                    if line.startswith("epoch 2/"):
                        break
                begin = time.monotonic()
                process.send_signal(number)
                output, errors = process.communicate(timeout=60)
            seconds = time.monotonic() - begin
            assert out.exists(), errors
            assert errors.count("graft: interrupted after") == 1, errors
            assert output.count("wrote ") == 1, output
            assert seconds < MOST_SECONDS, f"{seconds:.1f} s"

    def a_rank_that_dies_ends_all(self):
        command = self.command(2, "dead.onnx", "--epochs", "1000000", "--no-run")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            for line in process.stdout:
                if line.startswith("epoch 2/"):
                    break
            ranks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            begin = time.monotonic()
            os.kill(int(ranks[-1]), signal.SIGKILL)
            process.communicate(timeout=60)
        assert process.returncode != 0
        assert time.monotonic() - begin < MOST_SECONDS


def main():
    with tempfile.TemporaryDirectory() as name:
        test = Test(sys.argv[1], Path(sys.argv[2]).resolve(), Path(name))
        for case in (test.trains_as_one_process, test.ranks_may_update_by_themselves,
                     test.goes_on_with_another_number_of_ranks,
                     test.half_the_bytes_and_shares_of_the_state,
                     test.an_error_on_one_rank_ends_all, test.all_say_an_error_once,
                     test.ctrl_c_saves_once, test.a_rank_that_dies_ends_all):
            begin = time.monotonic()
            case()
            print(f"{case.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
