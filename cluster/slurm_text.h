// What Slurm's commands print about the devices of a node and of its jobs. Pure readers of texts that may be anything.
//
// Sources: scontrol(1), gres.conf(5) and what Slurm 22.05 prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace remuda::cluster {

/// The device files of the gres "gpu" of this node, as `slurmd -G` lists them: their order numbers them for Slurm.
std::vector<std::string> parse_gres_files(std::string_view text);

/// The numbers of the GPUs that are given to jobs, as `scontrol show node -d` says (GresUsed); ascending. None where it
/// says only how many they are, as it does for GPUs without a type.
std::vector<int> parse_used_gpus(std::string_view text);

struct SlurmJob {
  std::string user;
  std::vector<int> gpus;  ///< on this node, by Slurm's numbers, ascending
  bool operator==(const SlurmJob&) const = default;
};
/// That job's part of a node, as `scontrol show job -d` says, perhaps beside others of its array.
SlurmJob parse_slurm_job(std::string_view text, int64_t id, const std::string& node);

/// Whether a list of nodes as Slurm writes it, "a,box[01-03,7]", has this one.
bool has_node(std::string_view list, const std::string& node);

/// The job of a cgroup that slurmstepd has made: ".../job_123/step_0/...".
std::optional<int64_t> job_of_cgroup(std::string_view path);

}  // namespace remuda::cluster
