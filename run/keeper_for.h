// A keeper for a process that is there already, and is no child of it: that of a hold, or of what was adopted.
//
// The front, which is what the user has started, ends once the process has its devices; the keeper stays in the
// background, and depends on that process alone: not on the front's terminal, open files or folder.
#pragma once

#include <functional>

#include "process/process_id.h"
#include "run/caretaker.h"
#include "run/front_link.h"
#include "run/relay.h"

namespace remuda::run {

struct KeptProcess {
  process::ProcessId id;
  const char* name;  ///< "its shell", for messages
};

/// Runs `keep` in a keeper. What it tells its front, `report` receives, up to Kind::started or Kind::ended; an error of
/// `keep` is told as the latter. Returns 0 after Kind::started, else the exit code of run_front(). The caller has no
/// pool open and one thread. An error (usage) where the process has ended.
Result<int> run_keeper_for(const KeptProcess& kept, const OpenPool& open,
                           const std::function<Result<void>(Caretaker, FrontLink&)>& keep, const Report& report);

/// For the keeper: /dev/null in place of stdin, stdout and stderr, whose readers wait until they are closed.
Result<void> leave_streams();

}  // namespace remuda::run
