// LiveSource: this machine and its pool as the page shows them (snapshot/source.h).
#pragma once

#include <string>

#include "cli/machine.h"
#include "cli/watch/watch_thread.h"
#include "snapshot/source.h"

namespace remuda::cli {

class LiveSource : public snapshot::Source {
 public:
  /// `user`: who looks. Other users' command lines are left out. `folder`: of the history, which is kept from here on
  /// unless another process keeps it.
  LiveSource(MachineFlags flags, std::string folder, std::string user);

  Result<Json> snapshot() override;
  Result<snapshot::History> history(const snapshot::HistoryQuery& query) override;
  Result<std::string> metrics(snapshot::Metrics format) override;

 private:
  const std::string user_;
  WatchThread watch_;
};

}  // namespace remuda::cli
