"""Times in PyTorch what ops_bench times in Graft, under the same names.

With --bench PROGRAM both are timed in turns, case by case, and their ratio is printed.
"""

import argparse
import json
import re
import subprocess
import time

import torch
from torch.nn import functional as F


def numbers(*shape):
    return (torch.rand(*shape) * 2 - 1).requires_grad_()


def indices(count, limit):
    return torch.randint(limit, (count,))


def lstm():
    steps, batch, width, hidden = 26, 16, 256, 128
    module = torch.nn.LSTM(width, hidden, bidirectional=True)
    x = numbers(steps, batch, width)
    return [x, *module.parameters()], lambda: module(x)[0]


def layer_norm(rows, length):
    x, scale, bias = numbers(rows, length), numbers(length), numbers(length)
    return [x, scale, bias], lambda: F.layer_norm(x, (length,), scale, bias)


def unary(function, *shape):
    x = numbers(*shape)
    return [x], lambda: function(x)


def gather(rows, length):
    data, rows_wanted = numbers(rows, length), indices(2048, rows)
    return [data], lambda: F.embedding(rows_wanted, data)


def scatter():
    data, updates, rows = numbers(50000, 64), numbers(4096, 64), indices(4096, 50000)
    return [data, updates], lambda: data.index_add(0, rows, updates)


def resize(mode):
    x = numbers(16, 64, 56, 56)
    return [x], lambda: F.interpolate(x, scale_factor=2, mode=mode)


def chain():
    x, a, b = (numbers(8_000_000) for _ in range(3))
    return [x, a, b], lambda: torch.relu(x * a + b) * torch.sigmoid(x)


def gelu_of_parts():
    x, bias = numbers(2048, 512), numbers(512)

    def run():
        z = x + bias
        return z * (torch.erf(z / 1.4142135) + 1.0) * 0.5

    return [x, bias], run


CASES = {
    "Lstm/26x16x256to128": lstm,
    "LayerNormalization/2048x128": lambda: layer_norm(2048, 128),
    "LayerNormalization/8192x768": lambda: layer_norm(8192, 768),
    "Softmax/32x1024x1024": lambda: unary(lambda x: x.softmax(-1), 32, 1024, 1024),
    "Softmax/256x1000": lambda: unary(lambda x: x.softmax(-1), 256, 1000),
    "Gather/2048of1000x128": lambda: gather(1000, 128),
    "Gather/2048of50000x512": lambda: gather(50000, 512),
    "ScatterND/4096into50000x64": scatter,
    "Resize/16x64x56x56x2nearest": lambda: resize("nearest"),
    "Resize/16x64x56x56x2linear": lambda: resize("bilinear"),
    "Chain/8M": chain,
    "Gelu/2048x512": lambda: unary(F.gelu, 2048, 512),
    "Erf/2048x512": lambda: unary(torch.erf, 2048, 512),
    "GeluOfParts/2048x512": gelu_of_parts,
    "ReduceSum/8192x2048rows": lambda: unary(lambda x: x.sum(0), 8192, 2048),
}


def forward_step(leaves, run):
    def step():
        with torch.no_grad():
            run()

    return step


def train_step(leaves, run):
    gradient = torch.rand_like(run())
    return lambda: torch.autograd.grad(run(), leaves, gradient)


REPETITIONS = 10  # of which the fastest counts, on both sides


def torch_ms(step, seconds):
    """Milliseconds a step, of the fastest repetition; as Google Benchmark does it, each is a mean."""
    step()
    least = float("inf")
    for _ in range(REPETITIONS):
        start, steps = time.perf_counter(), 0
        while (took := time.perf_counter() - start) < seconds / REPETITIONS or steps == 0:
            step()
            steps += 1
        least = min(least, took / steps)
    return least * 1e3


def graft_ms(program, name, threads, seconds):
    """The same of the case in ops_bench."""
    report = subprocess.run(
        [program, str(threads), f"--benchmark_filter=^{name}/real_time$",
         f"--benchmark_min_time={seconds / REPETITIONS}",
         f"--benchmark_repetitions={REPETITIONS}", "--benchmark_format=json"],
        check=True, capture_output=True, text=True).stdout
    return min(run["real_time"] for run in json.loads(report)["benchmarks"]
               if run["run_type"] == "iteration")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--bench", help="path of ops_bench, to compare with")
    parser.add_argument("--filter", default="", help="regular expression on the names")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="a case and round")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    for case, make in CASES.items():
        for kind, make_step in (("forward", forward_step), ("train", train_step)):
            name = f"{case}/{kind}"
            if not re.search(options.filter, name):
                continue
            step = make_step(*make())
            torch_least = graft_least = float("inf")
            for _ in range(options.rounds):
                torch_least = min(torch_least, torch_ms(step, options.seconds))
                if options.bench:
                    graft_least = min(graft_least, graft_ms(
                        options.bench, name, options.threads, options.seconds))
            line = f"{name:40} torch {torch_least:9.3f} ms"
            if options.bench:
                line += f"  graft {graft_least:9.3f} ms  ratio {graft_least / torch_least:5.2f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
