#!/usr/bin/env python3
"""Kills training with -9 at random moments, resumes it, and compares the end with that of a run
that was left alone: the weights must be equal bit for bit, and no file may be torn.

    kill_test.py GRAFT [KILLS [SEED]]

KILLS in all (default 16): of LeNet and of a net with Dropout, augmentation, accumulation and
momentum that keeps its best weights, each in four places: a folder like any other; one in which no
file may grow beyond a limit (ulimit -f), another one at each start; one on a small file system that
something else fills; one that is taken away meanwhile. After some kills a run is left in peace, and
must then end as if nothing had been. Prints counts, and exits with 1 if anything differs.
"""

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMON = ["--data", "fashion-mnist", "--validate", "none", "--threads", "1", "--limit", "768",
          "--epochs", "3", "--checkpoint-minutes", "0.002"]
SETTINGS = {
    "lenet": [],
    "dropout": ["--augment", "--accumulate", "3", "--optimizer", "sgd", "--momentum", "0.9",
                "--normalize", "data", "--keep", "best"],
}
MOST_KILLS_OF_A_RUN = 20
CHECKPOINT_BYTES = 5_300_000  # at most, of either net


class Place:
    """Where a run has its folder, and what befalls it there."""
    name = "a folder"

    def __init__(self, folder):
        self.run = folder / "run"

    def disturb(self):
        """Before a start."""

    def limit(self):
        """In the new process."""

    def wait(self, seconds):
        """Until the kill."""
        time.sleep(seconds)

    def heal(self):
        """From now on nothing befalls it."""

    def close(self):
        """At the end."""


class Limited(Place):
    name = "a limit of a file's size"

    def disturb(self):
        self.bytes = random.randrange(1000, int(1.3 * CHECKPOINT_BYTES))

    def limit(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.bytes, self.bytes))


class Full(Place):
    name = "a small file system"
    BYTES = 3 * CHECKPOINT_BYTES

    def __init__(self, folder):
        super().__init__(folder)
        call("mount", "-t", "tmpfs", "-o", f"size={self.BYTES}", "tmpfs", folder)
        self.filler = folder / "filler"

    def disturb(self):
        self.heal()
        free = shutil.disk_usage(self.filler.parent).free
        with open(self.filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, int(free * random.random())))

    def heal(self):
        self.filler.unlink(missing_ok=True)

    def close(self):
        call("umount", "--lazy", self.filler.parent)


class TakenAway(Place):
    name = "a folder that is taken away"

    def wait(self, seconds):
        first = random.uniform(0.0, seconds)
        time.sleep(first)
        if random.random() < 0.5:
            shutil.rmtree(self.run, ignore_errors=True)
        elif self.run.exists():
            taken = self.run.with_name("taken")
            shutil.rmtree(taken, ignore_errors=True)
            self.run.rename(taken)
        time.sleep(seconds - first)


def call(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def make_models(graft, folder):
    call(graft, "new", "lenet", "--out", folder / "lenet.onnx")
    call(graft, "edit", folder / "lenet.onnx", "--truncate", "relu3", "--append",
         "dropout:0.5,linear:10:name=head", "--out", folder / "dropout.onnx")


def tensors(path):
    """The bytes of all tensors of a safetensors file, which must be there as the header says."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    assert max(ends) == len(content) - start, f"{path} is torn"
    return content[start:]


def check_whole(run):
    for path in run.glob("*.safetensors"):
        tensors(path)
    for path in run.glob("*.json*"):
        text = path.read_text()
        for line in [text] if path.suffix == ".json" else text.splitlines():
            json.loads(line)


class Test:
    def __init__(self, graft, folder, net, wanted):
        self.graft, self.folder, self.net = graft, folder, net
        self.kills = self.within_writes = self.refused = self.runs = 0
        self.wanted = wanted
        start = time.monotonic()
        call(*self.command(folder / "whole", folder / "whole.onnx"))
        self.seconds = time.monotonic() - start

    def command(self, run, out):
        return [self.graft, "train", self.folder.parent / f"{self.net}.onnx", *COMMON,
                *SETTINGS[self.net], "--run", run, "--resume", "auto", "--out", out]

    def test(self, place_type):
        wanted = self.kills + self.wanted
        while self.kills < wanted:
            folder = self.folder / f"{self.runs}"
            folder.mkdir()
            out = self.folder / f"{self.runs}.onnx"
            place = place_type(folder)
            try:
                self.train(place, out, min(MOST_KILLS_OF_A_RUN, wanted - self.kills))
                self.compare(place, out)
            finally:
                place.close()
            shutil.rmtree(folder)
            self.runs += 1

    def compare(self, place, out):
        what = f"{self.net} in {place.name}, run {self.runs}"
        assert out.read_bytes() == (self.folder / "whole.onnx").read_bytes(), what
        last = place.run / "last.safetensors"
        assert last.exists() or isinstance(place, TakenAway), what
        if last.exists():
            assert tensors(last) == tensors(self.folder / "whole" / last.name), what

    def train(self, place, out, wanted):
        """Starts and kills so often, then lets it end; fewer, if it ends or refuses before."""
        for _ in range(2 * wanted):
            place.disturb()
            code = self.start_and_kill(place, out)
            if code == 0:
                return
            wanted -= code == -9
            if wanted == 0:
                break
        place.heal()
        process = subprocess.run(self.command(place.run, out), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True)
        assert process.returncode == 0, f"exit code {process.returncode}: {process.stderr}"

    def start_and_kill(self, place, out):
        process = subprocess.Popen(self.command(place.run, out), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, preexec_fn=place.limit)
        place.wait(random.uniform(0.0, 0.7 * self.seconds))
        process.kill()
        error = process.communicate()[1]
        code = process.returncode
        said = error.startswith("graft: ") and error.endswith("\n")
        assert code in (0, -9) or (code == 2 and said and type(place) is not Place), \
            f"exit code {code}: {error}"
        self.kills += code == -9
        self.refused += code == 2
        self.within_writes += any(place.run.glob(".graft-*.tmp"))
        check_whole(place.run)
        return code


def main():
    # A namespace of its own: it may mount, and what it mounts goes with it.
    alone = ["unshare", "--map-root-user", "--mount"]
    if "GRAFT_KILL_TEST" not in os.environ:
        os.environ["GRAFT_KILL_TEST"] = "1"
        may_mount = shutil.which("unshare") and subprocess.run(
            [*alone, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], stderr=subprocess.DEVNULL,
            check=False).returncode == 0
        if may_mount:
            os.execvp(alone[0], [*alone, sys.executable, *sys.argv])
        os.environ["GRAFT_KILL_TEST"] = "no mounts"
    graft = Path(sys.argv[1]).resolve()
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 16
    random.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    os.environ.pop("GRAFT_NO_RUN", None)
    places = [Place, Limited, Full, TakenAway]
    if os.environ["GRAFT_KILL_TEST"] == "no mounts":
        places.remove(Full)
        print("without a small file system: this user may not mount one (unshare, tmpfs)")
    with tempfile.TemporaryDirectory() as name:
        make_models(graft, Path(name))
        for net in SETTINGS:
            folder = Path(name) / net
            folder.mkdir()
            test = Test(graft, folder, net, -(-kills // (len(SETTINGS) * len(places))))
            for place in places:
                before = test.kills
                test.test(place)
                print(f"{net} in {place.name}: {test.kills - before} kills", flush=True)
            print(f"{net}: {test.kills} kills, {test.within_writes} of them within a write, "
                  f"{test.refused} times it ended by itself and said why; {test.runs} runs, all "
                  "ends equal", flush=True)


if __name__ == "__main__":
    main()
