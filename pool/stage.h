// Stage: what a job is, or what has become of it, in one word.
#pragma once

#include "pool/job.h"

namespace remuda::pool {

enum class Stage {
  waiting,
  paused,  ///< waits, and does not start until it is resumed
  running,
  done,  ///< ended well: succeeded() of job.h
  failed,
  cancelled,
};

Stage stage_of(const Job& job);

/// The exit status that stands for the end of a job: its own, or 128 and the number of the signal. 0 only where it
/// succeeded: 125 for one that was cancelled before it started.
int exit_status_of(const Job& job);

}  // namespace remuda::pool

template <>
struct remuda::Words<remuda::pool::Stage> {
  static constexpr std::array table{
      std::pair{pool::Stage::waiting, "waiting"}, std::pair{pool::Stage::paused, "paused"},
      std::pair{pool::Stage::running, "running"}, std::pair{pool::Stage::done, "done"},
      std::pair{pool::Stage::failed, "failed"},   std::pair{pool::Stage::cancelled, "cancelled"}};
};
