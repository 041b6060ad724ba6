// ProcessStatus: fields of a process's /proc/PID/status; see proc(5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace remuda::process {

struct ProcessStatus {
  std::string name;         ///< without characters that cannot be shown
  std::vector<int> users;   ///< four: real, effective, saved, of the file system; empty where it says none
  std::vector<int> groups;  ///< the same of its group
  std::vector<int> further_groups;
  uint64_t caught = 0;           ///< signals that it handles: bit N - 1 is of signal N
  int64_t descriptor_slots = 0;  ///< of the first thread's table of descriptors, which never shrinks
};

/// From the text of the file; what it does not say is as above. Pure.
ProcessStatus parse_status(const std::string& text);

/// Whether the process has a handler for the signal, so that it does not end by it; not of one that cannot be seen.
bool handles(int pid, int signal);

/// The user whose process it is, where all of its user ids are that one's; nothing where they differ, as those of a
/// program with more rights than who started it, or there is no such process.
std::optional<int> sole_user_of(int pid);

}  // namespace remuda::process
