"""Every block of docs/recipes.md, on small data that are made here.

Usage: recipes_test.py GRAFT. Blocks run in the order of the page, in one folder; what is trained for
several epochs must have a lower loss in the last than in the first, and ONNX's checker must take
what comes out. The recipe for a pretrained file is skipped where ../shared/models lacks it. Fails
where onnx is not installed, unless GRAFT_OFFLINE is set: then it exits with 77 (skipped).
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from needed import needed

with needed():
    import numpy as np
    import onnx

GRAFT = os.path.abspath(sys.argv.pop(1))
ROOT = pathlib.Path(__file__).resolve().parents[2]
PRETRAINED = ROOT.parent / "shared/models/efficientnet_lite0_imagenet_ts13/model.onnx"
RANDOM = np.random.default_rng(5)


def noise(*shape):
    return RANDOM.standard_normal(shape, dtype=np.float32)


def write_cifar(folder):
    """Images whose brightness is their class."""
    folder.mkdir()
    labels = np.arange(16, dtype=np.uint8) % 10
    pixels = np.clip(labels[:, None] * 25 + RANDOM.integers(0, 20, (16, 3072)), 0, 255)
    records = np.concatenate([labels[:, None], pixels.astype(np.uint8)], 1).tobytes()
    for name in ("data_batch_1.bin", "test_batch.bin"):
        (folder / name).write_bytes(records)


def write_data(folder):
    """What the page says of each file, so that it can be learned."""
    texts = -np.ones((16, 4), np.int64)
    lines = 0.1 * noise(16, 1, 32, 64)
    for i, text in enumerate(texts):
        text[:i % 3 + 2] = RANDOM.integers(1, 11, i % 3 + 2)
        for place, letter in enumerate(text[text > 0]):
            lines[i, 0, 2 * letter:2 * letter + 8, 16 * place:16 * place + 12] += 1
    np.savez(folder / "lines.npz", image=lines, target=texts)

    people = np.arange(24) % 6
    faces = noise(6, 3, 32, 32)[people] + 0.3 * noise(24, 3, 32, 32)
    np.savez(folder / "people.npz", image=faces, target=people)

    tokens = RANDOM.integers(5, 100, (64, 16))
    start = RANDOM.integers(0, 13, 64)
    tokens[np.arange(64), start] = 1
    tokens[np.arange(64), start + 2] = 2
    np.savez(folder / "answers.npz", tokens=tokens, target_start=start, target_end=start + 2)

    masks = RANDOM.integers(0, 3, (8, 4, 4)).repeat(8, 1).repeat(8, 2)
    images = masks[:, None] - 1.0 + 0.1 * noise(8, 3, 32, 32)
    masks[:, :2] = 255
    np.savez(folder / "masks.npz", image=images.astype(np.float32), target=masks)

    text = (np.arange(17) * 5 + RANDOM.integers(0, 12, (64, 1))) % 12
    np.savez(folder / "text.npz", tokens=text[:, :-1], target=text[:, 1:])
    np.save(folder / "image.npy", noise(32, 1, 28, 28))


def recipes():
    """Title and blocks of each section of the page."""
    page = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
    for section in page.split("\n## ")[1:]:
        title = section.splitlines()[0]
        blocks = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
        if blocks:
            yield title, blocks


class Recipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)
        write_cifar(cls.folder / "cifar")
        write_data(cls.folder)
        (cls.folder / "bin").mkdir()
        (cls.folder / "bin" / "graft").symlink_to(GRAFT)
        cls.environment = os.environ | {"PATH": f"{cls.folder}/bin:{os.environ['PATH']}",
                                        "GRAFT_TRAIN_JSON": "1", "GRAFT_TRAIN_NO_RUN": "1"}

    def run_block(self, block, **environment):
        done = subprocess.run(["sh", "-e", "-c", block], cwd=self.folder, capture_output=True, text=True,
                              env=self.environment | environment)
        self.assertEqual(done.returncode, 0, f"{block}\n{done.stderr[-2000:]}")
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        losses = [line["loss"] for line in lines if "epoch" in line and "loss" in line]
        if len(losses) > 1:
            self.assertLess(losses[-1], losses[0], block)
        for name in re.findall(r"--out (\S+\.onnx)", block):
            onnx.checker.check_model(str(self.folder / name))

    def test_every_block(self):
        found = dict(recipes())
        self.assertGreaterEqual(len(found), 8)
        for title, blocks in found.items():
            for block in blocks:
                with self.subTest(recipe=title):
                    if "efficientnet.onnx" in block and not PRETRAINED.exists():
                        self.skipTest(f"{PRETRAINED} is not there")
                    if "efficientnet.onnx" in block:
                        shutil.copy(PRETRAINED, self.folder / "efficientnet.onnx")
                    if "teacher.onnx" in block:
                        self.run_block("graft new mlp --input 1x28x28 --out teacher.onnx")
                    limit = {"GRAFT_LIMIT": "8"} if "cifar10:" in block else {}
                    self.run_block(block, **limit)


if __name__ == "__main__":
    unittest.main()
