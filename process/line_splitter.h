// LineSplitter: a stream of bytes of any origin, cut into lines.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace remuda::process {

/// A line longer than `limit` bytes is dropped as a whole, and said to have been. One thread at a time.
class LineSplitter {
 public:
  /// Takes each line without its newline; `dropped` is true, and the line its first bytes, when it was too long.
  using OnLine = std::function<void(std::string_view line, bool dropped)>;

  explicit LineSplitter(size_t limit) : limit_(limit) {}
  void feed(std::string_view bytes, const OnLine& on_line);
  /// The stream has ended: what is left is a line too, if there is anything.
  void finish(const OnLine& on_line);

 private:
  void emit(const OnLine& on_line);
  size_t limit_;
  std::string line_;
  bool too_long_ = false;
};

}  // namespace remuda::process
