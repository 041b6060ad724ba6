#include "pool/logs.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "pool/files.h"
#include "pool/store.h"

namespace remuda::pool {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kLogMode = 0600;
constexpr std::string_view kSuffix = ".log";

std::string logs_folder(const std::string& folder) { return folder + "/logs"; }

/// Where others may make files, nobody may remove those of others.
Result<void> make_logs_folder(const std::string& folder) {
  const std::string path = logs_folder(folder);
  REMUDA_TRY(make_like_parent(path));
  struct stat info{};
  const bool is_own = ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
  if (is_own && (info.st_mode & S_ISVTX) == 0) ::chmod(path.c_str(), (info.st_mode & 07777) | S_ISVTX);
  return {};
}

std::optional<int64_t> job_of(const fs::path& path) {
  return path.extension() == kSuffix ? parse_number<int64_t>(path.stem().string()) : std::nullopt;
}

std::vector<PoolLog> own_logs(const std::string& folder) {
  std::vector<PoolLog> logs;
  std::error_code error;
  for (fs::directory_iterator entry(logs_folder(folder), error), end; !error && entry != end; entry.increment(error)) {
    const auto job = job_of(entry->path());
    struct stat info{};
    if (job && ::lstat(entry->path().c_str(), &info) == 0 && info.st_uid == ::geteuid())
      logs.push_back({*job, info.st_size});
  }
  return logs;
}

}  // namespace

std::string pool_log_path(const std::string& folder, int64_t job) {
  return fmt::format("{}/{}{}", logs_folder(folder), job, kSuffix);
}

Result<Fd> open_pool_log(const std::string& folder, int64_t job) {
  REMUDA_TRY(make_logs_folder(folder));
  const std::string path = pool_log_path(folder, job);
  Fd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, kLogMode));
  if (!log) return failed(fmt::format("cannot write {}: {}", path, errno_text(errno)));
  struct stat info{};
  if (::fstat(log.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || info.st_nlink != 1)
    return failed(fmt::format("cannot write {}: somebody else has put a file there", path));
  return log;
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
  for (const PoolLog& log : logs) {
    if (bytes >= most_bytes || log.job + Store::kMostEnded < state.next_job) removed.push_back(log.job);
    bytes += log.bytes;
  }
  std::ranges::reverse(removed);
  return removed;
}

void sweep_logs(const std::string& folder, const PoolState& state) {
  for (const int64_t job : logs_to_remove(own_logs(folder), state, kMostLogBytes))
    ::unlink(pool_log_path(folder, job).c_str());
}

}  // namespace remuda::pool
