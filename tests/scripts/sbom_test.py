"""What scripts/sbom.py says a build is made of: valid SPDX, all libraries, licences that go together.

Argument: the build folder.
"""

import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

from calls import cached

ROOT = Path(__file__).resolve().parents[2]
BUILD = sys.argv[1]
ONEDNN = cached(Path(BUILD), "GRAFT_ONEDNN_COPIED")

# What goes into a work under Apache-2.0 and leaves that one as it is.
COMPATIBLE = {"Apache-2.0", "BSD-3-Clause", "MIT", "MPL-2.0", "Zlib"}
# What find_package looks for, by the names of the document; None is part of no program.
NAMES = {
    "Eigen3": "eigen", "nlohmann_json": "nlohmann-json", "CLI11": "cli11", "ZLIB": "zlib",
    "Protobuf": "protobuf", "ONNX": "onnx", "dnnl": "oneDNN", "RE2": "re2",
    "re2": "re2", "GTest": None, "benchmark": None, "Threads": None, "PkgConfig": None,
    "Python3": None, "CUDAToolkit": None, "MPI": None,
}


def sbom():
    script = ROOT / "scripts/sbom.py"
    result = subprocess.run([script, BUILD], check=True, capture_output=True, text=True)
    return result.stdout


class Sbom(unittest.TestCase):
    def setUp(self):
        self.document = json.loads(sbom())
        self.packages = {p["name"]: p for p in self.document["packages"]}

    def test_has_the_fields_that_spdx_wants(self):
        self.assertEqual(self.document["spdxVersion"], "SPDX-2.3")
        self.assertEqual(self.document["dataLicense"], "CC0-1.0")
        self.assertRegex(self.document["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT[\d:]{8}Z$")
        ids = [p["SPDXID"] for p in self.document["packages"]]
        self.assertEqual(len(ids), len(set(ids)))
        for identifier in ids:
            self.assertRegex(identifier, r"^SPDXRef-[A-Za-z0-9.-]+$")
        for relation in self.document["relationships"]:
            self.assertIn(relation["relatedSpdxElement"], ids)

    def test_names_every_library_that_the_build_looks_for(self):
        text = "".join(p.read_text() for p in sorted((ROOT / "cmake").glob("*.cmake")))
        text = re.sub(r"#.*", "", text)
        for name in set(re.findall(r"find_package\((\w+)", text)):
            with self.subTest(library=name):
                self.assertIn(name, NAMES, "say in sbom.py and here what it is")
                if NAMES[name] and (name != "dnnl" or ONEDNN):
                    self.assertIn(NAMES[name], self.packages)

    def test_licences_go_together_and_versions_are_known(self):
        for name, package in self.packages.items():
            with self.subTest(library=name):
                self.assertIn(package["licenseConcluded"], COMPATIBLE)
                self.assertRegex(package["versionInfo"], r"\d")

    def test_what_is_downloaded_has_its_hash(self):
        for name in ("onnx", "graft", *["oneDNN"] * bool(ONEDNN)):
            digest = self.packages[name]["checksums"][0]["checksumValue"]
            self.assertRegex(digest, r"^[0-9a-f]{64}$")

    def test_onednn_is_that_of_the_build(self):
        if not ONEDNN:
            self.assertNotIn("oneDNN", self.packages)
            return
        there = re.search(r"\.so\.(\d+\.\d+)$", str(Path(ONEDNN).resolve()))[1]
        self.assertRegex(self.packages["oneDNN"]["versionInfo"], rf"^{re.escape(there)}\.")
        is_built = ONEDNN.startswith(cached(Path(BUILD), "GRAFT_PREFIX") + "/onednn/")
        source = self.packages["oneDNN"]["sourceInfo"]
        self.assertEqual(source.startswith("built from"), is_built, source)

    def test_two_runs_give_the_same_bytes(self):
        self.assertEqual(sbom(), sbom())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
