// PowerSgd: SGD and AdamW over slow links: hosts send each other gradients as matrices of low rank (Vogels et al. 2019,
// "PowerSGD", arXiv:1905.13727; compress/low_rank_sum.h). Vectors and small matrices go as they are.
//
// The optimizer is the job's, with all its state; only the gradient is another one. Its norm is known on every rank,
// and limited where the job says so. States are UpdateRule's, 4 bytes per parameter each on every rank, and so is the
// average; a leader has 4 more of what it owes.
#pragma once

#include <optional>

#include "compress/low_rank_sum.h"
#include "train/compressed_optimizer.h"

namespace remuda::train {

class PowerSgd final : public CompressedOptimizer {
 public:
  struct Options {
    size_t rank = 4;       ///< vectors of each side
    double clip_norm = 0;  ///< see ParallelOptions
    double average = 0;    ///< likewise
  };
  /// Collective, between two steps. Goes on from where `warm` is, which is not needed afterwards. The parameters pass
  /// check_type(). The engine outlives it.
  static Result<std::unique_ptr<CompressedOptimizer>> create(Engine& engine, const UpdateRule& rule,
                                                             const Options& options, OwnedState& warm);
  /// Of each parameter, in their order: its first dimension are the rows, as PyTorch's powerSGD_hook has it.
  static std::vector<compress::Shape> shapes_of(const FlatParameters& flat);
  /// That hosts add up in a step, in place of all.
  static double sent_values(const FlatParameters& flat, size_t rank);

 private:
  PowerSgd(Engine& engine, const UpdateRule& rule, const Options& options, const OwnedState& warm)
      : CompressedOptimizer(engine, rule, warm), options_(options) {}
  /// The same, where they lie in the flat tensors.
  static std::vector<compress::Placed> matrices_of(const FlatParameters& flat);
  Result<void> open(OwnedState& warm);
  Result<void> exchange_and_step(double gradient_factor, const std::vector<GroupSettings>& settings) override;
  void descend(comm::Chunk range, double factor, const GroupSettings& group) const;
  void write_owed(std::span<float> to) override;
  void owe(std::span<const float> all) override;
  size_t owed_bytes() const override;

  const Options options_;
  std::optional<compress::LowRankSum> sum_;  ///< on leaders
};

}  // namespace remuda::train
