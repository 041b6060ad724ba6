#include "probe/process.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fmt/format.h>
#include <map>
#include <string_view>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"
#include "probe/sysfs.h"
#include "process/status.h"
#include "process/user_name.h"

namespace remuda::probe {
namespace {

constexpr size_t kMaxCommand = 200;

Missing not_stated(const std::string& path, const char* what) {
  return {MissingReason::unsupported, fmt::format("{} reports no {}", path, what)};
}

/// Thousands of processes are of few users, whose names stand in a database that is read as a whole: so each is asked
/// for once a minute.
std::string name_of(int uid) {
  constexpr double kFresh_s = 60;
  constexpr size_t kMost = 1000;
  thread_local std::map<int, std::pair<std::string, double>> known;
  if (known.size() > kMost) known.clear();
  auto& [name, at_s] = known[uid];
  const double now_s = monotonic_s();
  if (!name.empty() && now_s - at_s < kFresh_s) return name;
  name = process::user_name(uid);
  at_s = now_s;
  return name;
}

/// The real one.
Reading<std::string> read_user(const std::string& folder) {
  const std::string path = folder + "/status";
  const auto status = sysfs::read(path);
  if (!status.has_value()) return status.missing();
  const std::vector<int> users = process::parse_status(status.value()).users;
  if (users.empty()) return not_stated(path, "user");
  return name_of(users.front());
}

Reading<std::string> command_in(const std::string& folder) {
  const auto line = sysfs::read(folder + "/cmdline");
  if (line.has_value() && !line.value().empty()) return clean_command(line.value());
  const auto name = sysfs::read_word(folder + "/comm");
  if (!name.has_value() && !line.has_value()) return line.missing();
  return sysfs::map(name, [](const std::string& text) { return clean_command(text); });
}

/// When the machine was started, in whole seconds since 1970. Not from /proc/stat, which takes milliseconds to read
/// where there are many cores.
double boot_time_s() {
  timespec now{}, since_boot{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const double nanoseconds = static_cast<double>(now.tv_nsec - since_boot.tv_nsec);
  return std::round(static_cast<double>(now.tv_sec - since_boot.tv_sec) + nanoseconds * 1e-9);
}

/// Field 22 of the process's stat, in clock ticks since boot (proc(5)); the name in field 2 may hold anything, so
/// fields are counted from its last bracket.
Reading<double> read_start_time(const std::string& folder) {
  constexpr size_t kField = 20;  // after the name, as of the space behind its bracket
  const std::string path = folder + "/stat";
  const auto stat = sysfs::read(path);
  if (!stat.has_value()) return stat.missing();
  const size_t name_end = stat.value().rfind(')');
  const auto fields = split(std::string_view(stat.value()).substr(std::min(name_end, stat.value().size())), ' ');
  const auto ticks = fields.size() > kField ? parse_number<int64_t>(fields[kField]) : std::nullopt;
  if (!ticks || *ticks < 0) return not_stated(path, "start time");
  return boot_time_s() + static_cast<double>(*ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

std::string clean_command(std::string_view text) {
  std::string spaced;
  for (const char c : text) {
    const bool is_break = static_cast<unsigned char>(c) < ' ' || c == '\x7f' || c == ' ';
    if (!is_break)
      spaced += c;
    else if (!spaced.empty() && spaced.back() != ' ')
      spaced += ' ';
  }
  while (spaced.ends_with(' ')) spaced.pop_back();
  std::string clean = printable(spaced);
  if (clean.size() <= kMaxCommand) return clean;
  size_t end = kMaxCommand;
  while (end > 0 && (static_cast<unsigned char>(clean[end]) & 0xc0) == 0x80) --end;
  return clean.substr(0, end);
}

Reading<std::string> read_command(int pid, const std::string& proc) {
  return command_in(fmt::format("{}/{}", proc, pid));
}

Process describe_process(int pid, const std::string& proc) {
  const std::string folder = fmt::format("{}/{}", proc, pid);
  Process process;
  process.pid = pid;
  if (!sysfs::exists(folder)) {
    const Missing gone{MissingReason::lost,
                       fmt::format("there is no {}: the process has ended or is outside this pid namespace", folder)};
    process.user = gone, process.command = gone, process.start_time_s = gone;
    return process;
  }
  process.user = read_user(folder);
  process.command = command_in(folder);
  process.start_time_s = read_start_time(folder);
  return process;
}

}  // namespace remuda::probe
