"""packaging/: what the vcpkg port and the Conan recipe say of Graft is so. vcpkg and Conan themselves are
not needed: the port runs with stand-ins for vcpkg's functions, and what the recipe exports is configured
with the settings that it names.

Arguments: the build folder, cmake, the C++ compiler.
"""

import ast
import json
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from calls import cached, run

BUILD, CMAKE, COMPILER = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
ROOT = Path(__file__).resolve().parents[2]
PORT = ROOT / "packaging/vcpkg/graft"
RECIPE = ROOT / "packaging/conan/conanfile.py"

# Those functions of vcpkg that the port calls; configuring is real, the rest says what it is given.
STAND_INS = r"""
cmake_minimum_required(VERSION 3.25)
function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
  list(GET arg_FEATURES 1 option)
  set(${arg_OUT_FEATURE_OPTIONS} "-D${option}=OFF" PARENT_SCOPE)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${WORK}/build" ${arg_OPTIONS}
                  "-DGRAFT_PREFIX=${LIBRARIES}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
                  COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(INSTALL ${arg_FILE_LIST} DESTINATION "${WORK}/copyright")
endfunction()
function(vcpkg_cmake_config_fixup)
  message(STATUS "config: ${ARGN}")
endfunction()
function(vcpkg_cmake_install)
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
"""


class Packaging(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)

    def check_that_all_settings_are_known(self):
        cache = (self.work / "build/CMakeCache.txt").read_text()
        self.assertEqual(re.findall(r"^GRAFT_\w+:UNINITIALIZED.*", cache, re.MULTILINE), [])

    def test_the_port_has_the_version_of_the_header(self):
        header = (ROOT / "graft/version.h").read_text()
        version = re.search(r'kVersion = "([\d.]+)"', header)[1]
        self.assertEqual(json.loads((PORT / "vcpkg.json").read_text())["version"], version)

    def test_the_port_configures_and_names_what_is_there(self):
        stand_ins = self.work / "stand_ins.cmake"
        stand_ins.write_text(f'{STAND_INS}\ninclude("{PORT / "portfile.cmake"}")\n')
        output = run(CMAKE, f"-DWORK={self.work}", f"-DCOMPILER={COMPILER}",
                     f"-DCURRENT_PACKAGES_DIR={self.work / 'packages'}", "-DPORT=graft",
                     f"-DLIBRARIES={cached(BUILD, 'GRAFT_PREFIX')}", "-P", stand_ins)
        self.check_that_all_settings_are_known()
        folder = re.search(r"config: CONFIG_PATH;?(\S+)", output)[1]
        install = (self.work / "build/cmake_install.cmake").read_text()
        self.assertIn(f"/{folder}\"", install)
        self.assertTrue((self.work / "packages/share/graft/usage").exists())
        self.assertTrue((self.work / "copyright/NOTICE").exists())

    def test_what_the_recipe_exports_configures(self):
        tree = ast.parse(RECIPE.read_text())
        (patterns,) = [ast.literal_eval(node.value) for node in tree.body
                       if isinstance(node, ast.Assign) and node.targets[0].id == "SOURCES"]
        for pattern in patterns:
            found = [p for p in ROOT.glob(pattern.replace("/*", "/**/*")) if p.is_file()]
            self.assertTrue(found, pattern)
            for path in found:
                copy = self.work / "sources" / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)
        names = re.findall(r'variables\["(\w+)"\]', RECIPE.read_text())
        self.assertGreater(len(names), 6)
        options = [f"-D{name}=OFF" for name in names if name != "GRAFT_PREFIX"]
        run(CMAKE, "-S", self.work / "sources", "-B", self.work / "build",
            f"-DCMAKE_CXX_COMPILER={COMPILER}", *options,
            f"-DGRAFT_PREFIX={cached(BUILD, 'GRAFT_PREFIX')}")
        self.check_that_all_settings_are_known()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
