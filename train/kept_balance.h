// KeptBalance: what a run has learned of its devices, kept in its checkpoints, so that the next run on the same ones
// splits its first batch as the last one was, and need not measure them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "balance/cost_line.h"
#include "base/json.h"
#include "train/memory_plan.h"

namespace remuda::train {

/// Of one rank.
struct KeptDevice {
  uint64_t device = 0;                    ///< which device it is, and how it computes: a hash, comparable only
  std::vector<balance::BatchTime> alone;  ///< as measured before training, largest first; infinite where out of memory
  std::vector<balance::BatchTime> known;  ///< what the balancer knew at last (Balancer::known_times())
  MemoryNeed need;                        ///< `held` and `room` are of the moment, and not kept
  double update_s = 0;                    ///< of all parameters, if it owned them; part of `alone`. 0: not known
  bool is_known = true;                   ///< else there is nothing but `device`
};

struct KeptBalance {
  bool recomputes = false;  ///< blocks of the model, as measured
  bool spills = false;      ///< activations, as measured
  std::vector<KeptDevice> ranks;

  /// Whether these devices are they, rank by rank.
  bool is_of(const std::vector<uint64_t>& devices) const;
  /// The same with these devices: of those that are others, or more, nothing is known.
  KeptBalance with(const std::vector<uint64_t>& devices) const;
  /// As it was measured; null where it is not known.
  const std::vector<balance::BatchTime>* alone_of(int rank) const;
  bool knows_all() const;
};

Json to_json(const KeptBalance& balance);
/// Nothing where the text is no such thing, or has times that no device can have.
std::optional<KeptBalance> parse_kept_balance(const Json& json);

}  // namespace remuda::train
