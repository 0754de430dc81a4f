"""What programs get: Graft installed and moved elsewhere, by CMake and by pkg-config; Graft as a
subfolder, and from an archive of its sources; under a program whose own headers are named as
Graft's.

Arguments: the build folder, cmake, the C++ compiler.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

from calls import cached, run

BUILD, CMAKE, COMPILER = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
SOURCE = Path(__file__).resolve().parents[2]
PROGRAM = SOURCE / "tests/installed"
LIBRARIES = cached(BUILD, "GRAFT_PREFIX")
MOST_PUBLIC = 16
# graft/train.h stands in many files of a program: these are its own and private parts.
MOST_BEHIND_TRAIN = 30


def compile_alone(include, header):
    """The headers of Graft that it pulls in."""
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-H"]
    done = subprocess.run(
        [COMPILER, *flags, "-I", include, "-x", "c++", "-"],
        input=f"#include <{header}>\n", capture_output=True, text=True, check=False,
    )
    if done.returncode != 0:
        raise AssertionError(f"<{header}> does not compile alone:\n{done.stderr}")
    return set(re.findall(rf"^\.+ {re.escape(str(include))}/(\S+)$", done.stderr, re.MULTILINE))


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = Path(cls.folder.name) / "moved here"
        first = Path(cls.folder.name) / "prefix"
        run(CMAKE, "--install", BUILD, "--prefix", first)
        first.rename(cls.prefix)
        cls.include = cls.prefix / "include"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def build_folder(self, name):
        return Path(self.folder.name) / name

    def configure(self, name, *settings):
        """The program's build folder."""
        build = self.build_folder(name)
        self.output = run(CMAKE, "-S", PROGRAM, "-B", build, f"-DCMAKE_CXX_COMPILER={COMPILER}",
                          "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *settings)
        return build

    def test_a_program_builds_and_runs(self):
        build = self.configure("program", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                               "-DCMAKE_BUILD_TYPE=Debug", "-DGRAFT_COMPONENTS=train",
                               "-DGRAFT_TARGET=graft::train")
        run(CMAKE, "--build", build)
        self.assertIn("24 logits", run(build / "own_program", build / "net.onnx"))

    def test_a_component_that_is_not_there_is_refused(self):
        with self.assertRaisesRegex(AssertionError, "cooking"):
            self.configure("component", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                           "-DGRAFT_COMPONENTS=inference;cooking")

    def test_a_program_builds_by_pkg_config(self):
        # What pkg-config prints is for a shell, but for spaces in the prefix.
        prefix = Path(self.folder.name) / "without-spaces"
        prefix.symlink_to(self.prefix)
        flags = run("pkg-config", "--cflags", "--libs", "graft",
                    env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")})
        program = self.build_folder("by_pkg_config")
        run(COMPILER, "-std=c++20", PROGRAM / "main.cpp", "-I", PROGRAM, "-o", program,
            *shlex.split(flags))
        self.assertIn("24 logits", run(program, f"{program}.onnx"))

    def test_the_command_runs_without_what_it_was_built_in(self):
        graft = self.prefix / "bin/graft"
        self.assertIn("cpu", run(graft, "devices", env={}))
        loaded = dict(re.findall(r"^\s*(\S+)(?: => (\S.*?))? \(0x", run("ldd", graft), re.MULTILINE))
        self.assertEqual(Path(loaded.pop("libdnnl.so.3", self.prefix)).parts[:4],
                         self.prefix.parts[:4])
        basic = r"(linux-vdso|lib(c|m|dl|pthread|gcc_s|stdc\+\+)|.*/ld-linux[^/]*)\.so(\.\d+)?"
        self.assertEqual([name for name in loaded if not re.fullmatch(basic, name)], [])

    def test_man_and_shells_find_what_they_look_for(self):
        share = self.prefix / "share"
        page = (share / "man/man1/graft.1").read_text()
        self.assertTrue(page.startswith(".TH GRAFT 1 "), page[:100])
        for name in ("bash-completion/completions/graft", "zsh/site-functions/_graft",
                     "fish/vendor_completions.d/graft.fish"):
            self.assertIn("export-step", (share / name).read_text())

    def test_a_package_holds_what_is_installed(self):
        packages = self.build_folder("packages")
        run(Path(CMAKE).parent / "cpack", "-G", "TGZ", "-B", packages, "-D", "CPACK_STRIP_FILES=OFF",
            "-D", "CPACK_INSTALL_CMAKE_PROJECTS=",
            "-D", f"CPACK_INSTALLED_DIRECTORIES={self.prefix};.", cwd=BUILD)
        (package,) = packages.glob("graft-*.tar.gz")
        with tarfile.open(package) as tar:
            tar.extractall(packages)
        graft = packages / package.name.removesuffix(".tar.gz") / "bin/graft"
        self.assertIn(run(graft, "--version").split()[-1].strip(), package.name)

    def test_no_file_for_builds_names_a_folder_of_this_machine(self):
        files = [p for p in self.prefix.rglob("*") if p.suffix in {".cmake", ".pc"}]
        self.assertGreater(len(files), 3)
        for path in files:
            for folder in (SOURCE, BUILD, LIBRARIES):
                self.assertNotIn(str(folder), path.read_text(), path)

    def test_licences_come_along(self):
        notice = (self.prefix / "share/doc/graft/NOTICE").read_text()
        for name in ("oneDNN", "ONNX", "Protocol", "RE2", "Eigen", "zlib", "CLI11", "The MIT licence"):
            self.assertIn(name, notice)

    def check_command(self, build):
        """The program compiles, and sees of Graft what is public."""
        commands = json.loads((build / "compile_commands.json").read_text())
        own = next(c for c in commands if c["file"] == str(PROGRAM / "main.cpp"))
        run(*shlex.split(own["command"]), "-fsyntax-only", cwd=own["directory"])
        folders = re.findall(r"-(?:I|isystem) ?(\S+)", own["command"])
        self.assertEqual(folders[0], str(PROGRAM))
        self.assertEqual(len(folders), 2)
        self.assertEqual([p.name for p in Path(folders[1]).iterdir()], ["graft"])
        return commands

    def test_a_program_sees_no_more_of_a_subfolder(self):
        for target in ("graft::graft", "graft::train", "graft::inference"):
            build = self.configure(target.replace(":", "_"), f"-DGRAFT_SOURCE={SOURCE}",
                                   f"-DGRAFT_PREFIX={LIBRARIES}",
                                   f"-DGRAFT_TARGET={target}")
            self.check_command(build)

    def test_sources_from_an_archive_are_optimised_where_the_parent_says_nothing(self):
        archive = self.build_folder("graft.tar.gz")
        names = run("git", "-C", SOURCE, "ls-files", "--cached", "--others", "--exclude-standard")
        with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
            for name in names.splitlines():
                if (SOURCE / name).exists() and not name.startswith(("tests/", ".ci/")):
                    tar.add(SOURCE / name, f"graft/{name}")
        build = self.configure("archive", f"-DGRAFT_ARCHIVE={archive}",
                               f"-DGRAFT_PREFIX={LIBRARIES}", "-DCMAKE_BUILD_TYPE=")
        self.assertIn("no CMAKE_BUILD_TYPE", self.output)
        commands = self.check_command(build)
        kernels = [c["command"] for c in commands if c["file"].endswith("_cpu.cpp")]
        self.assertGreater(len(kernels), 30)
        for command in kernels:
            self.assertRegex(command, r" -O2 ")
            self.assertNotIn("-march=native", command)

    def test_without_onednn_what_stands_for_it_is_compiled(self):
        build = self.configure("without_onednn", f"-DGRAFT_SOURCE={SOURCE}",
                               f"-DGRAFT_PREFIX={LIBRARIES}", "-DGRAFT_WITH_ONEDNN=OFF")
        files = [Path(c["file"]).name for c in self.check_command(build)]
        self.assertEqual([name for name in files if "onednn" in name], ["no_onednn.cpp"])

    def test_only_the_name_graft_is_taken(self):
        self.assertEqual([p.name for p in self.include.iterdir()], ["graft"])
        folders = [p.name for p in (self.include / "graft").iterdir() if p.is_dir()]
        self.assertEqual(folders, ["detail"])
        for path in self.include.rglob("*"):
            self.assertTrue(path.is_dir() or path.suffix == ".h", path)
            self.assertNotIn("internal", path.name)

    def test_public_headers_are_few_and_each_compiles_alone(self):
        public = sorted(p.name for p in (self.include / "graft").glob("*.h"))
        self.assertLessEqual(len(public), MOST_PUBLIC)
        self.assertEqual(public, sorted(p.name for p in (SOURCE / "graft").glob("*.h")))
        needed = {f"graft/{name}" for name in public}
        for name in public:
            with self.subTest(header=name):
                needed |= compile_alone(self.include, f"graft/{name}")
        there = {str(p.relative_to(self.include)) for p in self.include.rglob("*.h")}
        self.assertEqual(there, needed)

    def test_graft_h_includes_all_others(self):
        public = {f"graft/{p.name}" for p in (self.include / "graft").glob("*.h")}
        behind = compile_alone(self.include, "graft/graft.h") | {"graft/graft.h"}
        self.assertEqual(public - behind, set())

    def test_training_pulls_in_little(self):
        behind = compile_alone(self.include, "graft/train.h")
        self.assertLessEqual(len(behind), MOST_BEHIND_TRAIN, sorted(behind))
        self.assertNotIn("graft/detail/core/graph/graph.h", behind)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
