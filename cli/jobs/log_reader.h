// LogReader: a file that others may write, cut short or remove while it is read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"

namespace remuda::cli {

/// One thread. Never waits.
class LogReader {
 public:
  using Sink = std::function<Result<void>(std::string_view bytes)>;

  /// A usage error where it does not exist, may not be read, or is not a regular file.
  static Result<LogReader> open(const std::string& path);
  /// For root, who looks at what a user has named: with that user's rights, whose links lead no further than his own.
  static Result<LogReader> open_as(int uid, const std::string& path);

  /// Goes to where the last `lines` lines begin. A line without an end counts.
  Result<void> go_to_last(int64_t lines);
  /// Passes everything from the current position on to `sink`, whose first error ends it. A file that has become
  /// shorter is read from its beginning.
  Result<void> read(const Sink& sink);

 private:
  LogReader(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Result<int64_t> size() const;
  Result<size_t> read_at(int64_t offset, char* bytes, size_t size) const;

  std::string path_;
  Fd fd_;
  int64_t offset_ = 0;
};

}  // namespace remuda::cli
