#!/usr/bin/env python3
"""Prints "N passed, N failed, N skipped" for one or more JUnit files written by ctest.

Exits with 1 if a test failed, a file is missing, or none ran.
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter


def outcome(case):
    """What became of a test. One that could not be started has failed."""
    if case.get("status") == "run":
        return "passed"
    skipped = case.find("skipped")
    reason = skipped.get("message", "") if skipped is not None else ""
    if case.get("status") == "disabled" or reason.startswith("SKIP_"):
        return "skipped"
    return "failed"


def main(paths):
    counts = Counter()
    missing = False
    for path in paths:
        try:
            cases = ElementTree.parse(path).getroot().iter("testcase")
        except (OSError, ElementTree.ParseError) as error:
            print(f"count_tests: {path}: {error}", file=sys.stderr)
            missing = True
            continue
        counts.update(outcome(case) for case in cases)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if missing or counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
