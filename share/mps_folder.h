// MpsFolder: where a user's MPS daemons for the devices of one pool have their sockets and logs, and the lock that lets
// one process at a time start or stop them. It is there only while there are daemons.
//
// It is the user's alone (mode 0700), as any process that may write there can take the work of the user's jobs: in the
// pool's folder where that is this user's and no one else may write it, else in /tmp. Never in a session's runtime
// folder: that one goes with the session, and differs between sessions. Paths are short enough for the addresses of
// sockets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace remuda::share {

class MpsFolder {
 public:
  /// Makes it where it is not there. An error where somebody else has it or may write it.
  static Result<MpsFolder> make(const std::string& pool);
  /// Nothing where it is not there, or not safe.
  static std::optional<MpsFolder> find(const std::string& pool);

  const std::string& path() const { return path_; }
  /// Of one device; not made here.
  std::string of_device(const std::string& id) const;
  /// The devices' folders that are there.
  std::vector<std::string> devices() const;

  /// Waits at most so long for others who have the lock; it ends with the descriptor. No descriptor where the folder
  /// was removed meanwhile: make it again.
  Result<Fd> lock(double patience_s) const;
  /// Removes it where it is empty. With the lock.
  void remove_if_empty() const;

 private:
  explicit MpsFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Makes a folder with mode 0700; one that is there must be this user's and closed to all others.
Result<void> make_private_folder(const std::string& path);

}  // namespace remuda::share
