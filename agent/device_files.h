// DeviceFiles: tells when device files come, as those of a card that was plugged in or whose driver is loaded late.
#pragma once

#include <string>

#include "base/file.h"

namespace remuda::agent {

/// One thread. Sees the folder, and "dri" in it, where the files of graphics are.
class DeviceFiles {
 public:
  explicit DeviceFiles(std::string folder = "/dev");

  /// Readable when take_news() may be true.
  int fd() const { return events_.get(); }
  /// Whether a file may have come since the last call.
  bool take_news();

 private:
  void watch();

  std::string folder_;
  Fd events_;
};

}  // namespace remuda::agent
