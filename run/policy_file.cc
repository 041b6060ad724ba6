#include "run/policy_file.h"

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/env.h"
#include "pool/shared_pool.h"

namespace remuda::run {
namespace {

double utc_offset_s() {
  const auto now = static_cast<std::time_t>(wall_s());
  std::tm parts{};
  return ::localtime_r(&now, &parts) ? static_cast<double>(parts.tm_gmtoff) : 0;
}

}  // namespace

std::string policy_path(const std::string& folder, const std::string& of_all) {
  const std::string name = folder.substr(0, folder.find_last_not_of('/') + 1);
  if (name == pool::kSharedPool) {
    struct stat info{};
    const bool is_absent = ::lstat(of_all.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
    return is_absent ? "" : of_all;
  }
  // Of the folder in which this program was started: a keeper goes to another.
  static const std::string named = env::get(env::policy).value_or("");
  static const std::string path = named.empty() ? "" : std::filesystem::absolute(named).string();
  return path;
}

Result<policy::Policy> policy_at(const std::string& path) {
  policy::Policy policy;
  if (!path.empty()) {
    REMUDA_ASSIGN(policy, policy::read_policy(path));
  }
  policy.utc_offset_s = utc_offset_s();
  return policy;
}

Result<policy::Policy> policy_of(const std::string& folder) { return policy_at(policy_path(folder)); }

}  // namespace remuda::run
