// Lines of a name and a value, as `remuda show` prints them: "started     12:03".
#pragma once

#include <fmt/format.h>
#include <string>

#include "base/text.h"

namespace remuda {

class NamedLines {
 public:
  /// Without a value, no line. What cannot be shown of it is replaced.
  void add(const char* name, const std::string& value) {
    if (!value.empty()) text_ += fmt::format("{:<10}  {}\n", name, printable(value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace remuda
