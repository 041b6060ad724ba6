// LeftCgroups: cgroups of what has ended; each is removed once its last process is gone.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace remuda::agent {

/// One thread.
class LeftCgroups {
 public:
  LeftCgroups() = default;
  explicit LeftCgroups(std::vector<std::string> folders) : folders_(std::move(folders)) {}
  LeftCgroups(LeftCgroups&&) noexcept = default;
  LeftCgroups& operator=(LeftCgroups&&) = delete;
  /// Waits a moment for processes that are about to end. A cgroup that has others is the next agent's to remove.
  ~LeftCgroups();

  void add(std::string folder);
  /// It is in use after all. Returns whether it was one of these.
  bool take_out(const std::string& folder) { return std::erase(folders_, folder) > 0; }
  /// Removes those that are empty now.
  void sweep();
  const std::vector<std::string>& all() const { return folders_; }

 private:
  std::vector<std::string> folders_;
};

}  // namespace remuda::agent
