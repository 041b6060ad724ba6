#include "pool/folder.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <grp.h>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/file.h"
#include "base/state_folder.h"
#include "pool/lifeline.h"
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

std::string host() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || !*name) return "localhost";
  return name;
}

/// The group that may write the folder, if users can be its members; empty otherwise.
std::string writing_group(const struct stat& info) {
  if ((info.st_mode & S_IWGRP) == 0 || info.st_gid == 0) return "";
  const group* entry = ::getgrgid(info.st_gid);
  return entry ? entry->gr_name : "";
}

/// The name that keeps this machine's pool apart: many machines may share a home, and processes of other machines
/// cannot be seen. Where the machine has no id, as in many containers, its host name is used.
std::string machine_name(const std::string& id_file) {
  constexpr size_t kDigits = 32;
  const std::string id = read_text(id_file, 4096).value_or("").substr(0, kDigits);
  const bool is_id = id.size() == kDigits && std::ranges::all_of(id, [](unsigned char c) { return std::isxdigit(c); });
  return is_id ? id : host();
}

std::string pool_of_file(const fs::path& file, const std::string& machine) {
  const std::string key = machine + '\n' + file.string();
  return fmt::format("pools/{}-{:016x}", as_name(file.stem().string()), XXH3_64bits(key.data(), key.size()));
}

bool is_folder(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool is_there(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0;
}

/// Renames a pool that was named by the host, and leaves a link under the old name for programs that know only that.
/// Not while jobs are in it, which carry its name; nor where the file system cannot exchange two names in one step.
bool move_pool(const std::string& old_path, const std::string& path) {
  if (is_in_use(old_path)) return false;
  const std::string target = fs::path(path).filename().string();
  if (::symlink(target.c_str(), path.c_str()) != 0) return false;
  if (::renameat2(AT_FDCWD, old_path.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return true;
  ::unlink(path.c_str());
  return false;
}

/// The folder `name`, or `old_name` as long as a pool of that name exists and cannot be moved.
std::string moved(const std::string& state, const std::string& name, const std::string& old_name) {
  std::string path = state + "/" + name, old_path = state + "/" + old_name;
  if (name == old_name || !is_folder(old_path)) return path;
  const Fd lock(::open(state.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock) ::flock(lock.get(), LOCK_EX);
  if (!is_folder(old_path)) return path;                           // another process has moved it
  if (is_there(path) && !is_folder(path)) ::unlink(path.c_str());  // a link, left by a process that died
  return is_there(path) || move_pool(old_path, path) ? path : old_path;
}

}  // namespace

Result<std::string> pool_folder_at(const PoolPlaces& places, const std::string& machine_file) {
  if (machine_file.empty() && is_writable_folder(places.shared)) return places.shared;
  const auto state = state_folder();
  if (!state) return usage_error("there is no place for the pool: neither HOME nor XDG_STATE_HOME names a folder");
  const std::string machine = machine_name(places.machine_id);
  if (machine_file.empty()) return moved(*state, "pool-" + as_name(machine), "pool-" + as_name(host()));
  std::error_code error;
  const fs::path file = fs::canonical(machine_file, error);
  if (error) return usage_error(fmt::format("cannot read {}: {}", machine_file, error.message()));
  return moved(*state, pool_of_file(file, machine), pool_of_file(file, host()));
}

std::optional<PoolObstacle> shared_pool_obstacle_at(const std::string& shared) {
  struct stat info{};
  if (::stat(shared.c_str(), &info) != 0 || is_writable_folder(shared)) return std::nullopt;
  const std::string user = process::user_name(static_cast<int>(::geteuid()));
  const std::string group = writing_group(info);
  PoolObstacle obstacle;
  obstacle.sentence = fmt::format(
      "{} may not write {}, the pool for all users: their jobs are in a pool of their own, and wait in a queue of "
      "their own",
      user, shared);
  if (!S_ISDIR(info.st_mode))
    obstacle.remedy = fmt::format("sudo rm {0} && sudo install -d -m 2770 -g GROUP {0}", shared);
  else if (!group.empty())
    obstacle.remedy = fmt::format("sudo usermod -aG {} {}, and a new login", group, user);
  else
    obstacle.remedy = fmt::format(
        "sudo groupadd -f remuda && sudo chgrp remuda {0} && sudo chmod 2770 {0} && sudo usermod -aG remuda {1}, and a "
        "new login",
        shared, user);
  return obstacle;
}

std::optional<PoolObstacle> shared_pool_obstacle() { return shared_pool_obstacle_at(kSharedPool); }

Result<std::string> own_pool_folder(const std::string& machine_file) {
  return pool_folder_at({.shared = ""}, machine_file);
}

Result<std::string> pool_folder(const std::string& machine_file) { return pool_folder_at({}, machine_file); }

}  // namespace remuda::pool
