"""Inference of models on their real inputs, Graft beside onnxruntime or beside other builds of Graft:

    python benchmarks/models_onnxruntime.py --threads 1 FOLDER...
    python benchmarks/models_onnxruntime.py --graft build/graft --beside other/graft FOLDER...

A FOLDER holds model.onnx and test_data_set_0/input_*.pb, or folders that do. Both sides take turns,
`--rounds` times; a row has the least time of each and their ratio, below 1 where Graft is faster.
Beside onnxruntime it needs the packages onnxruntime, onnx and numpy; beside a build, none."""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import time


def models_below(folders):
    found = []
    for folder in map(pathlib.Path, folders):
        found += [folder] if (folder / "model.onnx").exists() else sorted(
            path.parent for path in folder.glob("*/model.onnx"))
    return found


def graft_ms(program, folder, arguments):
    """The least time of a run, or why there is none."""
    command = [program, "bench", folder / "model.onnx", "--json", "--quiet", "--threads",
               str(arguments.threads), "--seconds", str(arguments.seconds)]
    inputs = sorted(folder.glob("test_data_set_*"))
    command += ["--inputs", inputs[0]] if inputs else ["--batch", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip().splitlines()[-1]
    return json.loads(done.stdout)["step_ms_min"]


class Onnxruntime:
    """A session and its inputs; made once, so that only runs are timed."""

    def __init__(self, folder, threads):
        import numpy as np
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options,
                                                    providers=["CPUExecutionProvider"])
        files = sorted(folder.glob("test_data_set_0/input_*.pb"))
        self.feed = {}
        for value, file in zip(self.session.get_inputs(), files):
            self.feed[value.name] = read_tensor(file)
        if not files:
            random = np.random.default_rng(0)
            for value in self.session.get_inputs():
                shape = [dim if isinstance(dim, int) else 1 for dim in value.shape]
                self.feed[value.name] = random.standard_normal(shape).astype(np.float32)

    def ms(self, seconds):
        end = time.perf_counter() + seconds
        for _ in range(3):
            self.session.run(None, self.feed)
        least = math.inf
        while least == math.inf or time.perf_counter() < end:
            start = time.perf_counter()
            self.session.run(None, self.feed)
            least = min(least, 1e3 * (time.perf_counter() - start))
        return least


def read_tensor(file):
    import onnx
    tensor = onnx.TensorProto()
    tensor.ParseFromString(file.read_bytes())
    return onnx.numpy_helper.to_array(tensor)


def other_side(folder, arguments):
    """A function that measures once, or the text of what went wrong."""
    if arguments.beside:
        return lambda: graft_ms(arguments.beside, folder, arguments)
    try:
        session = Onnxruntime(folder, arguments.threads)
    except ModuleNotFoundError as missing:
        sys.exit(f"{missing}: install onnxruntime, onnx and numpy, or name a build by --beside")
    except Exception as refused:  # of onnxruntime's own kinds: what it says is shown
        return str(refused).splitlines()[0]
    return lambda: session.ms(arguments.seconds)


def measure(folder, arguments):
    """Least times of both sides; a text in the place of a side that does not run the model."""
    other = other_side(folder, arguments)
    sides = [lambda: graft_ms(arguments.graft, folder, arguments),
             other if callable(other) else lambda: other]
    least = [math.inf, math.inf]
    for _ in range(arguments.rounds):
        for i, side in enumerate(sides):
            found = side()
            least[i] = found if isinstance(found, str) else min(least[i], found)
            if isinstance(found, str):
                return least
    return least


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--graft", default="build/graft", help="the program (%(default)s)")
    parser.add_argument("--beside", help="another build in place of onnxruntime")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn (%(default)s)")
    arguments = parser.parse_args()
    other = "beside" if arguments.beside else "onnxruntime"
    print(f"{cpu_name()}, {arguments.threads} thread(s), least of {arguments.rounds} rounds\n\n"
          f"| model | Graft ms | {other} ms | ratio |\n|---|--:|--:|--:|")
    ratios = []
    for folder in models_below(arguments.folders):
        times = measure(folder, arguments)
        shown = [f"{t:.3f}" if isinstance(t, float) and t < math.inf else "-" for t in times]
        ratio = "-"
        if "-" not in shown:
            ratios.append(times[0] / times[1])
            ratio = f"{ratios[-1]:.2f}"
        print(f"| {folder.name} | {shown[0]} | {shown[1]} | {ratio} |", flush=True)
        for found in times:
            if isinstance(found, str):
                print(f"{folder.name}: {found}", file=sys.stderr)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\ngeometric mean of {len(ratios)}: {mean:.2f}, {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
