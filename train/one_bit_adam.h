// OneBitAdam: AdamW over slow links: the compressed stage of 1-bit Adam (Tang et al. 2021, arXiv:2102.02888).
//
// After a warm-up by the ShardedOptimizer the variance is frozen, and what hosts send each other from then on is their
// momentum, in one bit per parameter (compress/). States: direction and frozen variance, 8 bytes per parameter on each
// rank; a leader has 4 (1 + 1 / hosts) more of what it owes.
#pragma once

#include <optional>

#include "compress/one_bit_sum.h"
#include "train/compressed_optimizer.h"

namespace remuda::train {

class OneBitAdam final : public CompressedOptimizer {
 public:
  /// Collective, between two steps. Goes on from where `warm` is, which is not needed afterwards. `rule` is AdamW's,
  /// the parameters pass check_type(). The engine outlives it.
  static Result<std::unique_ptr<CompressedOptimizer>> create(Engine& engine, const UpdateRule& rule, OwnedState& warm);

 private:
  using CompressedOptimizer::CompressedOptimizer;
  Result<void> open(OwnedState& warm);
  Result<void> exchange_and_step(double gradient_factor, const std::vector<GroupSettings>& settings) override;
  Result<std::span<const std::byte>> add_up(float take);
  void write_owed(std::span<float> to) override;
  void owe(std::span<const float> all) override;
  size_t owed_bytes() const override;
  std::span<float> direction() const { return state(0); }
  std::span<float> inverse_root() const { return state(1); }

  std::optional<compress::OneBitSum> sum_;  ///< on leaders
  std::vector<std::byte> packed_;           ///< on hosts of several ranks
};

}  // namespace remuda::train
