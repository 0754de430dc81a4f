"""Kernels for several sets of instructions in one program: no instruction of a higher set lies in
code of a lower one, and GRAFT_ISA chooses. A small library of tests/isa in every build; all of Graft
where the build is portable (GRAFT_NATIVE=OFF).

Arguments: the build folder, the graft command, cmake, the C++ compiler.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, GRAFT, CMAKE, COMPILER = Path(sys.argv[1]), *sys.argv[2:]
SOURCE = Path(__file__).resolve().parents[2]
# In copies of its own for each processor, as the compiler makes them: how fast the machine can be.
OWN_COPIES = "multiply_add"

# AVX and above; BMI, LZCNT, MOVBE, POPCNT; mask registers.
ABOVE_BASELINE = re.compile(
    r"\t(?:v(?!err|erw|m)[a-z0-9]+|andn|bextr|bls(?:i|r|msk)|rorx|s[ah][lr]x|shrx|mulx|pdep|pext"
    r"|lzcnt|movbe|popcnt|k[a-z]+[bwdq])(?:\s|$)")
ABOVE_AVX2 = re.compile(r"%zmm|%[xy]mm(?:1[6-9]|2\d|3[01])|%k[0-7]")


def run(*command, **options):
    """The output; fails with it."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(isa):
    return {**os.environ, "GRAFT_ISA": isa}


def functions_with(pattern, program, section):
    """Functions of the section with an instruction that the pattern finds, and such an instruction."""
    found = {}
    function = ""
    command = ["objdump", "-d", "-w", "--no-show-raw-insn", "--no-addresses", "-j", section, program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listing:
        for line in listing.stdout:
            if line.startswith("<"):
                function = line.strip("<>:\n")
            elif pattern.search(line):
                found.setdefault(function, line.strip())
    if listing.returncode != 0:
        raise AssertionError(f"{command}: exit {listing.returncode}")
    return found


def global_names(object_file):
    """Names that a linker joins with those of other objects."""
    lines = run("nm", "--defined-only", "--format=posix", object_file).splitlines()
    return [line.split()[0] for line in lines if line.split()[1] not in "abdrtin"]


def sections(file):
    return set(re.findall(r"^\s*\[\s*\d+\] (\S+)", run("readelf", "-SW", file), re.MULTILINE))


class Mixed(unittest.TestCase):
    """What holds of any program with several sets."""

    def check_program(self, program):
        wide = functions_with(ABOVE_BASELINE, program, ".text")
        self.assertEqual({name: line for name, line in wide.items() if OWN_COPIES not in name}, {})
        self.assertEqual(functions_with(ABOVE_AVX2, program, ".text_avx2"), {})
        self.assertNotEqual(functions_with(ABOVE_BASELINE, program, ".text_avx2"), {})
        self.assertNotEqual(functions_with(ABOVE_AVX2, program, ".text_avx512"), {})

    def check_object(self, isa, path):
        self.assertEqual(global_names(path), [f"graft_kernels_{isa}"])
        there = sections(path)
        # Code that runs when the program is loaded would run on any processor.
        self.assertEqual([s for s in there if re.match(r"\.(init_array|ctors|preinit)", s)], [])
        self.assertEqual([s for s in there if s.startswith(".text") and s != f".text_{isa}"], [])


class SmallLibrary(Mixed):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.build = Path(cls.folder.name)
        try:
            cls.configure_and_build()
        except AssertionError as error:
            if "this build has baseline" in str(error):  # and CMake has said why
                raise unittest.SkipTest(re.search("kernels for any .*", str(error))[0]) from error
            raise
        cls.program = cls.build / "program"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def configure_and_build(cls, early="OFF"):
        run(CMAKE, "-S", SOURCE / "tests/isa", "-B", cls.build, f"-DGRAFT_SOURCE={SOURCE}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}", "-DCMAKE_BUILD_TYPE=Release",
            f"-DWITH_EARLY_OBJECT={early}")
        run(CMAKE, "--build", cls.build)

    def test_sets_are_kept_apart(self):
        self.check_program(self.program)

    def test_what_would_run_when_the_program_is_loaded_is_refused(self):
        with self.assertRaisesRegex(AssertionError, "made when the program is loaded"):
            self.configure_and_build(early="ON")
        self.configure_and_build()

    def test_objects_show_one_name(self):
        for isa in ("avx2", "avx512"):
            self.check_object(isa, self.build / f"graft_kernels_{isa}.o")

    def test_what_is_not_called_falls_out(self):
        names = run("nm", "-C", self.build / "graft_kernels_avx512.o")
        self.assertIn("fill(", names)
        self.assertNotIn("never_called(", names)

    def test_all_compute_the_same_with_functions_of_their_own(self):
        expected = "last 2001, refused, calls 1, scale is"
        self.assertEqual(run(self.program, "baseline"), f"{expected} the program's\n")
        for isa in ("avx2", "avx512"):
            if cpu_runs(isa):
                self.assertEqual(run(self.program, isa), f"{expected} its own\n")


class Command(Mixed):
    """The graft command of this build."""

    @classmethod
    def setUpClass(cls):
        cls.findings = {f["name"]: f for f in map(json.loads, run(GRAFT, "doctor", "--json").splitlines())}
        cls.is_portable = "of baseline, avx2, avx512" in cls.findings["kernels"]["found"]

    def check_refusal(self, isa, *parts):
        done = subprocess.run([GRAFT, "devices"], env=environment(isa), capture_output=True,
                              text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        for part in (f"GRAFT_ISA is '{isa}'", *parts):
            self.assertIn(part, done.stderr)

    def test_a_name_that_is_none_is_refused(self):
        self.check_refusal("mmx", "this build has kernels for")

    def test_a_native_build_says_how_to_get_others(self):
        if "native" not in self.findings["kernels"]["found"]:
            self.skipTest("this build is for any processor")
        self.check_refusal("avx2", "native", "-DGRAFT_NATIVE=OFF")

    def test_sets_are_kept_apart(self):
        self.require_portable()
        self.check_program(GRAFT)
        for isa in ("avx2", "avx512"):
            self.check_object(isa, BUILD / f"core/ops/graft_kernels_{isa}.o")

    def test_each_trains(self):
        self.require_portable()
        for isa in ("baseline", "avx2", "avx512"):
            if not cpu_runs(isa):
                self.check_refusal(isa, "at most")
                continue
            devices = run(GRAFT, "devices", env=environment(isa))
            self.assertIn(f"kernels for {isa}, as GRAFT_ISA says", devices)
            run(GRAFT, "test", SOURCE / "tests/training_cases", env=environment(isa))

    def require_portable(self):
        if not self.is_portable:
            self.skipTest(f"this build has kernels for {self.findings['kernels']['found']}")


def cpu_runs(isa):
    flags = set(Path("/proc/cpuinfo").read_text().split("flags", 1)[-1].split("\n", 1)[0].split())
    wanted = {"baseline": set(), "avx2": {"avx2", "fma", "bmi2", "movbe", "f16c", "abm"}}
    wanted["avx512"] = wanted["avx2"] | {f"avx512{part}" for part in ("f", "bw", "cd", "dq", "vl")}
    return wanted[isa] <= flags


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
