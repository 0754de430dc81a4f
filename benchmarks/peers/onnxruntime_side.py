"""onnxruntime's side: onnxruntime_side.py FOLDER SECONDS THREADS prints one JSON line."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from models_onnxruntime import Onnxruntime  # noqa: E402: lies one folder up


def main():
    folder, seconds, threads = sys.argv[1:]
    print(json.dumps({"ms": Onnxruntime(pathlib.Path(folder), int(threads)).ms(float(seconds))}))


if __name__ == "__main__":
    main()
