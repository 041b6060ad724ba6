#!/usr/bin/env python3
"""count_tests.py RESULTS: sums up ctest's JUnit file in one line, `N passed, N failed`; a skipped test is neither.

Exits 1 if a test failed or none was run.
"""

import sys
import xml.etree.ElementTree


def main() -> int:
    try:
        suite = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        print(f"ctest left no results: {error}\n0 passed, 1 failed")
        return 1
    total, failed, skipped, disabled = (
        int(suite.get(key, "0")) for key in ("tests", "failures", "skipped", "disabled"))
    if skipped + disabled:
        print(f"{skipped + disabled} skipped")
    if not total:
        print("no test was run")
    print(f"{total - failed - skipped - disabled} passed, {failed} failed")
    return 0 if total and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
