#include "confine/cgroup.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <set>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"

namespace remuda::confine {
namespace {

namespace fs = std::filesystem;

constexpr double kLeavePatience_s = 0.2;  ///< a process leaves its cgroup soon after it was reaped
constexpr int kDeepest = 64;
constexpr size_t kMostFolders = 100000;  ///< that are searched in a tree

Fd open_folder(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// False where another file system is mounted over it, in which mkdir would make an ordinary folder.
bool is_cgroup(int folder) {
  struct statfs info{};
  return ::fstatfs(folder, &info) == 0 && (info.f_type == CGROUP2_SUPER_MAGIC || info.f_type == CGROUP_SUPER_MAGIC);
}

std::string no_cgroup(int error, const std::string& folder) {
  if (error == EACCES || error == EPERM || error == EROFS)
    return fmt::format("no permission to make a cgroup in {}", folder);
  return fmt::format("cannot make a cgroup in {}: {}", folder, errno_text(error));
}

/// Folders may be removed meanwhile: those are skipped.
std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> folders;
  std::error_code error, gone;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->is_directory(gone)) folders.push_back(entry->path().string());
  return folders;
}

/// By its link count, which in these file systems counts the folders in it: most cgroups have none, and need not be
/// opened.
bool has_folders(const std::string& folder) {
  struct stat info{};
  return ::stat(folder.c_str(), &info) == 0 && info.st_nlink > 2;
}

struct Search {
  const std::string& name;
  std::vector<std::string> found;
  size_t looked_at = 0;

  void below(const std::string& folder, int depth = 0) {
    if (depth > kDeepest) return;
    for (const std::string& inner : folders_in(folder)) {
      if (++looked_at > kMostFolders) return;
      if (inner.ends_with("/" + name))
        found.push_back(inner);
      else if (has_folders(inner))
        below(inner, depth + 1);
    }
  }
};

void add_pids(const std::string& folder, int depth, std::vector<int>& pids) {
  const auto text = read_text(folder + "/cgroup.procs");
  for (const std::string& line : split(text.value_or(""), '\n'))
    if (const int pid = parse_number<int>(line).value_or(0); pid > 0)  // 0: a process of another pid namespace
      pids.push_back(pid);
  if (depth < kDeepest)
    for (const std::string& inner : folders_in(folder)) add_pids(inner, depth + 1, pids);
}

/// Whether the kernel counts a process in it or in a cgroup below it, also one that is not visible here. Version 1 does
/// not report that.
bool has_processes(const std::string& folder) {
  const auto events = read_text(folder + "/cgroup.events");
  return events ? events->find("populated 1") != std::string::npos : !cgroup_members(folder).empty();
}

bool remove_tree(const std::string& folder, int depth = 0) {
  if (::rmdir(folder.c_str()) == 0 || errno == ENOENT) return true;
  if (errno != EBUSY || depth >= kDeepest) return errno != EBUSY && !has_processes(folder);
  for (const std::string& inner : folders_in(folder))
    if (!remove_tree(inner, depth + 1)) return false;
  return ::rmdir(folder.c_str()) == 0 || errno == ENOENT;
}

}  // namespace

std::string pool_identity(const std::string& pool) {
  struct statx info{};
  if (::statx(AT_FDCWD, pool.c_str(), 0, STATX_INO | STATX_BTIME, &info) != 0) return "";
  const bool has_birth = (info.stx_mask & STATX_BTIME) != 0;
  const std::string key =
      fmt::format("{}\n{}:{}\n{}\n{}.{}", pool, info.stx_dev_major, info.stx_dev_minor, info.stx_ino,
                  has_birth ? info.stx_btime.tv_sec : 0, has_birth ? info.stx_btime.tv_nsec : 0);
  return fmt::format("{:016x}", XXH3_64bits(key.data(), key.size()));
}

std::string cgroup_name(const std::string& pool, int64_t job) {
  const std::string identity = pool_identity(pool);
  return identity.empty() ? "" : fmt::format("remuda-{}-{}", identity, job);
}

Result<JobCgroup> JobCgroup::make(const CgroupPlace& place, const std::string& name) {
  const Fd own = open_folder(place.own);
  if (!own || !is_cgroup(own.get())) return failed(fmt::format("no cgroup in {}", place.own));
  std::string folder = place.own + "/" + name;
  if (::mkdirat(own.get(), name.c_str(), 0755) != 0) {
    if (errno != EEXIST) return failed(no_cgroup(errno, place.own));
    if (!remove_cgroup(folder)) return failed(fmt::format("{} has processes of another job", folder));
    if (::mkdirat(own.get(), name.c_str(), 0755) != 0) return failed(no_cgroup(errno, place.own));
  }
  JobCgroup cgroup(place.version, std::move(folder), open_folder(place.own + "/" + name));
  if (!cgroup.fd_) return failed(fmt::format("cannot open {}: {}", cgroup.folder_, errno_text(errno)));
  if (place.version == 2) {
    if (::faccessat(own.get(), "cgroup.procs", W_OK, 0) != 0)
      return failed(fmt::format("no permission to move processes within {}", place.own));
    if (!read_text(cgroup.folder_ + "/cgroup.type").value_or("").starts_with("domain\n"))
      return failed(fmt::format("{} is for threads only", place.own));
  }
  return cgroup;
}

JobCgroup::JobCgroup(JobCgroup&& other) noexcept
    : version_(other.version_), folder_(std::exchange(other.folder_, {})), fd_(std::move(other.fd_)) {}

void JobCgroup::release() {
  fd_.reset();
  folder_.clear();
}

JobCgroup::~JobCgroup() {
  if (!folder_.empty()) remove_cgroup(folder_, kLeavePatience_s);
}

std::vector<std::string> find_cgroups(const std::string& name) {
  Search search{name, {}};
  std::set<std::string> mounts;
  for (const char* controller : {"devices", "cpuset", "cpu", "memory"})
    for (const CgroupPlace& place : own_cgroup_places(controller))
      if (!name.empty() && mounts.insert(place.mount).second) search.below(place.mount);
  return std::move(search.found);
}

std::vector<int> cgroup_pids(const std::string& folder) {
  std::vector<int> pids;
  add_pids(folder, 0, pids);
  return pids;
}

std::vector<process::ProcessId> cgroup_members(const std::string& folder) {
  std::vector<process::ProcessId> members;
  for (const int pid : cgroup_pids(folder))
    if (auto process = process::process_id(pid)) members.push_back(std::move(*process));
  return members;
}

bool move_into_all(const std::vector<std::string>& cgroups, const process::ProcessId& process) {
  return std::ranges::all_of(cgroups, [&](const std::string& cgroup) { return move_into(cgroup, process); });
}

bool move_into(const std::string& cgroup, const process::ProcessId& process) {
  const Fd procs(::open((cgroup + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  return procs && is_alive(process) && write_all(procs.get(), std::to_string(process.pid), cgroup).has_value();
}

bool kill_cgroup(const std::string& folder) {
  const Fd file(::open((folder + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  return file && write_all(file.get(), "1", folder).has_value();
}

bool remove_cgroup(const std::string& folder, double patience_s) {
  constexpr double kPause_s = 0.001;
  const double end_s = monotonic_s() + patience_s;
  while (!remove_tree(folder)) {
    if (monotonic_s() >= end_s) return false;
    steady_clock().sleep_s(kPause_s);
  }
  return true;
}

}  // namespace remuda::confine
