"""One model on the whole way: read, written as it was read, another batch, inference as onnxruntime has
it, ten steps with falling loss, saved, valid, and equal to onnxruntime (without its optimizations) again.

Each station is a column of a table; a model that does not pass one says why there, and goes no further.
"""
import json
import os
import subprocess

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from protos import differences, without_weights

STATIONS = ("reads", "writes", "batch", "runs", "trains", "saves", "runs again")
BATCH = 3
STEPS = 10
RATES = ("1e-3", "1e-5")  # the second for nets that were trained to the end, which the first throws far
TOLERANCE = 1e-4  # of the largest result: float sums in another order, layer after layer
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i64": np.int64, "i32": np.int32,
         "bool": np.bool_, "u8": np.uint8}


class Stopped(Exception):
    """Why a model does not pass a station."""


def relative_difference(found, wanted):
    if found.shape != wanted.shape:
        raise Stopped(f"shape {found.shape}, onnxruntime's is {wanted.shape}")
    if found.size == 0 or not np.issubdtype(wanted.dtype, np.number):
        return float(not np.array_equal(found, wanted))
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    both = np.isfinite(wanted)
    if not np.array_equal(found[~both], wanted[~both], equal_nan=True):
        return float("inf")
    return float(np.abs(found - wanted)[both].max(initial=0)) / max(1.0, float(np.abs(wanted[both]).max(initial=0)))


def has_training_dropout(path):
    nodes = onnx.load(path, load_external_data=False).graph.node
    return any(node.op_type == "Dropout" and len(node.input) > 2 for node in nodes)


