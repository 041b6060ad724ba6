// MpsFolder: where a user's MPS daemons for the devices of one pool have their sockets and logs, and the lock that lets
// one process at a time start or stop them. It exists only while there are daemons.
//
// Only the user may open it (mode 0700), as any process that may write there could receive the work of the user's jobs.
// It is in the pool's folder where that is this user's and no other user may write it, else in /tmp. Never in a
// session's runtime folder: that is removed with the session, and differs between sessions. Paths are short enough for
// the addresses of sockets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace remuda::share {

class MpsFolder {
 public:
  /// Makes it where it does not exist. An error where another user owns it or may write it.
  static Result<MpsFolder> make(const std::string& pool);
  /// Nothing where it does not exist, or is not safe.
  static std::optional<MpsFolder> find(const std::string& pool);

  const std::string& path() const { return path_; }
  /// The path of one device's folder; does not make it.
  std::string of_device(const std::string& id) const;
  /// The devices' folders that exist.
  std::vector<std::string> devices() const;

  /// Waits at most `patience_s` for the lock; closing the descriptor releases it. No descriptor where the folder was
  /// removed meanwhile: make it again.
  Result<Fd> lock(double patience_s) const;
  /// Removes it where it is empty. To be called with the lock held.
  void remove_if_empty() const;

 private:
  explicit MpsFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// The name of a device's folder.
std::string device_folder_name(const std::string& id);

/// Makes a folder with mode 0700; an existing one must be this user's and closed to all others.
Result<void> make_private_folder(const std::string& path);

}  // namespace remuda::share
