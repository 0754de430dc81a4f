"""Models of any origin go the whole way: see walk.py.

Usage: any_model_test.py GRAFT [FILE|FOLDER]... [--dim NAME=NUMBER]... [--set NAME=VALUE]...
    [--top NAME=NUMBER]...

Without files: the training cases, each of which must pass. With them, a table of what they do, in Markdown;
exit code 1 where one does not pass. --dim: of a dim that files leave open, by its name or as INPUT[AXIS];
--set: of inputs that choose what a model does; --top: what integers of an input stay below. make_exports.py makes files by both exporters of PyTorch.
Fails where onnx or onnxruntime is not installed, unless GRAFT_OFFLINE is set: then it exits with 77
(skipped).
"""
import argparse
import glob
import os
import sys
import tempfile

from needed import needed

with needed():
    import walk

CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "training_cases")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("graft")
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--top", action="append", default=[])
    parser.add_argument("models", nargs="*")
    return parser.parse_args()


def numbers(pairs):
    return {name: int(number) for name, number in (pair.split("=") for pair in pairs)}


def files_of(places):
    for place in places:
        if os.path.isdir(place):
            yield from sorted(glob.glob(os.path.join(place, "**", "*.onnx"), recursive=True))
        else:
            yield place


def name_of(path):
    stem = os.path.splitext(os.path.basename(path))[0]
    return os.path.basename(os.path.dirname(path)) if stem == "model" else stem


def main():
    given = arguments()
    rows, failed = [], []
    for path in files_of(given.models or [CASES]):
        with tempfile.TemporaryDirectory() as folder:
            one = walk.Walk(os.path.abspath(given.graft), path, folder, numbers(given.dim),
                            given.set, numbers(given.top))
            row = one.run()
        rows.append((name_of(path), row))
        if not walk.passes(row):
            failed.append(name_of(path))
    print(walk.table(rows))
    if not rows:
        sys.exit("no models")
    if failed:
        sys.exit(f"{len(failed)} of {len(rows)} do not pass: {', '.join(failed)}")


if __name__ == "__main__":
    main()
