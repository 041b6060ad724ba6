#include "train/error_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdexcept>

namespace remuda::train {
namespace {

TEST(ErrorText, OfAnUnknownOperatorNamesItAndItsLine) {
  EXPECT_EQ(sentence_in("\nUnknown builtin op: aten::get_autocast_dtype.\n"
                        "Could not find any similar ops to aten::get_autocast_dtype. This op may not exist or may not "
                        "be currently supported in TorchScript.\n:\n"
                        "  File \"code/__torch__.py\", line 13\n    b = self.b\n    a = self.a\n"
                        "    _9 = torch.get_autocast_dtype(\"cpu\")\n         ~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE\n"
                        "    _0 = torch.relu((a).forward(torch.flatten(x, 1), ))\n    return (b).forward(_0, )\n"),
            "Unknown builtin op: aten::get_autocast_dtype (code/__torch__.py, line 13: _9 = "
            "torch.get_autocast_dtype(\"cpu\"))");
}

constexpr const char* kFailedOperation =
    "The following operation failed in the TorchScript interpreter.\n"
    "Traceback of TorchScript, serialized code (most recent call last):\n"
    "  File \"code/__torch__.py\", line 10, in forward\n    return (self).inner(x, )\n            ~~~~~~~~~~~ <--- "
    "HERE\n"
    "  File \"code/__torch__.py\", line 7, in inner\n    return torch.mm(y, y)\n           ~~~~~~~~ <--- HERE\n\n"
    "Traceback of TorchScript, original code (most recent call last):\n"
    "  File \"model.py\", line 5, in forward\n  z = self.inner(x)\n      ~~~~~~~~~~ <--- HERE\n  return z\n"
    "  File \"model.py\", line 3, in inner\ndef inner(self, x):\n  y = x.t()\n  return torch.mm(y, y)\n"
    "         ~~~~~~~~ <--- HERE\ndef forward(self, x):\n";

TEST(ErrorText, OfAFailedOperationHasTheCauseAndTheInnermostLineOfTheModel) {
  const std::string frames = kFailedOperation;
  EXPECT_EQ(sentence_in(frames + "RuntimeError: mat1 and mat2 shapes cannot be multiplied (3x2 and 3x2)\n"),
            "mat1 and mat2 shapes cannot be multiplied (3x2 and 3x2) (model.py, line 3: return torch.mm(y, y))");
  EXPECT_EQ(sentence_in(frames + "RuntimeError: Could not run 'aten::x'.\n\nCPU: registered at x.cpp\nMeta: y.cpp\n"),
            "Could not run 'aten::x' (model.py, line 3: return torch.mm(y, y))")
      << "its further lines are no cause";
  EXPECT_EQ(sentence_in(frames + "RuntimeError: AssertionError: nine\n"),
            "AssertionError: nine (model.py, line 3: return torch.mm(y, y))");
  EXPECT_EQ(sentence_in(frames + "builtins.ValueError: wants 7\n"),
            "builtins.ValueError: wants 7 (model.py, line 3: return torch.mm(y, y))");
}

TEST(ErrorText, OfSeveralLinesIsTheFirstWithAText) {
  EXPECT_EQ(sentence_in("forward() Expected a value of type 'Tensor'.\nPosition: 1\n"),
            "forward() Expected a value of type 'Tensor'");
  EXPECT_EQ(sentence_in("\n \n:\n  out of luck.\n"), "out of luck");
  EXPECT_EQ(sentence_in("expected ) but found 'eof' here:\n  File \"<string>\", line 3\ndef f():\n  return (x\n"),
            "expected ) but found 'eof' here (<string>, line 3)");
  EXPECT_EQ(sentence_in("one line"), "one line");
}

TEST(ErrorText, IsNeverEmptyAndNeverLong) {
  for (const char* text : {"", "\n", " . \n:\n"}) EXPECT_EQ(sentence_in(text), "an exception without a text");
  EXPECT_EQ(sentence_in("The following operation failed\n"), "The following operation failed");
  EXPECT_EQ(sentence_in("<--- HERE"), "<--- HERE");
  EXPECT_EQ(sentence_in("a\n<--- HERE"), "a");
  const std::string code(1000, 'x');
  EXPECT_EQ(sentence_in("bad\n  File \"m.py\", line 1\n  " + code + "\n  ~~ <--- HERE\n"),
            "bad (m.py, line 1: " + std::string(120, 'x') + " ...)");
}

TEST(ErrorText, OfAnExceptionIsItsText) { EXPECT_EQ(sentence_of(std::runtime_error("\nlost\n")), "lost"); }

}  // namespace
}  // namespace remuda::train
