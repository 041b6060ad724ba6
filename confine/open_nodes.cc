#include "confine/open_nodes.h"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <linux/kcmp.h>
#include <optional>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"

namespace remuda::confine {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const process::ProcessId& process) { return fmt::format("/proc/{}", process.pid); }

/// The character device behind a link of /proc/PID/fd.
std::optional<DeviceNode> device_at(const fs::path& link) {
  struct statx info{};
  constexpr int kWithoutAsking = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT;
  if (::statx(AT_FDCWD, link.c_str(), kWithoutAsking, STATX_TYPE, &info) != 0 || !S_ISCHR(info.stx_mode))
    return std::nullopt;
  return DeviceNode{info.stx_rdev_major, info.stx_rdev_minor};
}

/// The link's own permissions are those by which the file was opened (proc(5)). With none it is open for ioctl(2)
/// alone, by an access mode that is not documented, or to be pointed at.
bool is_pointed_at(const fs::path& link) {
  struct stat own{};
  if (::lstat(link.c_str(), &own) != 0 || (own.st_mode & (S_IRUSR | S_IWUSR)) != 0) return false;
  const fs::path info = link.parent_path().parent_path() / "fdinfo" / link.filename();
  constexpr std::string_view kFlags = "flags:\t";
  for (const std::string& line : split(read_text(info.string()).value_or(""), '\n'))
    if (line.starts_with(kFlags))
      return (parse_number<unsigned>(std::string_view(line).substr(kFlags.size()), 8).value_or(0) & O_PATH) != 0;
  return false;
}

/// `owner`: folder of a process or thread.
void add_open(const fs::path& owner, const std::vector<DeviceNode>& nodes, size_t& looks, std::set<DeviceNode>& open) {
  std::error_code error;
  for (fs::directory_iterator entry(owner / "fd", error), end; looks > 0 && !error && entry != end;
       entry.increment(error)) {
    --looks;
    const auto node = device_at(entry->path());
    if (node && std::ranges::binary_search(nodes, *node) && !is_pointed_at(entry->path())) open.insert(*node);
  }
}

/// False where the kernel cannot tell.
bool have_different_tables(int thread, int other) { return ::syscall(SYS_kcmp, thread, other, KCMP_FILES, 0, 0) > 0; }

}  // namespace

std::set<DeviceNode> open_nodes(const std::string& process, const std::vector<DeviceNode>& nodes, size_t& looks) {
  std::set<DeviceNode> open;
  if (nodes.empty() || looks == 0) return open;
  add_open(process, nodes, looks, open);
  const auto first = parse_number<int>(fs::path(process).filename().string());
  std::error_code error;
  for (fs::directory_iterator entry(process + "/task", error), end; looks > 0 && !error && entry != end;
       entry.increment(error)) {
    const auto thread = parse_number<int>(entry->path().filename().string());
    if (!first || !thread || *thread == *first) continue;
    --looks;
    if (have_different_tables(*thread, *first)) add_open(entry->path(), nodes, looks, open);
  }
  return open;
}

bool has_open(const process::ProcessId& process, const std::vector<DeviceNode>& nodes, size_t most) {
  return !open_nodes(folder_of(process), nodes, most).empty() || most == 0;
}

Result<void> check_unopened(const std::vector<process::ProcessId>& family, const std::vector<DeviceNode>& nodes) {
  size_t looks = kMostLooks;
  for (const process::ProcessId& process : family) {
    if (!open_nodes(folder_of(process), nodes, looks).empty())
      return usage_error(
          fmt::format("process {} has opened a device already, which a lease cannot take back: start it anew with "
                      "`remuda run`",
                      process.pid));
    if (looks == 0)
      return usage_error(
          fmt::format("process {} and those below it have so many files and threads that it cannot be seen "
                      "whether they have opened a device: start it anew with `remuda run`",
                      family.front().pid));
  }
  return {};
}

}  // namespace remuda::confine
