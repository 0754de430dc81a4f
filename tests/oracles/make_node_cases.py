"""Writes onnx_node_cases/: of the node cases of the installed onnx package (tests/requirements.txt
pins it), the smallest of each op that Graft passes.

Usage: make_node_cases.py GRAFT [FOLDER]. interop/onnx_node_test.py runs all of them.
"""
import os
import shutil
import subprocess
import sys
import tempfile

import onnx
from onnx.backend.test.loader import load_model_tests

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "interop"))
from node_cases import write_case  # noqa: E402

LARGEST_BYTES = 8000


def size_of(folder):
    return sum(os.path.getsize(os.path.join(path, name))
               for path, _, names in os.walk(folder) for name in names)


def smallest_of_each_op(graft, root):
    """-> {op: folder} of cases that pass."""
    smallest = {}
    for case in load_model_tests(kind="node"):
        folder = os.path.join(root, case.name)
        write_case(case, folder)
        nodes = onnx.load(os.path.join(folder, "model.onnx")).graph.node
        if len(nodes) != 1 or size_of(folder) > LARGEST_BYTES:
            continue
        key = (nodes[0].domain, nodes[0].op_type)
        smallest.setdefault(key, []).append((size_of(folder), case.name, folder))
    passing = {}
    for key, cases in smallest.items():
        for _, _, folder in sorted(cases):
            if subprocess.run([graft, "test", folder], capture_output=True).returncode == 0:
                passing[key] = folder
                break
    return passing


def main(graft, out=os.path.join(HERE, "onnx_node_cases")):
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as root:
        chosen = smallest_of_each_op(graft, root)
        for folder in chosen.values():
            shutil.copytree(folder, os.path.join(out, os.path.basename(folder)))
    print(f"{len(chosen)} cases, {size_of(out) / 1000:.0f} kB, onnx {onnx.__version__}")


if __name__ == "__main__":
    main(*sys.argv[1:])
