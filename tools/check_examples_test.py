#!/usr/bin/env python3
"""An example that no test has is found; one that a test has word for word is not."""

import pathlib
import tempfile
import unittest

import check_examples

HEADER = """// Box: a box.
//
// Example:
//   Box box(3);
//   if (box.size() > 2)
//     use(box);
// What follows is no part of it.
#pragma once
"""


class Examples(unittest.TestCase):
    def wrong(self, header: str, test: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "base").mkdir()
            (root / "base/box.h").write_text(header)
            (root / "base/box_test.cc").write_text(test)
            return check_examples.check(root)

    def test_one_that_is_compiled(self):
        self.assertEqual(self.wrong(HEADER, "int f() {\n    Box box(3);\n    if (box.size() > 2)\n      use(box);\n}\n"), [])
        self.assertEqual(self.wrong("// Box: a box, for example.\n", ""), [])

    def test_one_that_differs(self):
        for test in ("", "Box box(4);\nif (box.size() > 2)\nuse(box);\n", "Box box(3);\nif (box.size() > 2)\n\nuse(box);\n"):
            (line,) = self.wrong(HEADER, test)
            self.assertTrue(line.startswith("base/box.h:3: no *_test.cc in base has"), line)

    def test_one_within_a_class(self):
        header = "struct Box {\n  /// Example:\n  ///   box.open();\n  void open();\n};\n"
        self.assertEqual(self.wrong(header, "  box.open();\n"), [])
        self.assertEqual(len(self.wrong(header, "  box.close();\n")), 1)

    def test_an_empty_one(self):
        self.assertEqual(len(self.wrong("// Example:\n// not indented\n", "")), 1)


if __name__ == "__main__":
    unittest.main()
