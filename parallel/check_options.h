// What the ranks check together before they train one model: that each can train its module with its options, and that
// the options are those of all. Ranks that differ would wait for each other in vain, or train different things.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "parallel/module_view.h"
#include "parallel/parallel.h"

namespace remuda::parallel {

/// One rank's side of a DataParallel that is to be made.
struct Candidate {
  const Options& options;
  std::vector<train::NamedTensor> parameters;  ///< to be trained, those of the last layer first, as gradients come
  std::vector<size_t> groups;                  ///< of each parameter: 0 decays, 1 does not
  torch::Device device;                        ///< the group's
  torch::ScalarType compute_type;              ///< that of Options::precision on this device
  size_t norms = 0;                            ///< how many SynchronizedBatchNorm the module has
};
/// The options outlive it.
Candidate candidate_of(const Options& options, const ModuleView& module, torch::Device device);

/// Collective, one round. Throws a usage Error on all ranks where one of them cannot take part, where options differ
/// (Options::precision may), and where a type is asked for that no device has.
void check_options(comm::Communicator& communicator, const Candidate& mine);

}  // namespace remuda::parallel
