"""A build without CUDA holds nothing of it but an empty list of cards, and loads none of its
libraries.

Argument: the graft command.
"""

import subprocess
import sys
import unittest

GRAFT = sys.argv.pop()
LIST = {"graft::cuda_devices()", "graft::why_no_cuda[abi:cxx11]()", "graft::why_no_cuda()"}


def names(text):
    return {line.split(" ", 2)[-1] for line in text.splitlines()
            if any(word in line.lower() for word in ("cuda", "cudnn", "cublas"))}


class NoCuda(unittest.TestCase):
    def run_tool(self, *command):
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def test_the_list_of_cards_is_all(self):
        found = names(self.run_tool("nm", "-C", "--defined-only", GRAFT))
        found = {name.split(" ", 1)[-1].removesuffix(" [clone .cold]") for name in found}
        self.assertEqual(found - LIST, set())
        self.assertIn("graft::cuda_devices()", found, "symbols are there")

    def test_no_library_is_needed(self):
        self.assertEqual(names(self.run_tool("readelf", "-d", GRAFT)), set())


if __name__ == "__main__":
    unittest.main()
