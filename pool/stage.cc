#include "pool/stage.h"

#include "pool/transitions.h"
#include "process/spawn.h"

namespace remuda::pool {

Stage stage_of(const Job& job) {
  if (job.state == JobState::running) return Stage::running;
  if (job.state == JobState::waiting) return job.paused ? Stage::paused : Stage::waiting;
  if (succeeded(job)) return Stage::done;
  return job.cancelled ? Stage::cancelled : Stage::failed;
}

int exit_status_of(const Job& job) {
  const int code = process::exit_code({job.exit_status, job.signal});
  return code == 0 && !succeeded(job) ? kEndedByRemuda : code;
}

}  // namespace remuda::pool
