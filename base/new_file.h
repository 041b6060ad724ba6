// NewFile: a file that nobody sees until it is whole. Internal to base and to stores of files.
#pragma once

#include <string>
#include <sys/types.h>

#include "base/file.h"

namespace remuda {

/// Open for writing. It has no name, or, where the file system has no such files (O_TMPFILE), one that nobody else
/// uses; gone when this goes. With names, kill -9 leaves it behind.
class NewFile {
 public:
  /// In an open folder, which outlives it. Where it cannot be made, false, and errno tells why.
  static NewFile in(int folder, mode_t mode);

  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  explicit operator bool() const { return static_cast<bool>(fd_); }
  int fd() const { return fd_.get(); }

  /// Gives it this name in its folder too; false, and errno tells why, where something has that name already.
  bool link_as(const std::string& name) const;
  /// Replaces what has this name in its folder; false, and errno tells why, where that fails.
  bool rename_to(const std::string& name);

 private:
  explicit NewFile(int folder) : folder_(folder) {}
  int folder_;
  std::string name_;  ///< empty: none
  Fd fd_;
};

}  // namespace remuda
