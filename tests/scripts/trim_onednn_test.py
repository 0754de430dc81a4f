"""scripts/trim_onednn.py: what it refuses, and what its copy of oneDNN does and does no more. That the
copy computes as before all other tests show, which run on it. Exits with 77 (skipped) where the set-up
left no copy.

Arguments: a program linked with Graft, the folder of the set-up.
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/trim_onednn.py"
PROGRAM, COPY = sys.argv[1], Path(sys.argv[2], "onednn/libdnnl.so.3")


def called():
    names = re.search('CALLED = """(.*?)"""', SCRIPT.read_text(), re.S)[1]
    return {"dnnl_" + name for name in names.split()}


def imported(program):
    lines = subprocess.run(["nm", "-D", "--undefined-only", program], capture_output=True, text=True,
                           check=True).stdout  # fmt: skip
    return set(re.findall(r"\bdnnl_\w+", lines))


class Refusals(unittest.TestCase):
    def refuse(self, source, message):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, SCRIPT, source, Path(folder, "copy.so")],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (1, f"{source}: {message}\n"))
            self.assertEqual(list(Path(folder).iterdir()), [])

    def test_what_is_no_library(self):
        self.refuse(SCRIPT, "not a 64-bit little-endian ELF file")

    def test_a_stripped_library(self):
        self.refuse(COPY, "it is stripped, and without .symtab its functions are not known")


class Copy(unittest.TestCase):
    def test_the_list_names_what_graft_calls(self):
        self.assertEqual(called(), imported(PROGRAM))

    def link(self, function):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(
                ["c++", "-x", "c++", "-", "-o", Path(folder, "program"), "-x", "none", COPY],
                input=f'extern "C" int {function}(); int main() {{ return {function}(); }}',
                capture_output=True, text=True, check=False)  # fmt: skip

    def test_a_program_cannot_link_what_fell_out(self):
        self.assertEqual(self.link("dnnl_version").returncode, 0)
        self.assertIn("dnnl_eltwise_forward_primitive_desc_create",
                      self.link("dnnl_eltwise_forward_primitive_desc_create").stderr)  # fmt: skip

    def test_half_of_its_bytes_are_traps(self):
        data = COPY.read_bytes()
        self.assertGreater(data.count(b"\xcc" * 16) * 16, len(data) / 2)


if __name__ == "__main__":
    if not COPY.exists():
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
