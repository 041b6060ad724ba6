// LineSplitter: a stream of bytes of any origin, cut into lines.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace remuda::process {

/// A line longer than `limit` bytes is dropped as a whole, and reported as dropped. One thread at a time.
class LineSplitter {
 public:
  /// Receives each line without its newline. When it was too long, `dropped` is true, and `line` has its first bytes.
  using OnLine = std::function<void(std::string_view line, bool dropped)>;

  explicit LineSplitter(size_t limit) : limit_(limit) {}
  void feed(std::string_view bytes, const OnLine& on_line);
  /// To be called when the stream has ended: bytes that are left are the last line.
  void finish(const OnLine& on_line);

 private:
  void emit(const OnLine& on_line);
  size_t limit_;
  std::string line_;
  bool too_long_ = false;
};

}  // namespace remuda::process
