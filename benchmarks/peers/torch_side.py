"""PyTorch's side.

    torch_side.py export FOLDER [NET...]       writes NET/model.onnx, NET/test_data_set_0/input_0.pb and NET/target.npy
    torch_side.py bandwidth THREADS            bytes a second that a large copy reads and writes
    torch_side.py NET MODE TASK SECONDS THREADS [bf16]    one JSON line; MODE: eager, channels_last, inductor;
                                               TASK: train, infer; with bf16 autocast, as PyTorch recommends
"""
import io
import json
import pathlib
import sys
import time
import warnings

import torch

import nets
from least import least_ms


def export(folder, names):
    import numpy as np
    import onnx
    warnings.filterwarnings("ignore")
    for name in names or nets.NETS:
        module, x, y = nets.make(name)
        target = pathlib.Path(folder) / name
        (target / "test_data_set_0").mkdir(parents=True, exist_ok=True)
        file = io.BytesIO()
        torch.onnx.export(module.eval(), (x,), file, dynamo=False, opset_version=17, input_names=["input"],
                          output_names=["output"], dynamic_axes={"input": {0: "batch"}}, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.PRESERVE)
        (target / "model.onnx").write_bytes(file.getvalue())
        tensor = onnx.numpy_helper.from_array(x.numpy(), "input")
        (target / "test_data_set_0" / "input_0.pb").write_bytes(tensor.SerializeToString())
        np.save(target / "target.npy", y.numpy())


def optimizer_of(net, parameters):
    if net.optimizer in ("sgd", "momentum"):
        return torch.optim.SGD(parameters, net.rate, momentum=0.9 if net.optimizer == "momentum" else 0.0)
    kind = torch.optim.Adam if net.optimizer == "adam" else torch.optim.AdamW
    return kind(parameters, net.rate, fused=True)


def step_of(name, mode, task, precision):
    """A function that makes one step, and returns the loss if it trains."""
    module, x, y = nets.make(name)
    module.train(task == "train")
    if mode == "channels_last" and x.dim() == 4:
        module, x = module.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    run = torch.compile(module) if mode == "inductor" else module
    autocast = torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16")
    if task == "infer":
        def answer():
            with torch.inference_mode(), autocast:
                run(x)
        return answer
    net = nets.NETS[name]
    optimizer = optimizer_of(net, module.parameters())

    def step():
        optimizer.zero_grad(set_to_none=True)
        with autocast:
            loss = nets.loss_of(net, run(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return step


def bandwidth(threads):
    torch.set_num_threads(threads)
    source = torch.ones(1 << 26)
    target = torch.zeros_like(source)
    times = []
    for _ in range(10):
        start = time.perf_counter()
        target.copy_(source)
        times.append(time.perf_counter() - start)
    print(json.dumps({"bytes_per_second": 2 * 4 * source.numel() / min(times)}))


def main():
    if sys.argv[1] == "export":
        return export(sys.argv[2], sys.argv[3:])
    if sys.argv[1] == "bandwidth":
        return bandwidth(int(sys.argv[2]))
    name, mode, task, seconds, threads, *precision = sys.argv[1:]
    torch.set_num_threads(int(threads))
    step = step_of(name, mode, task, *(precision or ["f32"]))
    first = step()
    ms = least_ms(step, float(seconds))
    print(json.dumps({"ms": ms, "first_loss": None if first is None else first.item()}))


if __name__ == "__main__":
    main()
