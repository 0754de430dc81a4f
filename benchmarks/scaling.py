#!/usr/bin/env python3
"""Step time and arena of chains of convolutions, by depth and by batch.

    benchmarks/scaling.py build/graft --svg docs/scaling.svg

Each net is LeNet up to its first pooling, so 20 images of 12 x 12 a sample, then `depth` times a
3x3 convolution that keeps the size and a ReLU, then an average and a linear layer. `graft bench
--train` measures it; a table goes to stdout. Both figures should grow as depth and batch do: the
last column of the table is the step time a layer and sample. Then the depths once more, each with
the least memory budget that works: there the arena should grow as the square root of the depth.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile

DEPTHS = [8, 16, 32, 64, 128, 256]
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
DEPTH_OF_BATCHES = 16
BATCH_OF_DEPTHS = 16
LAYER = "conv:20x3x3:padding=1,relu"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"scaling: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def least_budget(*command):
    """The bytes that the refusal of a budget of one byte names."""
    done = subprocess.run([*command, "--memory", "1"], capture_output=True, text=True)
    named = re.search(r"at least (\d+) bytes", done.stderr)
    if not named:
        sys.exit(f"scaling: {' '.join(command)} names no least budget: {done.stderr.strip()}")
    return named.group(1)


def make_chain(graft, folder, depth):
    base = os.path.join(folder, "lenet.onnx")
    chain = os.path.join(folder, f"chain{depth}.onnx")
    if not os.path.exists(chain):
        layers = ",".join([LAYER] * depth + ["global_average_pool", "flatten", "linear:10"])
        run(graft, "new", "lenet", "--out", base)
        run(graft, "edit", base, "--truncate", "pool1", "--append", layers, "--out", chain)
    return chain


def measure(arguments, folder, depth, batch, has_budget=False):
    chain = make_chain(arguments.graft, folder, depth)
    bench = [arguments.graft, "bench", chain, "--train", "--loss", "cross_entropy",
             "--optimizer", "sgd", "--lr", "0.001", "--batch", str(batch),
             "--threads", str(arguments.threads), "--seconds", str(arguments.seconds), "--json"]
    budget = ["--memory", least_budget(*bench)] if has_budget else []
    figures = json.loads(run(*bench, *budget))
    return {"depth": depth, "batch": batch, "step_ms": figures["step_ms_min"],
            "plan_ms": figures["plan_ms"], "arena_mb": figures["arena_bytes"] / 1e6}


def print_row(row):
    share = 1e3 * row["step_ms"] / (row["depth"] * row["batch"])
    print(f"| {row['depth']} | {row['batch']} | {row['step_ms']:.3g} | {row['plan_ms']:.3g} "
          f"| {row['arena_mb']:.3g} | {share:.3g} |", flush=True)


def ticks(low, high):
    """Powers of ten that span the figures."""
    return [10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


class Panel:
    """A log-log diagram: points, and behind them a line of that slope through the last."""

    WIDTH, HEIGHT = 230, 170

    def __init__(self, left, top, title, axis, points, slope=1.0):
        self.left, self.top, self.title, self.axis, self.points = left, top, title, axis, points
        self.slope = slope
        self.marks = ticks(min(y for _, y in points), max(y for _, y in points))

    def x(self, value):
        low, high = self.points[0][0], self.points[-1][0]
        return self.left + self.WIDTH * math.log(value / low) / math.log(high / low)

    def y(self, value):
        low, high = self.marks[0], self.marks[-1]
        return self.top + self.HEIGHT * (1 - math.log(value / low) / math.log(high / low))

    def text(self, x, y, text, anchor="middle"):
        return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{text}</text>'

    def line(self, points, style):
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        return f'<polyline points="{path}" fill="none" {style}/>'

    def draw(self):
        parts = [f'<rect x="{self.left}" y="{self.top}" width="{self.WIDTH}" '
                 f'height="{self.HEIGHT}" fill="none" stroke="#888"/>',
                 self.text(self.left + self.WIDTH / 2, self.top - 8, self.title),
                 self.text(self.left + self.WIDTH / 2, self.top + self.HEIGHT + 30, self.axis)]
        for mark in self.marks:
            parts.append(self.text(self.left - 5, self.y(mark) + 4, f"{mark:g}", "end"))
        for value, _ in self.points:
            parts.append(self.text(self.x(value), self.top + self.HEIGHT + 14, value))
        last, most = self.points[-1]
        first = max(self.points[0][0], last * (self.marks[0] / most) ** (1 / self.slope))
        parts.append(self.line([(first, most * (first / last) ** self.slope), (last, most)],
                               'stroke="#bbb" stroke-dasharray="4 3"'))
        parts.append(self.line(self.points, 'stroke="#1a6" stroke-width="2"'))
        for x, y in self.points:
            parts.append(f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3" fill="#1a6"/>')
        return parts


def draw(by_depth, by_batch, with_budget):
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 740" font-family="sans-serif"'
             ' font-size="11">', '<rect width="600" height="740" fill="#fff"/>']
    for row, (figure, unit) in enumerate([("step_ms", "step, ms"), ("arena_mb", "arena, MB")]):
        for column, (axis, rows) in enumerate([("depth", by_depth), ("batch", by_batch)]):
            fixed = "batch" if axis == "depth" else "depth"
            points = [(one[axis], one[figure]) for one in rows]
            parts += Panel(50 + 290 * column, 30 + 240 * row, unit,
                           f"{axis} ({fixed} {rows[0][fixed]}); dashed: proportional",
                           points).draw()
    for column, (figure, unit, slope, dashed) in enumerate([
            ("step_ms", "step within the least budget, ms", 1.0, "proportional"),
            ("arena_mb", "arena within the least budget, MB", 0.5, "square root")]):
        points = [(one["depth"], one[figure]) for one in with_budget]
        parts += Panel(50 + 290 * column, 510, unit,
                       f"depth (batch {BATCH_OF_DEPTHS}); dashed: {dashed}", points, slope).draw()
    return "\n".join(parts + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graft", help="the program, build/graft")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each point")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--svg", help="write the figure to this file")
    arguments = parser.parse_args()
    print("| depth | batch | step ms | plan ms | arena MB | us a layer and sample |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        def sweep(points, has_budget=False):
            rows = []
            for depth, batch in points:
                rows.append(measure(arguments, folder, depth, batch, has_budget))
                print_row(rows[-1])
            return rows

        by_depth = sweep([(depth, BATCH_OF_DEPTHS) for depth in DEPTHS])
        by_batch = sweep([(DEPTH_OF_BATCHES, batch) for batch in BATCHES])
        print("Within the least budget:")
        with_budget = sweep([(depth, BATCH_OF_DEPTHS) for depth in DEPTHS], has_budget=True)
    if arguments.svg:
        with open(arguments.svg, "w", encoding="utf-8") as file:
            file.write(draw(by_depth, by_batch, with_budget))


if __name__ == "__main__":
    main()
