#include "cli/calling_shell.h"

#include <charconv>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

namespace remuda {
namespace {

struct Origin {
  int parent = 0;
  bool only_forked = false;  ///< since then it has not called exec
};

std::optional<Origin> origin_of(int pid) {
  constexpr unsigned kForkedNoExec = 0x40;   // PF_FORKNOEXEC, linux/sched.h
  constexpr size_t kParent = 1, kFlags = 6;  // fields 4 and 9 of /proc/PID/stat, proc(5)
  constexpr size_t kLongest = 8192;
  const auto text = read_text(fmt::format("/proc/{}/stat", pid), kLongest);
  const size_t name_end = text ? text->rfind(") ") : std::string::npos;
  if (name_end == std::string::npos) return std::nullopt;
  const auto fields = split(std::string_view(*text).substr(name_end + 2), ' ');
  if (fields.size() <= kFlags) return std::nullopt;
  Origin origin;
  unsigned flags = 0;
  std::from_chars(fields[kParent].data(), fields[kParent].data() + fields[kParent].size(), origin.parent);
  std::from_chars(fields[kFlags].data(), fields[kFlags].data() + fields[kFlags].size(), flags);
  origin.only_forked = (flags & kForkedNoExec) != 0;
  return origin;
}

}  // namespace

Result<ProcessId> calling_shell() {
  int pid = ::getppid();
  for (auto origin = origin_of(pid); origin && origin->only_forked && origin->parent > 1; origin = origin_of(pid))
    pid = origin->parent;
  if (const auto shell = process_id(pid); shell && pid > 0) return *shell;
  return usage_error("the shell that this ran in has ended or cannot be seen; name one with --for PID");
}

}  // namespace remuda
