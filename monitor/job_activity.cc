#include "monitor/job_activity.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "process/stat.h"

namespace remuda::monitor {
namespace {

/// Logs and heartbeats are less, and a loader of samples reads more.
constexpr double kMuchRead = 1 << 20;  // bytes/s

/// What the process has read so far, from files or pipes; nothing where this user may not know.
std::optional<int64_t> bytes_read(const std::string& proc, int pid) {
  const auto text = read_text(fmt::format("{}/{}/io", proc, pid), 4096);
  if (!text) return std::nullopt;
  for (const std::string& line : split(*text, '\n'))
    if (line.starts_with("rchar: ")) return parse_number<int64_t>(line.substr(7));
  return std::nullopt;
}

/// Whether that process is there still: of one that has ended, nothing can be read, and nothing is hidden.
bool is_there(int pid, int64_t start_ticks) {
  const auto stat = process::process_stat(pid);
  return stat && stat->start_ticks == start_ticks && stat->state != 'Z' && stat->state != 'X';
}

}  // namespace

void JobActivity::look(double now_s, std::span<const int> pids, Seen& seen) {
  std::map<std::pair<int, int64_t>, Used> now;
  Used used;
  const bool is_first = before_s_ < 0;
  for (const int pid : pids) {
    const auto stat = process::process_stat(pid);
    if (!stat) continue;
    if (stat->state == 'D') seen.waits_for_input = true;
    const auto key = std::pair(pid, stat->start_ticks);
    const auto bytes = bytes_read(proc_, pid);
    if (!bytes && is_there(pid, stat->start_ticks)) seen.hides_input = true;
    const Used& one = now[key] = {stat->cpu_ticks, bytes.value_or(0)};
    const Used before = before_.contains(key) ? before_.at(key) : Used{};
    used.ticks += one.ticks - before.ticks;
    used.bytes += std::max<int64_t>(0, one.bytes - before.bytes);
  }
  const double elapsed_s = now_s - before_s_;
  if (!is_first && !now.empty() && elapsed_s > 0) {
    static const auto ticks_per_s = static_cast<double>(::sysconf(_SC_CLK_TCK));
    seen.cores = static_cast<double>(used.ticks) / ticks_per_s / elapsed_s;
    if (static_cast<double>(used.bytes) / elapsed_s > kMuchRead) seen.waits_for_input = true;
  }
  before_ = std::move(now);
  before_s_ = now_s;
}

}  // namespace remuda::monitor
