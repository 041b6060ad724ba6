#include "pool/logs.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "pool/files.h"

namespace remuda::pool {
namespace {

constexpr mode_t kLogMode = 0600;
constexpr const char* kLogs = "logs";
constexpr std::string_view kSuffix = ".log";

std::string name_of(int64_t job) { return fmt::format("{}{}", job, kSuffix); }

std::optional<int64_t> job_of(const std::string& name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  return parse_number<int64_t>(name.substr(0, name.size() - kSuffix.size()));
}

/// Where other users may make files, no user may remove those of another.
Result<Folder> make_logs_folder(const std::string& pool) {
  REMUDA_ASSIGN(const Folder above, open_pool_folder(pool));
  REMUDA_ASSIGN(Folder logs, make_folder_in(above, kLogs));
  struct stat info{};
  const bool is_own = ::fstat(logs.fd.get(), &info) == 0 && info.st_uid == ::geteuid();
  if (is_own && (info.st_mode & S_ISVTX) == 0)
    ::chmod(fmt::format("/proc/self/fd/{}", logs.fd.get()).c_str(), (info.st_mode & 07777) | S_ISVTX);
  return logs;
}

std::vector<PoolLog> own_logs(const Folder& folder) {
  std::vector<PoolLog> logs;
  for (const std::string& name : names_in(folder)) {
    const auto job = job_of(name);
    struct stat info{};
    if (job && ::fstatat(folder.fd.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_uid == ::geteuid())
      logs.push_back({*job, info.st_size});
  }
  return logs;
}

}  // namespace

std::string pool_log_path(const std::string& folder, int64_t job) {
  return fmt::format("{}/{}/{}", folder, kLogs, name_of(job));
}

Result<Fd> open_pool_log(const std::string& folder, int64_t job) {
  REMUDA_ASSIGN(const Folder logs, make_logs_folder(folder));
  const std::string path = pool_log_path(folder, job);
  Fd log(::openat(logs.fd.get(), name_of(job).c_str(),
                  O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, kLogMode));
  if (!log) return failed(fmt::format("cannot write {}: {}", path, errno_text(errno)));
  struct stat info{};
  if (::fstat(log.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || info.st_nlink != 1)
    return failed(fmt::format("cannot write {}: somebody else has put a file there", path));
  return log;
}

Result<void> cut_log(int log, int64_t most_bytes, int64_t kept_bytes) {
  struct stat info{};
  if (::fstat(log, &info) != 0 || info.st_size <= most_bytes) return {};
  std::string kept(static_cast<size_t>(std::min<int64_t>(kept_bytes, info.st_size)), '\0');
  const ssize_t got = ::pread(log, kept.data(), kept.size(), info.st_size - static_cast<off_t>(kept.size()));
  kept.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  kept.erase(0, std::min(kept.find('\n'), kept.size() - 1) + 1);
  if (::ftruncate(log, 0) != 0) return failed(fmt::format("cannot cut the log: {}", errno_text(errno)));
  const int64_t removed = info.st_size - static_cast<int64_t>(kept.size());
  return write_all(log,
                   fmt::format("remuda: the log became too large; its first {} bytes were removed\n", removed) + kept,
                   "the log");
}

std::vector<int64_t> logs_to_remove(std::vector<PoolLog> logs, const PoolState& state, int64_t most_bytes) {
  const auto is_open = [&](const PoolLog& log) {
    const Job* job = state.find(log.job);
    return job && job->state != JobState::ended;
  };
  std::erase_if(logs, is_open);
  std::ranges::sort(logs, std::greater{}, &PoolLog::job);
  std::vector<int64_t> removed;
  int64_t bytes = 0;
  size_t count = 0;
  for (const PoolLog& log : logs) {
    if (bytes >= most_bytes || ++count > kMostLogs) removed.push_back(log.job);
    bytes += log.bytes;
  }
  std::ranges::reverse(removed);
  return removed;
}

void sweep_logs(const std::string& folder, const PoolState& state) {
  const auto pool = open_pool_folder(folder);
  const auto logs = pool ? open_folder(*pool, kLogs) : Result<Folder>(tl::unexpected(pool.error()));
  if (!logs) return;
  for (const int64_t job : logs_to_remove(own_logs(*logs), state, kMostLogBytes))
    ::unlinkat(logs->fd.get(), name_of(job).c_str(), 0);
}

}  // namespace remuda::pool
