// Credentials: as whom a process runs, for another one to be started the same way.
#pragma once

#include <optional>
#include <vector>

#include "process/process_id.h"

namespace remuda::process {

struct Credentials {
  int uid = 0, gid = 0;
  std::vector<int> groups;  ///< supplementary ones
  bool operator==(const Credentials&) const = default;
};

/// Those of a process; nothing where it has ended, or has several of a kind, as after setuid(2).
std::optional<Credentials> credentials_of(const ProcessId& process);

}  // namespace remuda::process
