// CompressedOptimizer: AdamW over slow links: the compressed stage of 1-bit Adam (Tang et al. 2021, arXiv:2102.02888).
//
// After a warm-up by the ShardedOptimizer the variance is frozen, and what hosts send each other from then on is their
// momentum, in one bit per parameter (compress/). The ranks of one host add their gradients up first, through its
// memory, in float32; the first of them, the host's leader, speaks for all. What a bit cannot say is owed, and sent
// later: what was given to all and what hosts owe is always the sum of all gradients.
//
// So every rank has the whole of the state, in memory of its host, in place of a part of it: direction and frozen
// variance, 8 bytes per parameter; a leader 4 (1 + 1 / hosts) more of what it owes. All ranks make the same step from
// the same bits, in arithmetic that rounds alike everywhere. One thread; between two steps, or in update().
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "compress/one_bit_sum.h"
#include "train/gradient_reducer.h"
#include "train/owned_state.h"
#include "train/update_rule.h"

namespace remuda::train {

class CompressedOptimizer final : public OwnedState {
 public:
  /// A usage error where parameters are of another type than float32.
  static Result<void> check_type(torch::ScalarType parameters);
  /// Collective, between two steps. Goes on from where `warm` is, which is not needed afterwards. `rule` is AdamW's,
  /// the parameters pass check_type(). The engine outlives it.
  static Result<std::unique_ptr<CompressedOptimizer>> create(Engine& engine, const UpdateRule& rule, OwnedState& warm);

  /// Collective. One step with the gradients that ranks have in FlatParameters::gradients(), on the host, each its own;
  /// their sum times `gradient_factor`. `settings`, one element per group, are rank 0's.
  Result<void> step(double gradient_factor, const std::vector<GroupSettings>& settings);
  /// Seconds of the last step(): until hosts have exchanged what they packed, and all have made the same step from it.
  double wait_s() const { return wait_s_; }
  /// As Communicator::set_timeout(); Engine::timeout_s is the same by then.
  void set_timeout(double seconds);
  /// What this rank has sent to other hosts.
  uint64_t sent_bytes() const { return between_ ? between_->sent_bytes() : 0; }

  /// States: direction, inverse root of the variance, what all owe. The last lies in the memory of the gradients, which
  /// settle() overwrites.
  Result<void> settle() override;
  std::vector<Owned> owned() override;
  int64_t steps() const override { return steps_; }
  Result<void> resume(int64_t steps) override;
  size_t state_bytes() const override;
  bool is_on_host() const override { return true; }

 private:
  /// Of a parameter group, in one step. Sent as raw bytes.
  struct Rates {
    float keep = 1;     ///< of a value
    float descend = 0;  ///< along the direction
  };

  CompressedOptimizer(Engine& engine, const UpdateRule& rule, int64_t steps);
  Result<void> connect();
  Result<void> take_over(OwnedState& warm);
  Result<void> gather(std::span<float> whole);
  Result<void> free_host() const;
  Result<std::vector<Rates>> agree(const std::vector<GroupSettings>& settings) const;
  Result<void> add_up_here();
  Result<std::span<const std::byte>> add_up(float take);
  void descend(const std::vector<Rates>& rates);
  std::span<float> values() const;
  std::span<float> gradients() const;

  Engine& engine_;
  const UpdateRule rule_;
  int64_t steps_;
  int64_t hosts_ = 1;
  std::unique_ptr<comm::Communicator> here_;     ///< of this host's ranks; null where there is one
  std::unique_ptr<comm::Communicator> between_;  ///< of the leaders; null on other ranks
  std::optional<compress::OneBitSum> sum_;       ///< on leaders
  std::span<float> direction_, inverse_root_;    ///< of all parameters, in memory of the communicator
  std::span<float> here_slice_;                  ///< in memory of `here_`
  std::vector<std::byte> packed_;                ///< on hosts of several ranks
  double wait_s_ = 0;
};

}  // namespace remuda::train
