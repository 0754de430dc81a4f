"""What cmake/onednn_threads.py makes of a library, by GCC, and what it refuses to copy, and how it
says so. What it makes of oneDNN every test runs on."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from calls import run

SCRIPT = Path(__file__).resolve().parents[2] / "cmake/onednn_threads.py"

LIBRARY = """
#include <omp.h>
#include <cmath>
#include <cstdlib>
extern "C" double answer(double of) {
  omp_set_num_threads(3);
  double sum = omp_get_max_threads() + omp_in_parallel();
  #pragma omp parallel
  {
    sum += omp_get_thread_num() + omp_get_num_threads();
    #pragma omp barrier
  }
  return sum + SMALL(of) + std::strtod("0", nullptr);
}
"""
# Threads that tell by their numbers that they were asked.
PROGRAM = """
int threads_set = 0;
extern "C" {
int gft_get_max_threads() { return 1; }
int gft_in_parallel() { return 20; }
int gft_get_num_threads() { return 300; }
int gft_get_thread_num() { return 4000; }
void gft_set_num_threads(int count) { threads_set = count; }
void GRFT_parallel(void (*fn)(void*), void* data, unsigned, unsigned) { fn(data); }
void GRFT_barrier() {}
double answer(double of);
}
int main() { return int(answer(1e-9)) == 4321 && threads_set == 3 ? 0 : 1; }
"""


class OnednnThreads(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.copy = self.folder / "copy.so"

    def refuse(self, source, message):
        done = subprocess.run([sys.executable, SCRIPT, source, self.copy],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, f"{source}: {message}\n"))
        self.assertFalse(self.copy.exists())

    def library(self, text, *options):
        source, library = self.folder / "library.cpp", self.folder / "library.so"
        source.write_text(text)
        run("g++", "-O2", "-fPIC", "-shared", "-fopenmp", *options, source, "-o", library)
        return library

    def test_a_copy_calls_other_names_and_needs_no_libgomp(self):
        # Versions of libgomp stand behind those of libm, or first.
        for place, function in (("behind", "std::expm1"), ("first", "double")):
            with self.subTest(place):
                library = self.library(LIBRARY, f"-DSMALL={function}")
                needs = re.findall(r"Version: 1  File: (\S+)", run("readelf", "-V", library))
                self.assertEqual(needs.index("libgomp.so.1") == 0, place == "first", needs)
                run(sys.executable, SCRIPT, library, self.copy)
                shown = run("readelf", "--wide", "--dynamic", "--dyn-syms", "-V", self.copy)
                self.assertNotRegex(shown, r"libgomp|GOMP_|\bomp_")
                source, program = self.folder / "program.cpp", self.folder / "program"
                source.write_text(PROGRAM)
                run("g++", source, self.copy, "-rdynamic", "-o", program)
                run(program)

    def test_what_is_no_library(self):
        self.refuse(SCRIPT, "not a 64-bit little-endian ELF file")

    def test_a_library_without_openmp(self):
        libc = re.search(r"\S+/libc\.so\.6", Path("/proc/self/maps").read_text())[0]
        self.refuse(libc, "it does not call libgomp; wanted is an OpenMP build by GCC")

    def test_a_library_that_calls_what_graft_has_not(self):
        library = self.library("#include <omp.h>\ndouble now() { return omp_get_wtime(); }")
        self.refuse(library, "it calls omp_get_wtime, which Graft has not")


if __name__ == "__main__":
    unittest.main()
