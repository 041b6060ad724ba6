// The file of a report (--json): whole or not at all, and tried again where the disk is full for a moment.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "base/write_again.h"

namespace remuda::cli {

class ReportFile {
 public:
  /// An error where the file cannot be written later. An empty path: no file, and write() does nothing.
  static Result<ReportFile> create(const std::string& path);

  /// To be called once. Tries again (base/write_again.h), which it says on stderr.
  Result<void> write(const Json& report, double pause_s = kWritePause_s);

 private:
  explicit ReportFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::optional<PendingFile> file_;  ///< until it is tried for the first time
};

}  // namespace remuda::cli
