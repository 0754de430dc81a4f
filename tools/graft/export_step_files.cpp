#include "tools/graft/export_step_files.h"

namespace graft::cli {
namespace {

constexpr std::string_view kReadme = R"(# A training step as plain ONNX

| file | what it holds |
|---|---|
| `step.onnx` | one training step: forward, loss, gradients, updates, in ops of ONNX alone |
| `eval.onnx` | loss and prediction for given parameters |
| `initial.safetensors` | the parameters, the optimizer's state and running statistics before the first step |
| `step.json` | the names and shapes of inputs and outputs, and the learning rate |
| `train.py` | a loop for onnxruntime in Python |
| `train.mjs` | a loop for onnxruntime-web in Node; in a browser, `fetch` takes the place of `readFile` |

A step keeps nothing between runs. Its inputs are a batch, the target, `lr` (f32), `step` (i64, 1 for the first
step) and the variables; its outputs are the loss, the prediction and, for each variable, what it is after the step,
which is the input of the next. All shapes are fixed, the batch's too. Where `step.json` says `steps` above 1, a call
makes as many: then all inputs and outputs but the variables have a first axis of that length, a batch, a rate and a
number for each step.

`python train.py` needs numpy and onnxruntime. It trains on made-up numbers: put your own where `batch()` stands. It
writes `trained.safetensors`, which holds the parameters by the names that they have in the model.
)";

constexpr std::string_view kPython = R"("""Trains step.onnx with onnxruntime: train.py [STEPS]"""
import json, os, struct, sys
import numpy, onnxruntime

TYPES = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1", "U8": "u1", "BOOL": "?"}
NUMPY = {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "u8": "u1", "bool": "?"}
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "step.json")) as file:
    about = json.load(file)


def load(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[slice(*at["data_offsets"])], TYPES[at["dtype"]]).reshape(at["shape"])
            for name, at in header.items()}


def save(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        code = next(code for code, kind in TYPES.items() if numpy.dtype(kind) == tensor.dtype)
        header[name] = {"dtype": code, "shape": tensor.shape, "data_offsets": [len(data), len(data) + tensor.nbytes]}
        data += tensor.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def batch(random):
    """What a call takes, by the names of the step's inputs; put your data here."""
    made = {i["name"]: random.standard_normal(i["shape"]) if i["type"][0] == "f" else random.integers(0, 2, i["shape"])
            for i in about["inputs"] + [about["target"]]}
    return {i["name"]: made[i["name"]].astype(NUMPY[i["type"]]) for i in about["inputs"] + [about["target"]]}


def train(steps, next_batch):
    """Makes whole calls for so many steps; returns the losses and the variables after the last step."""
    session = onnxruntime.InferenceSession(os.path.join(here, "step.onnx"), providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    variables, losses = load(os.path.join(here, "initial.safetensors")), []
    shape = [about["steps"]] if about["steps"] > 1 else []
    for step in range(1, steps + 1, about["steps"]):
        feeds = {**next_batch(), **variables, "lr": numpy.full(shape, about["lr"], "f4"),
                 "step": numpy.arange(step, step + about["steps"], dtype="i8").reshape(shape)}
        results = dict(zip(outputs, session.run(None, feeds)))
        variables = {variable["name"]: results[variable["next"]] for variable in about["variables"]}
        losses += numpy.ravel(results[about["loss"]]).tolist()
    return losses, variables


if __name__ == "__main__":
    random = numpy.random.default_rng(0)
    losses, variables = train(int(sys.argv[1]) if len(sys.argv) > 1 else 10, lambda: batch(random))
    print("losses", *(f"{loss:.4f}" for loss in losses))
    parameters = [variable["name"] for variable in about["variables"] if variable["is_parameter"]]
    save(os.path.join(here, "trained.safetensors"), {name: variables[name] for name in parameters})
)";

constexpr std::string_view kJavaScript =
    R"(// Trains step.onnx with onnxruntime-web: node train.mjs [STEPS]
import * as ort from "onnxruntime-web";
import { readFile } from "node:fs/promises";

const file = (name) => readFile(new URL(name, import.meta.url));
const about = JSON.parse(await file("step.json"));
const types = { F64: "float64", F32: "float32", I64: "int64", I32: "int32", U8: "uint8", BOOL: "bool" };
const arrays = { float64: Float64Array, float32: Float32Array, int64: BigInt64Array, int32: Int32Array, uint8: Uint8Array, bool: Uint8Array };

async function load(name) {
  const bytes = new Uint8Array(await file(name));
  const end = 8 + Number(new DataView(bytes.buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.slice(8, end)));
  delete header.__metadata__;
  return Object.fromEntries(Object.entries(header).map(([key, { dtype, shape, data_offsets: [from, to] }]) =>
    [key, new ort.Tensor(types[dtype], new arrays[types[dtype]](bytes.slice(end + from, end + to).buffer), shape)]));
}

// What a call takes, by the names of the step's inputs; put your data here.
function batch() {
  return Object.fromEntries([...about.inputs, about.target].map(({ name, type, shape }) => {
    const size = shape.reduce((a, b) => a * b, 1);
    return [name, type === "i64" ? new ort.Tensor("int64", BigInt64Array.from({ length: size }, () => BigInt(Math.random() < 0.5)), shape)
      : new ort.Tensor("float32", Float32Array.from({ length: size }, Math.random), shape)];
  }));
}

const session = await ort.InferenceSession.create(new Uint8Array(await file("step.onnx")));
let variables = await load("initial.safetensors");
const shape = about.steps > 1 ? [about.steps] : [];
const each = Array.from({ length: about.steps }, (_, i) => i);
for (let step = 1; step <= Number(process.argv[2] ?? 10); step += about.steps) {
  const lr = new ort.Tensor("float32", each.map(() => about.lr), shape);
  const count = new ort.Tensor("int64", each.map((i) => BigInt(step + i)), shape);
  const results = await session.run({ ...batch(), ...variables, lr, step: count });
  variables = Object.fromEntries(about.variables.map(({ name, next }) => [name, results[next]]));
  results[about.loss].data.forEach((loss, i) => console.log(step + i, loss));
}
)";

}  // namespace

std::vector<std::pair<std::string_view, std::string_view>> step_loops() {
  return {{"README.md", kReadme}, {"train.py", kPython}, {"train.mjs", kJavaScript}};
}

}  // namespace graft::cli
