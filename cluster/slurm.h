// The devices that Slurm gives to jobs on this node, as its own commands and the cgroups of slurmstepd show them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/command.h"
#include "cluster/slurm_text.h"
#include "device/inventory.h"
#include "pool/job.h"

namespace remuda::cluster {

/// One thread. Remembers what it was told: Slurm is asked every few seconds at the most, and where it does not answer,
/// what it said last holds.
class Slurm {
 public:
  struct Options {
    Run run;                        ///< each command; bounded in time
    std::function<bool()> is_here;  ///< whether slurmd runs on this machine
    std::string node;               ///< its name in Slurm
    std::string proc = "/proc", sysfs = "/sys";
  };
  explicit Slurm(Options options, Clock& clock = steady_clock()) : options_(std::move(options)), clock_(clock) {}

  /// All GPUs of which gres.conf has the files, also those that no job has. None where slurmd does not run here. Where
  /// it does not say which are its, all are taken to be.
  std::vector<pool::Allocation> allocations(const Inventory& inventory);

 private:
  void ask();
  std::vector<int64_t> jobs_here() const;
  std::string holder_of(int gpu) const;

  const Options options_;
  Clock& clock_;
  std::optional<double> files_at_s_, asked_at_s_;
  std::optional<std::vector<std::string>> files_;
  std::vector<int> used_;
  std::map<int64_t, SlurmJob> jobs_;
};

/// For this machine.
Slurm::Options slurm_here();

}  // namespace remuda::cluster
