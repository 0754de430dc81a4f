"""Writes vectors/OP.json: what PyTorch and NumPy get where Graft has an op of its own, and
awkward/OP.json: what they get of ordinary ops where few look.

Usage: make_vectors.py [FOLDER]. Needs torch 2.15 and numpy. The numbers are f32, the arithmetic is
f64; the same script gives the same files. oracles_test holds every kernel against them.
"""
import os
import sys

import awkward
import elementwise
import norms
import recurrent
import updates
import vectors
import windows


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    for module in (elementwise, norms, recurrent, updates, windows):
        module.add()
    folder = sys.argv[1] if len(sys.argv) > 1 else here
    size = vectors.write_all(os.path.join(folder, "vectors"))
    awkward.add()
    size += vectors.write_all(os.path.join(folder, "awkward"))
    print(f"{size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
