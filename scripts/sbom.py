#!/usr/bin/env python3
"""Writes what a build of Graft is made of, as SPDX 2.3 (JSON): scripts/sbom.py BUILD [OUT].

The versions are those that the build used: of libraries of the system, what dpkg says of the package
that has the file; of libonnx, what scripts/setup pins; of oneDNN, if it is part of the build, what
CMake found. Two runs over one build give the same bytes: the time is that of the commit, or
SOURCE_DATE_EPOCH.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Name, licence (SPDX), home, Debian package. All of them go with Apache-2.0; what is under MPL-2.0 is
# used unchanged.
SYSTEM = [
    ("protobuf", "BSD-3-Clause", "https://github.com/protocolbuffers/protobuf", "libprotobuf-dev"),
    ("eigen", "MPL-2.0", "https://eigen.tuxfamily.org", "libeigen3-dev"),
    ("nlohmann-json", "MIT", "https://github.com/nlohmann/json", "nlohmann-json3-dev"),
    ("cli11", "BSD-3-Clause", "https://github.com/CLIUtils/CLI11", "libcli11-dev"),
    ("zlib", "Zlib", "https://zlib.net", "zlib1g-dev"),
    ("re2", "BSD-3-Clause", "https://github.com/google/re2", "libre2-dev"),
]
ONNX = ("onnx", "Apache-2.0", "https://github.com/onnx/onnx")
ONEDNN = ("oneDNN", "Apache-2.0", "https://github.com/oneapi-src/oneDNN")


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return result.stdout.strip() if result.returncode == 0 else ""


def version():
    return re.search(r'kVersion = "([^"]+)"', (ROOT / "graft/version.h").read_text())[1]


def pin(file, pattern):
    """The first group of the pattern in a file of scripts/."""
    return re.search(pattern, (ROOT / "scripts" / file).read_text(), re.MULTILINE)[1]


def time_of_build():
    seconds = os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct") or "0"
    return datetime.fromtimestamp(int(seconds), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def package(name, licence, home, number, sha256=None, source=None):
    entry = {
        "SPDXID": "SPDXRef-" + name,
        "name": name,
        "versionInfo": number,
        "downloadLocation": home,
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
    }
    if sha256:
        entry["checksums"] = [{"algorithm": "SHA256", "checksumValue": sha256}]
    if source:
        entry["sourceInfo"] = source
    return entry


def cached(build, name):
    """An entry of the build folder's CMakeCache.txt, or nothing."""
    file = build / "CMakeCache.txt"
    text = file.read_text() if file.is_file() else ""
    entry = re.search(rf"^{name}:\w+=(.*)$", text, re.MULTILINE)
    return entry[1] if entry else ""


def onednn(build):
    """As scripts/setup --onednn built it, or of the wheel, or another that CMake found."""
    folder, prefix = Path(cached(build, "dnnl_DIR")), Path(cached(build, "GRAFT_PREFIX"))
    text = (folder / "dnnl-config-version.cmake").read_text()
    number = re.search(r'PACKAGE_VERSION "([^"]+)"', text)[1]
    if folder.is_relative_to(prefix / "onednn"):
        sha256 = pin("setup", r"^readonly onednn_sha256=(\S+)")
        return package(*ONEDNN, number, sha256, "built from Debian's archive of the source")
    if folder.is_relative_to(prefix / "python"):
        file = "requirements-onednn.txt"
        wheel = pin(file, r"^(onednn-cpu-gomp==\S+)")
        sha256 = pin(file, r"^onednn-cpu-gomp.*\n.*sha256:(\w+)")
        return package(*ONEDNN, number, sha256, f"wheel {wheel} of PyPI")
    return package(*ONEDNN, number)


def packages(build):
    """Graft first, then what it holds."""
    program = build / "graft"
    digest = hashlib.sha256(program.read_bytes()).hexdigest() if program.is_file() else None
    entries = [package("graft", "Apache-2.0", "NOASSERTION", version(), digest)]
    for name, licence, home, debian in SYSTEM:
        number = run("dpkg-query", "-W", "-f=${Version}", debian)
        entries.append(package(name, licence, home, number or "NOASSERTION"))
    onnx = pin("setup", r"^readonly onnx_version=(\S+)")
    entries.append(package(*ONNX, onnx, pin("setup", r"^readonly onnx_sha256=(\S+)")))
    if cached(build, "GRAFT_ONEDNN_COPIED"):
        entries.append(onednn(build))
    return entries


def document(build):
    entries = packages(build)
    content = hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"graft-{version()}",
        "documentNamespace": f"urn:graft:sbom:{content}",
        "creationInfo": {"created": time_of_build(), "creators": ["Tool: scripts/sbom.py"]},
        "documentDescribes": ["SPDXRef-graft"],
        "packages": entries,
        "relationships": [
            {
                "spdxElementId": "SPDXRef-graft",
                "relationshipType": "DEPENDS_ON",
                "relatedSpdxElement": entry["SPDXID"],
            }
            for entry in entries[1:]
        ],
    }


def main(arguments):
    if not 1 <= len(arguments) <= 2:
        sys.exit("usage: scripts/sbom.py BUILD [OUT]")
    text = json.dumps(document(Path(arguments[0])), indent=2) + "\n"
    if len(arguments) == 2:
        Path(arguments[1]).write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
