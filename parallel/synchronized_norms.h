// SynchronizedNorms: the batch norms of a user's module that normalise the samples of all ranks, as long as this lives.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "parallel/parallel.h"
#include "train/model/batch_norm.h"
#include "train/wait_hooks.h"

namespace remuda::parallel {

/// Those of the module, in the order in which it registered them.
std::vector<std::shared_ptr<SynchronizedBatchNormImpl>> synchronized_norms_of(torch::nn::Module& module);

class SynchronizedNorms {
 public:
  explicit SynchronizedNorms(std::vector<std::shared_ptr<SynchronizedBatchNormImpl>> modules)
      : modules_(std::move(modules)) {}
  /// They are ordinary ones again, unless another has taken them.
  ~SynchronizedNorms();
  SynchronizedNorms(const SynchronizedNorms&) = delete;

  size_t count() const { return modules_.size(); }
  /// Collective, where there are any.
  void connect(comm::Communicator& communicator, train::WaitHooks hooks);
  /// Null before connect(), and where there are none.
  train::NormExchange* exchange() const { return exchange_.get(); }

 private:
  const std::vector<std::shared_ptr<SynchronizedBatchNormImpl>> modules_;
  std::vector<std::shared_ptr<train::SynchronizedNorm>> layers_;
  std::unique_ptr<train::NormExchange> exchange_;
};

}  // namespace remuda::parallel
