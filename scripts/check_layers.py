#!/usr/bin/env python3
"""Checks that includes follow Graft's layers.

The rules:
  star      autograd, optim, io and data include only themselves and core; train joins them;
            tools, python, examples and benchmarks stand on top. data needs tensors only.
  core      a folder of core includes those before it in CORE, never those after.
  headers   a public header includes the standard library and Graft only; other headers belong in
            a .cpp, or in a header called *_internal.h or in a folder called internal.
  internal  an internal header (io/proto, io/exporters, core/device/cuda and the rooms of core/ops count
            as such) stays within its top-level folder, and no public header includes it.
  rooms     in core/ops, headers of the root include no room, kernels/ includes no family, and a
            family includes no other family. Others see the headers of the root only.
  proto     protobuf and libonnx are seen in io/proto only.
  cuda      CUDA headers are seen in core/device/cuda and *_cuda.* only.
  face      graft/ holds what programs include, and includes from everywhere below tools; nothing
            but tools includes it by "...". Examples are programs, as is the Python package: of Graft
            they include <graft/...>, and the package the command line.
  root      "..." is written from the repository's root.
  cycle     no header includes itself by way of others.

Prints file:line: rule: what is wrong. Exits with 1 if anything is.
"""

import argparse
import re
import sys
from pathlib import Path

CORE = ["base", "device", "tensor", "graph", "ops", "passes", "layers", "runtime"]
CORE_LAYERS = [f"core/{name}" for name in CORE]
LIBRARIES = ["autograd", "optim", "io", "data", "train"]
TOPS = ["tools", "python", "examples", "benchmarks"]
FACE = "graft"
PROGRAMS = {"examples", "python"}

# What each layer may include besides itself.
ALLOWED = {layer: set(CORE_LAYERS[:i]) for i, layer in enumerate(CORE_LAYERS)}
ALLOWED |= {name: set(CORE_LAYERS) for name in ("autograd", "optim", "io")}
ALLOWED["data"] = {"core/base", "core/device", "core/tensor"}
ALLOWED["train"] = set(CORE_LAYERS) | set(LIBRARIES)
ALLOWED |= {name: set(CORE_LAYERS) | set(LIBRARIES) for name in [*TOPS, FACE]}
ALLOWED["tools"].add(FACE)
ALLOWED["python"] = {"tools"}

SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STANDARD = re.compile(r"^[a-z_]+$")
INTERNAL = re.compile(
    r"(^|/)internal/|_internal\.|^io/(proto|exporters)/|^core/device/cuda/|^core/ops/[a-z]+/")
ROOM = re.compile(r"^core/ops/([a-z]+)/")
PROTO = re.compile(r"^(google/protobuf|onnx)/")
CUDA = re.compile(r"^(cuda|cublas|cudnn|curand|nccl|cub/|cooperative_groups)")


def layer_of(path):
    """The layer of a path written from the root; None for what is no part of Graft."""
    parts = path.split("/")
    if parts[0] == "core":
        return "/".join(parts[:2]) if len(parts) > 2 else "core"
    return parts[0] if parts[0] in ALLOWED and len(parts) > 1 else None


def is_header(path):
    return path.endswith((".h", ".cuh"))


def is_internal(path):
    return INTERNAL.search(path) is not None


def is_public_header(path):
    return is_header(path) and not is_internal(path) and path.split("/")[0] not in TOPS


def read_includes(root):
    """{file: [(line, quoted, included path)]}, paths written from the root."""
    includes = {}
    for top in ["core", *LIBRARIES, FACE, *TOPS]:
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            found = []
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if match := INCLUDE.match(line):
                    found.append((number, match[1] == '"', match[2]))
            includes[path.relative_to(root).as_posix()] = found
    return includes


