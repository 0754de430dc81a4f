#!/usr/bin/env python3
"""Prints "N passed, N failed, N skipped" for one or more JUnit files written by ctest.

Before it stand the tests that failed, each with the end of what it wrote: where the whole log is not
kept, the end of it says what happened. Exits with 1 if a test failed, a file is missing, or none ran.
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter

LAST_LINES = 25


def outcome(case):
    """What became of a test. One that could not be started has failed."""
    if case.get("status") == "run":
        return "passed"
    skipped = case.find("skipped")
    reason = skipped.get("message", "") if skipped is not None else ""
    if case.get("status") == "disabled" or reason.startswith("SKIP_"):
        return "skipped"
    return "failed"


def print_failure(path, case):
    print(f"{case.get('name')} failed ({path}, {case.get('time', '?')} s):")
    for line in (case.findtext("system-out") or "").rstrip().splitlines()[-LAST_LINES:]:
        print(f"  {line[:200]}")


def main(paths):
    counts = Counter()
    missing = False
    for path in paths:
        try:
            cases = list(ElementTree.parse(path).getroot().iter("testcase"))
        except (OSError, ElementTree.ParseError) as error:
            print(f"count_tests: {path}: {error}", file=sys.stderr)
            missing = True
            continue
        for case in cases:
            counts[outcome(case)] += 1
            if outcome(case) == "failed":
                print_failure(path, case)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if missing or counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
