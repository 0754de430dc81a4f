"""Graft by Conan 2, from the sources that this file lies in:

    scripts/setup
    conan create packaging/conan -o 'graft/*:prefix='"$PWD/third_party"

Third parties are the system's and those of the set-up, not Conan's: libonnx has a namespace of its own
there, and oneDNN's library is one whose threads Graft knows. What is installed holds them.
"""

import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy

# What the build reads; tests, examples and the Python package stay behind.
SOURCES = (
    "CMakeLists.txt", "LICENSE", "NOTICE", "CHANGELOG.md", "autograd/*", "cmake/*", "core/*",
    "data/*", "graft/*", "io/*", "optim/*", "scripts/sbom.py", "scripts/setup",
    "scripts/requirements*.txt", "tools/*", "train/*",
)


class Graft(ConanFile):
    name = "graft"
    package_type = "library"
    description = "Trains ONNX models in C++"
    license = "Apache-2.0"
    topics = ("onnx", "training", "machine-learning")
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "native": [True, False],  # for the CPU of this machine alone
        "tools": [True, False],  # the graft command
        "onednn": [True, False],
        "prefix": ["ANY"],  # what scripts/setup has filled
    }
    default_options = {
        "shared": False, "native": False, "tools": False, "onednn": True, "prefix": "",
    }

    @property
    def _root(self):
        return Path(self.recipe_folder).parents[1]

    def set_version(self):
        header = (self._root / "graft/version.h").read_text(encoding="utf-8")
        self.version = re.search(r'kVersion = "([\d.]+)"', header)[1]

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, self._root, self.export_sources_folder)

    def package_id(self):
        del self.info.options.prefix  # where a library lay does not tell what it was

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(f"Graft runs on Linux, not on {self.settings.os}")
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        variables = toolchain.cache_variables
        variables["GRAFT_NATIVE"] = bool(self.options.native)
        variables["GRAFT_UNITY"] = True
        variables["GRAFT_INSTALL"] = True
        variables["GRAFT_BUILD_TOOLS"] = bool(self.options.tools)
        variables["GRAFT_BUILD_TESTS"] = False
        variables["GRAFT_BUILD_EXAMPLES"] = False
        variables["GRAFT_WITH_ONEDNN"] = "ON" if self.options.onednn else "OFF"
        if self.options.prefix:
            variables["GRAFT_PREFIX"] = str(self.options.prefix)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # Graft's own package for CMake says what is linked, and in what order.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/graft"]
        self.cpp_info.libs = []
