"""Times of a training step (SGD, cross entropy): Graft's own, the same step as `graft export-step`
writes it in onnxruntime, and onnxruntime-training's own.

    python benchmarks/steps_onnxruntime.py --graft build/graft --threads 1 lenet.onnx mlp.onnx
    ... --steps 16                           # the exported step makes as many in a call
    ... --training-python VENV/bin/python    # with onnxruntime-training, onnx and the torch it imports

The sides take turns, `--rounds` times; a row has the least time of each in milliseconds, and what
multiple of Graft's that is. Needs onnxruntime and numpy."""
import argparse
import importlib.util
import json
import pathlib
import subprocess
import tempfile
import time

OPTIMIZER = ["--loss", "cross_entropy", "--optimizer", "sgd:momentum=0", "--lr", "0.01"]


def least_ms(step, seconds):
    """The least time of a step among those that fit into the seconds, and at least 3."""
    step()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def graft_ms(arguments, model):
    done = subprocess.run(
        [arguments.graft, "bench", model, "--train", *OPTIMIZER, "--batch", str(arguments.batch),
         "--threads", str(arguments.threads), "--seconds", str(arguments.seconds), "--json",
         "--quiet"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["step_ms_min"]


def exported_step(arguments, model, folder):
    """A call of it is a call in onnxruntime, as the loop that `graft export-step` writes makes it."""
    import numpy
    import onnxruntime
    subprocess.run([arguments.graft, "export-step", model, *OPTIMIZER, "--batch",
                    str(arguments.batch), "--steps", str(arguments.steps), "--out", folder],
                   check=True, stdout=subprocess.DEVNULL)
    spec = importlib.util.spec_from_file_location("train", folder / "train.py")
    loop = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loop)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    session = onnxruntime.InferenceSession(folder / "step.onnx", options,
                                           providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    shape = [arguments.steps] if arguments.steps > 1 else []
    feeds = {**loop.batch(numpy.random.default_rng(0)), **loop.load(folder / "initial.safetensors"),
             "lr": numpy.full(shape, loop.about["lr"], "f4"), "step": numpy.ones(shape, "i8")}

    def step():
        results = dict(zip(outputs, session.run(None, feeds)))
        for variable in loop.about["variables"]:
            feeds[variable["name"]] = results[variable["next"]]

    return step


def training_step(model, batch, folder):
    """A call of it is a step of onnxruntime-training."""
    import numpy
    import onnx
    from onnxruntime.training import artifacts
    from onnxruntime.training.api import CheckpointState, Module, Optimizer
    content = onnx.load(model)
    floats = [i.name for i in content.graph.initializer if i.data_type == onnx.TensorProto.FLOAT]
    trained = [name for name in floats if "running_" not in name]
    artifacts.generate_artifacts(
        content, requires_grad=trained, frozen_params=[x for x in floats if x not in trained],
        loss=artifacts.LossType.CrossEntropyLoss, optimizer=artifacts.OptimType.SGD,
        artifact_directory=folder)
    state = CheckpointState.load_checkpoint(f"{folder}/checkpoint")
    module = Module(f"{folder}/training_model.onnx", state, f"{folder}/eval_model.onnx")
    optimizer = Optimizer(f"{folder}/optimizer_model.onnx", module)
    shape = [d.dim_value for d in content.graph.input[0].type.tensor_type.shape.dim[1:]]
    random = numpy.random.default_rng(0)
    x = random.standard_normal((batch, *shape)).astype("f4")
    y = random.integers(0, 10, batch)
    module.train()

    def step():
        module(x, y)
        optimizer.step()
        module.lazy_reset_grad()

    return step


def training_ms(arguments, model):
    done = subprocess.run(
        ["env", f"OMP_NUM_THREADS={arguments.threads}", arguments.training_python, __file__,
         "--only-training", "--seconds", str(arguments.seconds), "--batch", str(arguments.batch),
         model], capture_output=True, text=True, check=False)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else None


def row(arguments, model, folder):
    step = exported_step(arguments, model, folder)
    sides = [lambda: graft_ms(arguments, model),
             lambda: least_ms(step, arguments.seconds) / arguments.steps]
    if arguments.training_python:
        sides.append(lambda: training_ms(arguments, model))
    times = [[side() for side in sides] for _ in range(arguments.rounds)]
    own, *others = (None if None in column else min(column) for column in zip(*times))
    texts = ["failed" if ms is None else f"{ms:.2f} ({ms / own:.2f}x)" for ms in others]
    return f"| {model.stem} | {own:.2f} | " + " | ".join(texts) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--graft", default="build/graft")
    parser.add_argument("--training-python")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only-training", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if arguments.only_training:
            step = training_step(arguments.models[0], arguments.batch, name)
            print(least_ms(step, arguments.seconds))
            return
        print("| net | Graft, ms | exported, in onnxruntime, ms | onnxruntime-training, ms |")
        for model in arguments.models:
            print(row(arguments, model, pathlib.Path(name) / model.stem), flush=True)


if __name__ == "__main__":
    main()
