"""Training steps and inference beside PyTorch (eager, channels-last, inductor), JAX and onnxruntime, in one table:

    python benchmarks/peers/peers.py --scratch /tmp/peers --threads 1

The scratch folder gets an environment for each peer (about 6 GB in all, from PyPI) and the nets as ONNX; one that is
there is used again. All sides take turns, `--rounds` times, each in a process of its own; a row has the least time of
each. Below 1, Graft is faster than the best peer. "FMA" is the share of the measured multiply-add peak that Graft's
step reaches by its useful operations; "memory" the time that reading and writing parameters and optimizer state would
take by the measured bandwidth, as a share of the step ("cached": they fit a second-level cache): the larger of both
says what is left to win. --precision bf16 trains in it, beside PyTorch's autocast alone."""
import argparse
import json
import math
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from models_onnxruntime import cpu_name  # noqa: E402: lies one folder up

PACKAGES = {"torch": ["torch", "torchvision", "numpy", "onnx"],
            "jax": ["jax", "numpy"], "onnxruntime": ["onnxruntime", "onnx", "numpy"]}
TORCH_MODES = ["eager", "channels_last", "inductor"]
PEERS = [*TORCH_MODES, "JAX", "onnxruntime"]
SECOND_CACHE = 2 << 20
JAX_NETS = ("lenet_b64", "lenet_b1", "mlp_b128")
# Loss, optimizer, rate, and how often a step reads or writes each parameter with its state.
TRAINING = {"lenet_b64": ("cross_entropy", "sgd:momentum=0", 0.01, 2),
            "lenet_b1": ("cross_entropy", "sgd:momentum=0", 0.01, 2),
            "mlp_b128": ("cross_entropy", "adam", 1e-3, 6),
            "resnet18_b32": ("cross_entropy", "sgd:momentum=0.9", 0.01, 4),
            "mobilenet_v2_b16": ("cross_entropy", "sgd:momentum=0.9", 0.01, 4),
            "vit_b8": ("cross_entropy", "adam", 1e-3, 6),
            "bert_b16": ("cross_entropy", "adamw", 1e-3, 6),
            "crnn_b16": ("ctc", "adam", 1e-3, 6)}


def environment(scratch, name):
    """The Python of the peer's environment, made if it is not there."""
    folder = scratch / name
    if not (folder / "bin" / "python").exists():
        print(f"making {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", *PACKAGES[name]], check=True)
    return folder / "bin" / "python"


def last_json(command):
    """What a side printed; an empty dict, and why on stderr, if it failed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        print(f"{' '.join(str(part) for part in command[1:4])}: {reason}", file=sys.stderr)
        return {}
    return json.loads(done.stdout.strip().splitlines()[-1])


class Sides:
    """The commands that measure one net at one task."""

    def __init__(self, arguments, name, task):
        self.name, self.task, self.arguments = name, task, arguments
        self.folder = arguments.scratch / "nets" / name

    def graft(self):
        a = self.arguments
        command = [a.graft, "bench", self.folder / "model.onnx", "--json", "--quiet", "--threads", a.threads,
                   "--seconds", a.seconds, "--inputs", self.folder / "test_data_set_0"]
        if self.task == "train":
            loss, optimizer, rate, _ = TRAINING[self.name]
            command += ["--train", "--loss", loss, "--optimizer", optimizer, "--lr", rate,
                        "--target", self.folder / "target.npy", "--precision", a.precision]
        return command

    def peers(self):
        a, python = self.arguments, self.arguments.pythons
        tail = [self.task, a.seconds, a.threads]
        precision = ["bf16"] if a.precision == "bf16" else []
        commands = {}
        for mode in TORCH_MODES:
            if mode == "inductor" and shutil.which("c++") is None:
                continue  # it compiles what it makes
            if mode != "channels_last" or "image" in a.kinds[self.name]:
                commands[mode] = [python["torch"], HERE / "torch_side.py", self.name, mode, *tail, *precision]
        if self.name in JAX_NETS:
            commands["JAX"] = [python["jax"], HERE / "jax_side.py", self.name, *tail]
        if self.task == "infer":
            commands["onnxruntime"] = [python["onnxruntime"], HERE / "onnxruntime_side.py", self.folder, a.seconds,
                                       a.threads]
        return {peer: command for peer, command in commands.items() if peer in a.peers}


def measure(sides, rounds):
    """Graft's figures of its fastest round, and the least time of each peer."""
    ours, theirs = {}, {}
    for _ in range(rounds):
        found = last_json(sides.graft())
        if found and found["step_ms_min"] < ours.get("step_ms_min", math.inf):
            ours = found
        for peer, command in sides.peers().items():
            theirs[peer] = min(theirs.get(peer, math.inf), last_json(command).get("ms", math.inf))
    return ours, theirs


