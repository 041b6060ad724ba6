// The flags of `remuda train`, as typed.
#pragma once

#include <string>
#include <vector>

#include "cli/jobs/run_flags.h"

namespace remuda::cli {

struct TrainFlags {
  std::string file, init;
  std::vector<std::string> devices, settings, compare;
  int profile = 0;           ///< steps; 0: none
  bool resume = false;       ///< go on from a checkpoint
  std::string trace;         ///< where the record of these steps goes
  int repeats = 3;           ///< pairs of runs, with --compare
  bool writes_files = true;  ///< false for runs that are compared: what the job would write is left out
  std::string json, step_times;
  std::string transport = "auto";
  std::string join;  ///< HOST:PORT of a run to join, with one device
  int port = 0;
  RunFlags job;  ///< the request, how the job runs, the machine; and quiet and dry_run, which mean the run itself here
};

}  // namespace remuda::cli
