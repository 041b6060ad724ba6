#include "process/stat.h"

#include <fmt/format.h>
#include <string_view>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"

namespace remuda::process {

bool is_running(const ProcessStat& stat) {
  return (stat.state != 'Z' && stat.state != 'X' && stat.state != 'x') || (stat.state == 'Z' && stat.threads > 1);
}

std::optional<ProcessStat> process_stat(int pid) {
  constexpr size_t kLongest = 8192;
  // Fields 3, 4, 9, 14, 15, 20, 22 and 27.
  constexpr size_t kState = 0, kParent = 1, kFlags = 6, kUser = 11, kSystem = 12, kThreads = 17, kStart = 19,
                   kCodeEnd = 24;
  if (pid <= 0) return std::nullopt;
  const auto text = read_text(fmt::format("/proc/{}/stat", pid), kLongest);
  const size_t name_start = text ? text->find(" (") : std::string::npos;
  const size_t name_end = text ? text->rfind(") ") : std::string::npos;  // "PID (NAME) STATE PARENT ..."
  if (name_end == std::string::npos || name_start >= name_end) return std::nullopt;
  const auto fields = split(std::string_view(*text).substr(name_end + 2), ' ');
  if (fields.size() <= kCodeEnd || fields[kState].size() != 1) return std::nullopt;
  const auto parent = parse_number<int>(fields[kParent]);
  const auto flags = parse_number<unsigned>(fields[kFlags]);
  const auto threads = parse_number<int64_t>(fields[kThreads]), start = parse_number<int64_t>(fields[kStart]);
  const auto code_end = parse_number<uint64_t>(fields[kCodeEnd]);
  const auto user = parse_number<int64_t>(fields[kUser]), system = parse_number<int64_t>(fields[kSystem]);
  if (!user || !system || !parent || !flags || !threads || !start || !code_end) return std::nullopt;
  return ProcessStat{.name = text->substr(name_start + 2, name_end - name_start - 2),
                     .state = fields[kState][0],
                     .parent = *parent,
                     .cpu_ticks = *user + *system,
                     .flags = *flags,
                     .threads = *threads,
                     .start_ticks = *start,
                     .code_end = *code_end};
}

}  // namespace remuda::process
