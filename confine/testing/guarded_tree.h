// For tests: a cgroup of version 2 that stands for the root of all, and processes of other users in cgroups below it.
#pragma once

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "confine/cgroup.h"
#include "confine/device_guard.h"

namespace remuda::confine {

/// Removed with this object, and its cgroups with it.
class GuardedTree {
 public:
  static constexpr int kUser = 61001;
  static constexpr const char* kGuard = "remuda_test";

  GuardedTree() {
    obstacle_ = "no tree of version 2 is mounted here";
    for (const CgroupPlace& place : own_cgroup_places()) {
      if (place.version != 2) continue;
      auto made = JobCgroup::make(place, fmt::format("remuda-guard-{}", ::getpid()));
      if (made) root_ = std::make_unique<JobCgroup>(std::move(*made));
      obstacle_ = made ? "" : made.error().message;
    }
    if (::geteuid() != 0) obstacle_ = "only root acts as several users";
    if (!obstacle_.empty()) return;
    const auto tried = DeviceGuard::attach(root(), kGuard, GuardMode::report);
    if (!tried) obstacle_ = tried.error().message;
    (void)DeviceGuard::remove(root(), kGuard);
  }

  /// Why the kernel, or who has made the place in which this runs, permits no guard; empty where it does.
  const std::string& obstacle() const { return obstacle_; }
  std::string root() const { return root_->folder(); }
  /// Makes a cgroup below it, with those between.
  std::string make(const std::string& name) const {
    std::filesystem::create_directories(root() + "/" + name);
    return root() + "/" + name;
  }

  /// The errno with which a process of this user, in this cgroup, opens a file; 0: it has opened it.
  static int opens(const std::string& cgroup, const char* path, int uid = kUser) {
    const pid_t child = ::fork();
    if (child == 0) {
      const Fd procs(::open((cgroup + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
      if (::write(procs.get(), "0", 1) != 1 || (uid != 0 && ::setresuid(uid, uid, uid) != 0)) ::_exit(255);
      const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
      ::_exit(file ? 0 : errno);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  std::unique_ptr<JobCgroup> root_;
  std::string obstacle_;
};

}  // namespace remuda::confine
