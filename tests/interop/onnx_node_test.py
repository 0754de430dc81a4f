"""The ONNX backend tests, against the list of those that Graft does not pass.

Usage: onnx_node_test.py GRAFT [--list]. Takes the cases of the installed onnx package (kinds
node, simple, pytorch-operator, pytorch-converted) and, where Debian's libonnx-testdata is
installed, those of its older opsets ("old/..."). `graft test` runs them. Fails when a case fails
that tests/onnx_not_passed.txt does not list, or when a listed one passes or is gone: the list may
only shrink. --list prints the failing cases with what Graft says, in the form of that file.
Exits with 77 (skipped) where onnx is not installed.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
    from onnx.backend.test.loader import load_model_tests
except ImportError as missing:
    print(f"skipped: {missing}; scripts/setup --tests installs what is needed")
    sys.exit(77)

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")
OLD_CASES = "/usr/share/libonnx-testdata/data"
NOT_PASSED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx_not_passed.txt")


def serialized(value, info):
    """`value` as the protobuf message that a .pb file of the type in `info` holds."""
    if info.type.HasField("map_type"):
        return numpy_helper.from_dict(value, info.name)
    if info.type.HasField("sequence_type"):
        return numpy_helper.from_list(value, info.name)
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, info.name)
    if isinstance(value, onnx.TensorProto):
        return value
    return numpy_helper.from_array(np.asarray(value), info.name)


def write(path, message):
    with open(path, "wb") as file:
        file.write(message.SerializeToString())


def write_case(case, folder):
    os.makedirs(folder)
    write(os.path.join(folder, "model.onnx"), case.model)
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = os.path.join(folder, f"test_data_set_{number}")
        os.makedirs(data)
        graph = case.model.graph
        for stem, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for index, value in enumerate(values):
                write(os.path.join(data, f"{stem}_{index}.pb"), serialized(value, infos[index]))


def collect(root):
    """Lays all cases out as folders beneath `root`."""
    for kind in KINDS:
        for case in load_model_tests(kind=kind):
            folder = os.path.join(root, kind, case.name)
            if case.model is None:
                shutil.copytree(case.model_dir, folder)
            else:
                write_case(case, folder)
        old = os.path.join(OLD_CASES, kind)
        if os.path.isdir(old):
            shutil.copytree(old, os.path.join(root, "old", kind))


def run(graft, root):
    """-> names of passed cases, {name of failed case: what graft says}"""
    lines = subprocess.run([graft, "test", root], capture_output=True, text=True).stdout.splitlines()
    passed, failed = set(), {}
    for line in lines:
        word, _, rest = line.partition("  ")
        if word not in ("passed", "failed", "skipped"):
            continue
        path, _, reason = rest.strip().partition(": ")
        name = os.path.relpath(path, root)
        if word == "passed":
            passed.add(name)
        else:
            failed[name] = reason
    return passed, failed


def read_list():
    """-> {name: reason}; a line is `name: reason`, and `#` starts a comment."""
    listed = {}
    with open(NOT_PASSED, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.strip().partition(": ")
                if not reason:
                    sys.exit(f"{NOT_PASSED}: '{name}' has no reason")
                listed[name] = reason
    if not os.path.isdir(OLD_CASES):
        listed = {name: reason for name, reason in listed.items() if not name.startswith("old/")}
    return listed


def main(arguments):
    with tempfile.TemporaryDirectory() as root:
        collect(root)
        passed, failed = run(arguments[0], root)
        failed = {name: reason.replace(root + os.sep, "") for name, reason in failed.items()}
    if "--list" in arguments:
        for name in sorted(failed):
            print(f"{name}: {failed[name]}")
        return 0
    listed = read_list()
    problems = [f"fails, not listed: {name}: {failed[name]}" for name in failed.keys() - listed.keys()]
    problems += [f"listed, but passes: {name}" for name in passed & listed.keys()]
    problems += [f"listed, but no such case: {name}"
                 for name in listed.keys() - passed - failed.keys()]
    for problem in sorted(problems):
        print(problem)
    node = [len([n for n in names if re.match("node/", n)]) for names in (passed, failed)]
    print(f"onnx {onnx.__version__} node cases: {node[0]} passed, {node[1]} not passed (listed); "
          f"all kinds: {len(passed)} passed, {len(failed)} not passed")
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
