#include "pool/folder.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/state_folder.h"
#include "pool/pool.h"
#include "process/user_name.h"

namespace remuda::pool {
namespace {

namespace fs = std::filesystem;

bool is_writable_folder(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && ::access(path.c_str(), R_OK | W_OK | X_OK) == 0;
}

/// For a folder's name: "my box" -> "my_box".
std::string as_name(const std::string& text) {
  constexpr size_t kLongest = 64;
  std::string name = text.substr(0, kLongest);
  std::ranges::replace_if(name, [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '.'; }, '_');
  return name;
}

/// A home may be that of many machines, and no other one's processes can be seen.
std::string host() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || !*name) return "localhost";
  return name;
}

/// The group that may write the folder, where that is one for people; empty otherwise.
std::string writing_group(const struct stat& info) {
  if ((info.st_mode & S_IWGRP) == 0 || info.st_gid == 0) return "";
  const group* entry = ::getgrgid(info.st_gid);
  return entry ? entry->gr_name : "";
}

}  // namespace

Result<std::string> pool_folder_beside(const std::string& shared, const std::string& machine_file) {
  if (machine_file.empty() && is_writable_folder(shared)) return shared;
  const auto state = state_folder();
  if (!state) return usage_error("there is no place for the pool: neither HOME nor XDG_STATE_HOME names a folder");
  if (machine_file.empty()) return *state + "/pool-" + as_name(host());
  std::error_code error;
  const fs::path file = fs::canonical(machine_file, error);
  if (error) return usage_error(fmt::format("cannot read {}: {}", machine_file, error.message()));
  const std::string key = host() + '\n' + file.string();
  return fmt::format("{}/pools/{}-{:016x}", *state, as_name(file.stem().string()), XXH3_64bits(key.data(), key.size()));
}

std::optional<PoolObstacle> shared_pool_obstacle_at(const std::string& shared) {
  struct stat info{};
  if (::stat(shared.c_str(), &info) != 0 || is_writable_folder(shared)) return std::nullopt;
  const std::string user = process::user_name(static_cast<int>(::geteuid()));
  const std::string group = writing_group(info);
  PoolObstacle obstacle;
  obstacle.sentence = fmt::format(
      "{} may not write {}, the pool for all users: their jobs are in a pool of their own, and wait in a queue of "
      "their "
      "own",
      user, shared);
  if (!S_ISDIR(info.st_mode))
    obstacle.remedy = fmt::format("sudo rm {0} && sudo install -d -m 2770 -g GROUP {0}", shared);
  else if (!group.empty())
    obstacle.remedy = fmt::format("sudo usermod -aG {} {}, and a new login", group, user);
  else
    obstacle.remedy = fmt::format(
        "sudo groupadd -f remuda && sudo chgrp remuda {0} && sudo chmod 2770 {0} && sudo usermod -aG remuda {1}, and a "
        "new "
        "login",
        shared, user);
  return obstacle;
}

std::optional<PoolObstacle> shared_pool_obstacle() { return shared_pool_obstacle_at(kSharedPool); }

Result<std::string> pool_folder(const std::string& machine_file) {
  return pool_folder_beside(kSharedPool, machine_file);
}

}  // namespace remuda::pool
