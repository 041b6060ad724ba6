#!/usr/bin/env python3
"""Each rule of check_layers.py is broken once in a small tree of its own, and the violation must be found."""

import pathlib
import tempfile
import unittest

import check_layers

LAYERS = r"""
[layers]
base =
probe = base
train = base
cli = *
[backends]
probe/cpu = probe/cpu/probe.h
[libraries]
torch = train
[calls]
getenv = base/env.cc
[namespaces]
plain = base
[variables]
list = base/env.h
pattern = REMUDA_[A-Z_]+|\w+_VISIBLE_DEVICES
[vendors]
words = nvidia amd
allowed = probe/amd
[sizes]
file = 20
function = 5
usual_least = 3
usual_most = 10
"""


def body(lines: int) -> str:
    return "{\n" + "  f();\n" * (lines - 2) + "}\n"


class CheckLayers(unittest.TestCase):
    def found(self, files: dict[str, str], layers: str = LAYERS) -> list[str]:
        """What is found in a tree of these files; each folder's CMakeLists.txt names all of its sources."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in ({"tools/layers.txt": layers} | files).items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
                if path.endswith((".cc", ".h")) and "unlisted" not in path:
                    with open(root / path.split("/")[0] / "CMakeLists.txt", "a", encoding="utf-8") as lists:
                        lists.write(path.split("/", 1)[1] + "\n")
            return check_layers.check(root)

    def expect_clean(self, path: str, text: str) -> None:
        self.assertEqual(self.found({path: text}), [])

    def expect(self, path: str, text: str, place: str, words: str) -> None:
        found = self.found({path: text})
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(f"{place}: "), found)
        self.assertIn(words, found[0])

    def test_an_include_may_point_down(self):
        self.expect_clean("probe/a.cc", '#include "base/x.h"\n#include "probe/y.h"\n#include <vector>\n')
        self.expect_clean("cli/a.cc", '#include "train/x.h"\n')

    def test_an_include_up_or_sideways_is_found(self):
        self.expect("base/a.cc", '\n#include "probe/x.h"\n', "base/a.cc:2", "base may not include probe")
        self.expect("train/a.h", '#include "probe/x.h"\n', "train/a.h:1", "train may not include probe")

    def test_an_include_not_written_from_the_root_is_found(self):
        self.expect("base/a.cc", '#include "x.h"\n', "base/a.cc:1", "from the root")

    def test_a_commented_include_does_not_count(self):
        self.expect_clean("base/a.cc", '// #include "probe/x.h"\n/*\n#include "probe/x.h"\n*/\n')

    def test_a_layer_that_points_up_in_the_list_is_found(self):
        found = self.found({}, LAYERS.replace("base =", "base = probe", 1))
        self.assertEqual(found, ["tools/layers.txt: base may not include probe: it is not above it in the list"])

    def test_a_folder_that_no_layer_names_is_found(self):
        self.expect("other/a.cc", "", "other/a.cc:1", "does not list")

    def test_a_backend_shows_one_header_only(self):
        self.expect_clean("probe/a.cc", '#include "probe/cpu/probe.h"\n')
        self.expect_clean("probe/cpu/a.cc", '#include "probe/cpu/lib.h"\n')
        self.expect("cli/a.cc", '#include "probe/cpu/lib.h"\n', "cli/a.cc:1", 'only "probe/cpu/probe.h"')

    def test_a_folder_beside_backends_that_is_not_listed_is_found(self):
        self.expect_clean("probe/b/a.cc", '#include "probe/b/x.h"\n')
        self.expect_clean("probe/a.cc", '#include "probe/testing/x.h"\n')
        self.expect_clean("cli/a.cc", '#include "cli/b/x.h"\n')
        self.expect("probe/a.cc", '#include "probe/b/x.h"\n', "probe/a.cc:1", "probe/b stands beside backends")

    def test_a_library_outside_its_folders_is_found(self):
        self.expect_clean("train/a.cc", "#include <torch/torch.h>\n")
        self.expect("base/a.cc", "#include <torch/torch.h>\n", "base/a.cc:1", "only in train")

    def test_getenv_outside_its_file_is_found(self):
        self.expect_clean("base/env.cc", 'auto x = std::getenv("A");\n')
        self.expect_clean("base/a.cc", '// getenv("A")\nauto x = "getenv()";\n')
        self.expect("base/a.cc", '\nauto x = std::getenv("A");\n', "base/a.cc:2", "getenv may be called only in")

    def test_a_vendor_outside_its_folder_is_found(self):
        for code in ("struct NvidiaDevice;", 'auto x = "nvidia";', "int amd_count;", "bool is_amd;", "#define AMD 1"):
            self.expect("base/a.cc", code + "\n", "base/a.cc:1", "maker of devices")

    def test_a_vendor_in_its_folder_in_a_test_in_a_comment_or_in_another_word_is_fine(self):
        self.expect_clean("probe/amd/a.cc", "int amd_count;\n")
        self.expect_clean("base/a_test.cc", 'auto x = "amd";\n')
        self.expect_clean("base/a.cc", "// as amd does\nint amdahl;\n")

    def test_a_long_file_is_found(self):
        self.expect_clean("base/a.cc", "\n" * 20)
        self.expect("base/a.cc", "\n" * 21, "base/a.cc:21", "21 lines")
        self.expect("tools/a.py", "\n" * 21, "tools/a.py:21", "21 lines")

    def test_a_long_function_is_found(self):
        self.expect_clean("base/a.cc", "int f() " + body(5))
        self.expect("base/a.cc", "\n\nint f() " + body(6), "base/a.cc:3", "a function of 6 lines")
        self.expect("base/a.h", "namespace remuda {\nclass B : C<int> {\n  int f() const " + body(6) + "};\n}\n", "base/a.h:3", "")
        self.expect("base/a.cc", "template <class T>\nvoid f() " + body(5), "base/a.cc:1", "a function of 6 lines")

    def test_braces_in_text_and_long_tables_are_not_functions(self):
        self.expect_clean("base/a.cc", "auto a = '{';\nauto b = \"{\";\nint c = 1'000; // {\n" + "\n" * 8 + "int d;\n")
        self.expect_clean("base/a.cc", "int table[] = {\n" + "  1,\n" * 8 + "};\n")
        self.expect_clean("base/a.cc", "struct A {\n" + "  int a;\n" * 8 + "};\n")

    def test_a_source_that_is_not_built_is_found(self):
        self.expect("base/unlisted.cc", "", "base/unlisted.cc:1", "no CMakeLists.txt")
        found = self.found({"base/a.cc": "", "base/unlisted.cc": ""})
        self.assertEqual(found, ["base/unlisted.cc:1: is not built: base/CMakeLists.txt does not name it"])
        found = self.found({"base/CMakeLists.txt": "x/unlisted.cc\n", "base/x/unlisted.cc": "", "base/y/unlisted.cc": ""})
        self.assertEqual(found, ["base/y/unlisted.cc:1: is not built: base/CMakeLists.txt does not name it"])

    def test_a_namespace_that_is_not_the_folder_s_is_found(self):
        self.expect_clean("probe/a.cc", "namespace remuda::probe {\nnamespace {\n}\n}\nnamespace remuda::probe::cpu {\n}\n")
        self.expect_clean("base/a.cc", "namespace remuda {\n}\n")
        self.expect("probe/a.cc", "\nnamespace remuda {\n}\n", "probe/a.cc:2", "what stands in probe is in remuda::probe")
        self.expect("probe/a.cc", "namespace remuda::probes {\n}\n", "probe/a.cc:1", "in remuda::probe")

    def test_a_type_that_two_headers_define_is_found(self):
        one = "namespace remuda::probe {\nstruct Outcome {\n  struct Inner {};\n};\n}\n"
        found = self.found({"probe/a.h": one, "probe/b.h": one})
        self.assertEqual(found, ["probe/b.h:2: remuda::probe::Outcome is defined at probe/a.h:2, too"])
        using = "namespace remuda::probe {\nusing Outcome = int;\n}\n"
        self.assertEqual(len(self.found({"probe/a.h": one, "probe/b.h": using})), 1)
        other = one.replace("remuda::probe", "remuda::train")
        self.assertEqual(self.found({"probe/a.h": one, "train/a.h": other}), [])
        declared = "namespace remuda::probe {\nstruct Outcome;\n}\n"
        self.assertEqual(self.found({"probe/a.h": one, "probe/b.h": declared}), [])

    def test_a_local_name_that_two_sources_of_a_folder_give_is_found(self):
        def source(code: str) -> str:
            return f"namespace remuda::probe {{\nnamespace {{\n{code}\n}}  // namespace\n}}\n"

        for code, name in {"constexpr int kMost = 3;": "kMost", "struct Way {\n};": "Way", "int f(int a, B<C, D> b) {": "f(int, B<C, D>)",
                           "std::string to_text(const A& a);": "to_text(const A&)", "const std::string kNames[] = {};": "kNames"}.items():
            found = self.found({"probe/a.cc": source(code), "probe/b.cc": source(code)})
            self.assertEqual(found, [f"probe/b.cc:3: {name} has the name of another in this folder, at probe/a.cc:3"])
            for path in ("probe/b_test.cc", "train/b.cc"):  # another program
                text = source(code).replace("probe", path.split("/")[0])
                self.assertEqual(self.found({"probe/a.cc": source(code), path: text}), [])

    def test_a_local_name_is_found_after_a_function_and_as_the_second_of_its_line(self):
        source = "namespace remuda::probe {{\nnamespace {{\nvoid {0}() {{\n}}\nconstexpr int {1} = 1, kMost = 3;\n}}  // namespace\n}}\n"
        found = self.found({"probe/a.cc": source.format("one", "kOne"), "probe/b.cc": source.format("two", "kTwo")})
        self.assertEqual(found, ["probe/b.cc:5: kMost has the name of another in this folder, at probe/a.cc:5"])

    def test_equal_local_aliases_and_overloads_are_fine(self):
        for one, other in (("using A = int;", "using A = int;"), ("int f(int a) {", "int f(long a) {"), ("  int kMost = 3;", "  int kMost = 3;")):
            files = {path: f"namespace remuda::probe {{\nnamespace {{\n{code}\n}}  // namespace\n}}\n"
                     for path, code in (("probe/a.cc", one), ("probe/b.cc", other))}
            self.assertEqual(self.found(files), [])

    def test_a_variable_outside_the_list_is_found(self):
        listed = {"base/env.h": 'auto port = "MASTER_PORT";\n'}
        wrong = 'auto a = "MASTER_PORT";\nauto b = "REMUDA_NEW";\nauto c = "CUDA_VISIBLE_DEVICES=";\n'
        found = self.found(listed | {"probe/a.cc": wrong})
        self.assertEqual([line.split(" ")[:2] for line in found],
                         [["probe/a.cc:1:", "MASTER_PORT"], ["probe/a.cc:2:", "REMUDA_NEW"],
                          ["probe/a.cc:3:", "CUDA_VISIBLE_DEVICES"]])
        fine = 'auto a = "MASTER";\n// "REMUDA_NEW"\nauto b = "use REMUDA_NEW";\n'
        self.assertEqual(self.found(listed | {"probe/a.cc": fine, "probe/a_test.cc": wrong}), [])

    def test_files_that_include_each_other_are_found(self):
        a, b, c = '#include "base/b.h"\n', '#include "base/c.h"\n', '#include "base/a.h"\n'
        found = self.found({"base/a.h": a, "base/b.h": b, "base/c.h": c})
        self.assertEqual(found, ["base/a: includes itself by way of base/b, base/c"])
        self.assertEqual(self.found({"base/a.h": a, "base/b.h": b, "base/c.h": ""}), [])

    def test_a_header_and_its_source_are_one_file_for_cycles(self):
        found = self.found({"base/a.h": "", "base/a.cc": '#include "base/a.h"\n#include "base/b.h"\n',
                            "base/b.h": '#include "base/a.h"\n'})
        self.assertEqual(found, ["base/a: includes itself by way of base/b"])

    def test_unusual_sizes_are_listed_and_are_no_violation(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, lines in {"base/short.cc": 2, "base/fine.cc": 5, "base/long.cc": 11, "base/a.h": 1, "base/a_test.cc": 1}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text("\n" * lines)
            (root / "tools").mkdir()
            (root / "tools/layers.txt").write_text(LAYERS)
            self.assertEqual(check_layers.unusual_sizes(root), ["   2 base/short.cc", "  11 base/long.cc"])


if __name__ == "__main__":
    unittest.main()
