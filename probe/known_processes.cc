#include "probe/known_processes.h"

#include <cctype>
#include <fmt/format.h>
#include <sys/stat.h>

#include "probe/process.h"

namespace remuda::probe {
namespace {

/// Whether its owner and its start are known, and need not be read again. One whose owner's name was not to be had, as
/// while a directory of users does not answer, has a number in its place.
bool is_complete(const Process& process) {
  return process.start_time_s.has_value() && std::isdigit(process.user.value_or("0")[0]) == 0;
}

}  // namespace

const Process& KnownProcesses::describe(int pid) {
  const double now_s = clock_.now_s();
  const auto [found, is_new] = known_.try_emplace(pid);
  Known& known = found->second;
  known.is_used = true;
  const bool is_fresh = !is_new && now_s - known.read_s < kFresh_s;
  if (is_fresh && known.is_there && now_s - known.seen_s < kLook_s) return known.process;
  struct stat info{};
  const bool is_there = ::stat(fmt::format("{}/{}", proc_, pid).c_str(), &info) == 0;
  const Folder folder{info.st_ino, info.st_ctim.tv_sec, info.st_ctim.tv_nsec, info.st_uid};
  known.is_there = is_there;
  known.seen_s = now_s;
  const bool is_same = !is_new && is_there && known.folder == folder;
  if (is_fresh && is_same) return known.process;
  known.folder = folder;
  known.read_s = now_s;
  if (is_same && is_complete(known.process))
    known.process.command = read_command(pid, proc_);
  else
    known.process = describe_process(pid, proc_);
  return known.process;
}

void KnownProcesses::forget_others() {
  std::erase_if(known_, [](const auto& one) { return !one.second.is_used; });
  for (auto& [_, known] : known_) known.is_used = false;
}

}  // namespace remuda::probe
