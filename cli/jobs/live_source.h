// LiveSource: this machine and its pool as the page shows them (web/source.h).
#pragma once

#include <optional>
#include <string>

#include "cli/machine.h"
#include "run/caretaker.h"
#include "web/source.h"

namespace remuda::cli {

class LiveSource : public web::Source {
 public:
  /// `user`: who looks. Other users' command lines are left out.
  LiveSource(MachineFlags flags, std::string user);

  Result<Json> snapshot() override;
  /// What was before is not known: nobody has kept it.
  Result<web::History> history(const web::HistoryQuery& query) override;

 private:
  const MachineFlags flags_;
  const std::string user_;
  std::optional<run::Caretaker> caretaker_;  ///< snapshot()'s own; opened anew after an error
};

}  // namespace remuda::cli
