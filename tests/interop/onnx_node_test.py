"""The ONNX backend tests, against the list of those that Graft does not pass.

Usage: onnx_node_test.py GRAFT [--list]. Takes the cases of the installed onnx package (kinds
node, simple, pytorch-operator, pytorch-converted) and, where Debian's libonnx-testdata is
installed, those of its older opsets ("old/..."). `graft test` runs them. Fails when a case fails
that tests/onnx_not_passed.txt does not list, or when a listed one passes or is gone: the list may
only shrink. --list prints the failing cases with what Graft says, in the form of that file.
Fails where onnx is not installed, unless GRAFT_OFFLINE is set: then it exits with 77 (skipped).
"""
import os
import re
import subprocess
import sys
import tempfile

from needed import needed

with needed():
    import onnx
    from node_cases import OLD_CASES, collect

NOT_PASSED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx_not_passed.txt")


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