def check_graft_include(file, target):
    """Yields (rule, message) for an include of one of Graft's own files."""
    mine, theirs = layer_of(file), layer_of(target)
    if theirs not in ALLOWED:
        yield "core", f"{target} belongs to no layer of core"
    elif mine in ALLOWED and theirs != mine and theirs not in ALLOWED[mine]:
        rule = "core" if mine in CORE_LAYERS and theirs in CORE_LAYERS else "star"
        yield rule, f"{mine} must not include {theirs}: {target}"
    yield from check_rooms(file, target)
    if is_internal(target):
        if is_public_header(file):
            yield "internal", f"a public header includes an internal one: {target}"
        if file.split("/")[0] != target.split("/")[0]:
            yield "internal", f"{target} is internal to {target.split('/')[0]}"


def check_rooms(file, target):
    """Yields (rule, message) for an include of a room of core/ops."""
    room = ROOM.match(target)
    if not room:
        return
    mine = ROOM.match(file)
    if not file.startswith("core/ops/"):
        yield "rooms", f"only core/ops sees what is in its rooms: {target}"
    elif mine and mine[1] != room[1] and room[1] != "kernels":
        yield "rooms", f"core/ops/{mine[1]} must not include core/ops/{room[1]}: {target}"
    elif not mine and room[1] != "kernels":
        yield "rooms", f"the root of core/ops must not include this: {target}"


def check_program_include(file, target, quoted):
    """Yields (rule, message) for what only programs may include, and what they may not."""
    if layer_of(file) not in PROGRAMS:
        yield "face", f"only programs see Graft so: {target}"
    elif target.startswith("graft/detail/"):
        yield "face", f"what lies below graft/detail is no program's: {target}"
    elif layer_of(file) == "examples" and (quoted or layer_of(target) not in (FACE, None)):
        yield "face", f"an example includes std and <graft/...> only: {target}"


def check_foreign_include(file, target, quoted):
    """Yields (rule, message) for an include of a system or third-party header."""
    if PROTO.match(target) and not file.startswith("io/proto/"):
        yield "proto", f"protobuf and onnx belong in io/proto: {target}"
    elif CUDA.match(target) and not (
        file.startswith("core/device/cuda/") or "_cuda." in file.rsplit("/", 1)[-1]
    ):
        yield "cuda", f"CUDA headers belong in core/device/cuda and *_cuda.*: {target}"
    elif quoted and ("/" not in target or target.startswith(".")):
        yield "root", f"write the path from the repository's root: {target}"
    elif is_public_header(file) and (quoted or not STANDARD.match(target)):
        yield "headers", f"a public header includes std and Graft only: {target}"


def find_cycles(includes):
    """Yields (file, line, cycle) for each include that closes a cycle."""
    done, trail = set(), []

    def visit(file):
        trail.append(file)
        for line, _, target in includes[file]:
            if target in trail:
                yield file, line, trail[trail.index(target):] + [target]
            elif target in includes and target not in done:
                yield from visit(target)
        trail.pop()
        done.add(file)

    for file in includes:
        if file not in done:
            yield from visit(file)


def check(root):
    """All violations below root, as (file, line, rule, message)."""
    includes = read_includes(root)
    violations = []
    for file, found in includes.items():
        if layer_of(file) not in ALLOWED:
            violations.append((file, 1, "core", "belongs to no layer of core"))
        for line, quoted, target in found:
            if layer_of(file) == "examples" or (layer_of(target) == FACE and not quoted):
                problems = check_program_include(file, target, quoted)
            elif layer_of(target) is not None:
                problems = check_graft_include(file, target)
            else:
                problems = check_foreign_include(file, target, quoted)
            violations += [(file, line, *problem) for problem in problems]
    for file, line, cycle in find_cycles(includes):
        violations.append((file, line, "cycle", " -> ".join(cycle)))
    return sorted(violations)


def main():
    parser = argparse.ArgumentParser(description="Check that includes follow Graft's layers.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    root = parser.parse_args().root
    violations = check(root)
    for file, line, rule, message in violations:
        print(f"{file}:{line}: {rule}: {message}")
    if not violations:
        print("layers: ok")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
