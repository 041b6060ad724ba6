// What a library's exception says, as one sentence for people.
//
// libtorch's texts have several lines, and the first may be empty: the cause, variants of an operator, the lines of a
// TorchScript model where it failed, and a backtrace of libtorch itself. What matters is the cause and the innermost of
// the model's lines:
//
//   sentence_in("\nUnknown builtin op: aten::new.\n:\n  File \"code/m.py\", line 3\n  return torch.new(x)\n"
//               "         ~~~~~~~~~ <--- HERE\n")
//   -> "Unknown builtin op: aten::new (code/m.py, line 3: return torch.new(x))"
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace remuda::train {

/// Without a full stop; never empty.
std::string sentence_of(const std::exception& error);

/// The same of the exception's text. Pure.
std::string sentence_in(std::string_view text);

}  // namespace remuda::train