def row(sides, rounds, bandwidth):
    ours, theirs = measure(sides, rounds)
    if not ours or not theirs:
        return f"| {sides.name} | {sides.task} | - |", None
    best = min(theirs, key=theirs.get)
    ms, ratio = ours["step_ms_min"], ours["step_ms_min"] / theirs[best]
    passes = TRAINING[sides.name][3] if sides.task == "train" else 1
    size = (sides.folder / "model.onnx").stat().st_size  # parameters, but for some thousand bytes
    memory = f"{1e3 * passes * size / bandwidth / ms:.2f}" if size > SECOND_CACHE else "cached"
    cells = [f"{theirs[peer]:.3f}" if theirs.get(peer, math.inf) < math.inf else ""
             for peer in PEERS]
    return (f"| {sides.name} | {sides.task} | {ms:.3f} | " + " | ".join(cells) +
            f" | {best} | {ratio:.2f} | {ours['fma_peak_fraction']:.2f} | {memory} |"), ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", metavar="NET", help=f"of {', '.join(TRAINING)}; all without any")
    parser.add_argument("--graft", default="build/graft", help="the program (%(default)s)")
    parser.add_argument("--scratch", type=pathlib.Path, required=True, help="a folder for environments and nets")
    parser.add_argument("--tasks", nargs="+", default=["train", "infer"], choices=["train", "infer"])
    parser.add_argument("--peers", nargs="+", default=PEERS, choices=PEERS)
    parser.add_argument("--precision", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn (%(default)s)")
    arguments = parser.parse_args()
    if arguments.precision == "bf16":
        arguments.tasks = ["train"]
        arguments.peers = [peer for peer in arguments.peers if peer in TORCH_MODES]
    names = arguments.nets or list(TRAINING)
    unknown = [name for name in names if name not in TRAINING]
    if unknown:
        parser.error(f"unknown net {unknown[0]}; there are {', '.join(TRAINING)}")
    arguments.kinds = {name: "rows" if name.startswith(("mlp", "bert")) else "image" for name in names}
    arguments.pythons = {name: environment(arguments.scratch, name) for name in PACKAGES}
    torch_side = [arguments.pythons["torch"], HERE / "torch_side.py"]
    missing = [name for name in names if not (arguments.scratch / "nets" / name / "target.npy").exists()]
    if missing:
        subprocess.run([*torch_side, "export", arguments.scratch / "nets", *missing], check=True)
    bandwidth = last_json([*torch_side, "bandwidth", arguments.threads])["bytes_per_second"]
    print(f"{cpu_name()}, {arguments.threads} thread(s), {arguments.precision}, least of {arguments.rounds} rounds, "
          f"{bandwidth / 1e9:.1f} GB/s\n\n| net | task | Graft ms | " + " | ".join(PEERS) +
          " | best peer | ratio | FMA | memory |\n|---|---|" + "--:|" * 6 + "---|--:|--:|--:|")
    for task in arguments.tasks:
        ratios = []
        for name in names:
            text, ratio = row(Sides(arguments, name, task), arguments.rounds, bandwidth)
            print(text, flush=True)
            ratios += [ratio] if ratio else []
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"| {task}: mean of {len(ratios)} | | | | | | | | | {mean:.2f} | | |", flush=True)


if __name__ == "__main__":
    main()
