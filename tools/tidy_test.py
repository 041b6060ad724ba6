#!/usr/bin/env python3
"""Tests of tidy.py: what follows from a batch of files that does not compile."""

import pathlib
import unittest
from unittest import mock

import tidy


def source(name: str) -> tidy.Source:
    return tidy.Source(tidy.ROOT / name, "place/remuda_place", ())


class Halves(unittest.TestCase):
    def check(self, complaint_of) -> dict[str, str]:
        batch = [source(name) for name in ("a.cc", "b.cc", "c.cc", "d.cc")]
        with mock.patch.object(tidy, "read_batch", lambda files, folder: complaint_of([file.name for file in files])):
            return {file.name: complaint for file, complaint in tidy.check_batch(batch, pathlib.Path())}

    def test_files_that_only_clash_have_no_complaint(self):
        clash = self.check(lambda names: "error: redefinition [clang-diagnostic-error]\n" if {"b.cc", "c.cc"} <= set(names) else "")
        self.assertEqual(clash, {"a.cc": "", "b.cc": "", "c.cc": "", "d.cc": ""})

    def test_a_file_that_does_not_compile_is_named_alone(self):
        wrong = "d.cc:1: error: no such name [clang-diagnostic-error]\n"
        self.assertEqual(self.check(lambda names: wrong if "d.cc" in names else ""), {"a.cc": "", "b.cc": "", "c.cc": "", "d.cc": wrong})

    def test_a_batch_is_read_once_for_what_clang_tidy_itself_finds(self):
        wrong = "a.cc:1: error: a copy [performance-unnecessary-copy,-warnings-as-errors]\n"
        read = []
        self.check(lambda names: read.append(names) or wrong)
        self.assertEqual(len(read), 1)


if __name__ == "__main__":
    unittest.main()
