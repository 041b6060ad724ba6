// IdleResponse: what a keeper does, as its user, when the policy against idle devices takes a step with its job: it
// tells the user, in the job's log and at the terminal, and sends the signal by which the job writes a checkpoint.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pool/idle_notice.h"
#include "process/process_id.h"
#include "run/front_link.h"
#include "run/run_spec.h"

namespace remuda::run {

/// Sends the signal to those of the processes that have a handler for it, and so do not end by it. Returns how many.
int signal_handlers(const std::vector<process::ProcessId>& processes, int signal);

/// One thread; the arguments must outlive it.
class IdleResponse {
 public:
  IdleResponse(const RunSpec& spec, int64_t job, FrontLink& link) : spec_(spec), job_(job), link_(link) {}

  /// Does what is new in the notice. `members` are the job's processes.
  void take(const pool::IdleNotice& notice, const std::function<std::vector<process::ProcessId>()>& members);

 private:
  void say(const std::string& text);

  const RunSpec& spec_;
  const int64_t job_;
  FrontLink& link_;
  pool::IdleNotice seen_;
};

}  // namespace remuda::run
