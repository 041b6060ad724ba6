// LiveSource: this machine and its pool as the page shows them (web/source.h).
#pragma once

#include <string>

#include "cli/machine.h"
#include "cli/watch/watch_thread.h"
#include "web/source.h"

namespace remuda::cli {

class LiveSource : public web::Source {
 public:
  /// `user`: who looks. Other users' command lines are left out. `folder`: of the history, which is kept from here on
  /// unless another process keeps it.
  LiveSource(MachineFlags flags, std::string folder, std::string user);

  Result<Json> snapshot() override;
  Result<web::History> history(const web::HistoryQuery& query) override;
  Result<std::string> metrics(web::Metrics format) override;

 private:
  const std::string user_;
  WatchThread watch_;
};

}  // namespace remuda::cli