class Walk:
    """`dims`: numbers for names and places of dims that a file leaves open, as the name or
    INPUT[AXIS]. `set_inputs`: NAME=VALUE for inputs that choose what the model does. `tops`: by input,
    the number that its integers stay below; without it only 0 and 1 are sure to be in any table."""

    def __init__(self, graft, model, folder, dims=None, set_inputs=(), tops=None):
        self.graft, self.given, self.folder = graft, model, folder
        self.dims, self.set_inputs, self.tops = dims or {}, set_inputs, tops or {}
        self.model = self.path("start.onnx")
        self.random = np.random.default_rng(3)
        self.notes = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, *arguments, allow=(0,)):
        run = subprocess.run([self.graft, *arguments], capture_output=True, text=True)
        if run.returncode not in allow or (run.returncode != 0 and not run.stdout):
            raise Stopped((run.stderr.strip() or f"exit {run.returncode}").splitlines()[0][:300])
        return run.stdout

    def run(self):
        """Station -> 'ok' or why not; those behind are left out."""
        row = {}
        for station in STATIONS:
            try:
                row[station] = getattr(self, station.replace(" ", "_"))() or "ok"
            except Stopped as why:
                row[station] = str(why).replace(self.folder + os.sep, "")
                break
        return row

    def reads(self):
        self.facts = json.loads(self.call("inspect", self.given, "--json", allow=(0, 2)))

    def writes(self):
        """An edit that changes nothing leaves every field as it was."""
        name = self.facts["inputs"][0]["name"]
        self.call("edit", self.given, "--rename", f"{name}={name}", "--out", self.path("same.onnx"))
        found = differences(onnx.load(self.given), onnx.load(self.path("same.onnx")))
        if found:
            raise Stopped(f"{len(found)} fields differ: {', '.join(found[:3])}")

    def batch(self):
        sets = [one for one in self.set_inputs
                if one.split("=")[0] in (x["name"] for x in self.facts["inputs"])]
        self.call("edit", self.given, *(part for one in sets for part in ("--set", one)), "--batch",
                  str(BATCH), "--out", self.model)
        self.facts = json.loads(self.call("inspect", self.model, "--json", allow=(0, 2)))

    def shape_of(self, one):
        dims = one["type"].split("[")[1].rstrip("]").split(",") if "[" in one["type"] else []
        shape = []
        for axis, dim in enumerate(d for d in dims if d):
            place = f"{one['name']}[{axis}]"
            number = self.dims.get(dim, self.dims.get(place))
            if not dim.isdigit() and number is None:
                raise Stopped(f"dim {dim} of {place} is open; give --dim {place}=NUMBER")
            shape.append(int(dim) if dim.isdigit() else number)
        return shape

    def make_inputs(self):
        inputs = {}
        for one in self.facts["inputs"]:
            dtype = TYPES.get(one["type"].split("[")[0])
            if dtype is None:
                raise Stopped(f"input {one['name']} is {one['type']}: no such numbers are made here")
            shape = self.shape_of(one)
            if np.issubdtype(dtype, np.floating):
                inputs[one["name"]] = self.random.random(shape).astype(dtype)
            else:
                top = self.tops.get(one["name"], 2)
                inputs[one["name"]] = self.random.integers(0, top, shape).astype(dtype)
        return inputs

    def compare(self, model):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        # Optimized, it differs from itself by up to 1e-3 (convolutions in other layouts).
        # But a Dropout of a training export, which it leaves out only then, would draw.
        options.graph_optimization_level = (
            onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC if has_training_dropout(model)
            else onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
        try:
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            wanted = session.run(None, self.inputs)
        except Exception as error:  # onnxruntime has no common base for its own
            raise Stopped(f"onnxruntime: {str(error).splitlines()[0][:200]}") from error
        arguments = []
        for name, value in self.inputs.items():
            file = self.path(f"in_{len(arguments)}.pb")
            with open(file, "wb") as out:
                out.write(numpy_helper.from_array(value, name).SerializeToString())
            arguments += ["--input", f"{name}={file}"]
        lines = self.call("run", model, *arguments, "--json", "--out", self.path("out")).splitlines()
        self.results = {}
        worst = 0.0
        for output, value in zip(session.get_outputs(), wanted):
            line = next(json.loads(line) for line in lines if json.loads(line)["name"] == output.name)
            if not line["file"].endswith(".npy"):
                raise Stopped(f"output {output.name} is {line['type']}")
            found = np.load(line["file"])
            self.results[output.name] = found
            worst = max(worst, relative_difference(found, value))
        if not worst <= TOLERANCE:
            raise Stopped(f"differs from onnxruntime by {worst:.1e}")
        return f"{worst:.0e}"

    def runs(self):
        self.inputs = self.make_inputs()
        return self.compare(self.model)

    def trains(self):
        """To numbers near what it gives, by their squares: any float output can learn that."""
        shapes = (f"--shape={name}=" + "x".join(map(str, value.shape))
                  for name, value in self.inputs.items() if value.ndim)
        facts = json.loads(self.call("inspect", self.model, "--json", *shapes, allow=(0, 2)))
        if not facts["can_train"]:
            why = [*facts["blockers"], facts.get("obstacle"), "no parameter reaches an output"]
            raise Stopped("nothing to train: " + next(one for one in why if one))
        model = self.with_states_set()
        name, first = next(((n, v) for n, v in self.results.items()
                            if np.issubdtype(v.dtype, np.floating)), (None, None))
        if name is None:
            raise Stopped("no output has floats to judge")
        axis = next((a for a, n in enumerate(first.shape) if n == BATCH), None)
        if axis is None:
            raise Stopped(f"output {name} {first.shape} has no axis for the batch")
        scale = max(float(first.std()), 1.0)
        target = first + self.random.normal(0, scale, first.shape).astype(first.dtype)
        np.savez(self.path("data.npz"), target=np.moveaxis(target, axis, 0) if axis else target,
                 **{n: v for n, v in self.inputs.items() if n not in self.states})
        for rate in RATES:
            losses = self.ten_steps(model, name, rate)
            if losses[-1] < losses[0]:
                break
        else:
            raise Stopped(f"loss {losses[0]:.4g} -> {losses[-1]:.4g}")
        slower = "" if rate == RATES[0] else f", rate {rate}"
        states = "".join(f", {name}=0" for name in self.states)
        return f"{losses[0]:.4g} -> {losses[-1]:.4g}{slower}{states}"

    def ten_steps(self, model, output, rate):
        """The losses."""
        out = self.call("train", model, "--data", "npz:" + self.path("data.npz"), "--batch",
                        str(BATCH), "--epochs", str(STEPS), "--loss", "mse", "--output", output,
                        "--optimizer", "adam", "--lr", rate, "--schedule", "constant", "--validate",
                        "none", "--normalize", "none", "--no-run", "--json", "--out",
                        self.path("trained.onnx"))
        losses = [event["loss"] for event in map(json.loads, out.splitlines())
                  if event.get("event") == "epoch"]
        if len(losses) != STEPS:
            raise Stopped(f"{len(losses)} epochs")
        return losses

    def with_states_set(self):
        """Inputs that do not begin with the batch, as recurrent states, are no samples: zeros."""
        self.states = [name for name, value in self.inputs.items()
                       if value.ndim and value.shape[0] != BATCH]
        if not self.states:
            return self.model
        model = self.path("set.onnx")
        sets = (part for name in self.states for part in ("--set", f"{name}=0"))
        self.call("edit", self.model, *sets, "--out", model)
        return model

    def saves(self):
        """Only elements of initializers differ, but for copies of a parameter that were parted."""
        started = self.path("set.onnx") if self.states else self.model
        before, after = onnx.load(started), onnx.load(self.path("trained.onnx"))
        try:
            onnx.checker.check_model(after, full_check=True)
        except Exception as error:
            try:
                onnx.checker.check_model(before, full_check=True)
            except Exception:
                self.notes.append("the checker refuses the given file too")
            else:
                raise Stopped(f"onnx.checker: {str(error).splitlines()[0][:200]}") from error
        found = differences(without_weights(before), without_weights(after))
        if not found:
            return "ok"
        # A merged parameter that was parted: an initializer more, named as its node or in its place.
        parted = len(after.graph.initializer) - len(before.graph.initializer)
        kept = [node for node in before.graph.node if node.op_type != "Identity"]
        ours = [node for node in after.graph.node if node.op_type != "Identity"]
        if parted > 0 and [n.op_type for n in kept] == [n.op_type for n in ours]:
            return f"ok, {parted} merged apart"
        raise Stopped(f"{len(found)} fields differ: {', '.join(found[:3])}")

    def runs_again(self):
        for name in self.states:
            del self.inputs[name]
        return self.compare(self.path("trained.onnx"))


def table(rows):
    """Markdown; `rows`: (name, row of Walk.run)."""
    lines = ["| model | " + " | ".join(STATIONS) + " |", "|---" * (len(STATIONS) + 1) + "|"]
    for name, row in rows:
        cells = [row.get(station, "") for station in STATIONS]
        lines.append(f"| {name} | " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def passes(row):
    """Whether all stations were passed."""
    return len(row) == len(STATIONS) and not any(" differ" in cell for cell in row.values())
