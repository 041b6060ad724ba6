#include "parallel/synchronized_norms.h"

#include "parallel/raise.h"

namespace remuda::parallel {

torch::Tensor SynchronizedBatchNormImpl::forward(const torch::Tensor& input) {
  _check_input_dim(input);
  if (together_ && is_training()) return together_(input);
  return train::local_batch_norm({weight, bias, running_mean, running_var, num_batches_tracked}, options, is_training(),
                                 input);
}

void SynchronizedBatchNormImpl::reset() {
  together_ = nullptr;  // a clone's is that of its original
  owner_ = nullptr;
  NormImplBase::reset();
}

void SynchronizedBatchNormImpl::_check_input_dim(const torch::Tensor& input) {
  TORCH_CHECK(input.dim() >= 2, "expected [n, channels, ...] (got ", input.dim(), " dimensions)");
}

std::vector<std::shared_ptr<SynchronizedBatchNormImpl>> synchronized_norms_of(torch::nn::Module& module) {
  std::vector<std::shared_ptr<SynchronizedBatchNormImpl>> norms;
  for (const auto& one : module.modules(/*include_self=*/false))
    if (auto norm = std::dynamic_pointer_cast<SynchronizedBatchNormImpl>(one)) norms.push_back(std::move(norm));
  if (dynamic_cast<SynchronizedBatchNormImpl*>(&module))
    norms.push_back(std::dynamic_pointer_cast<SynchronizedBatchNormImpl>(module.shared_from_this()));
  return norms;
}

SynchronizedNorms::~SynchronizedNorms() {
  for (const auto& module : modules_)
    if (module->owner_ == this) module->together_ = nullptr;
}

void SynchronizedNorms::connect(comm::Communicator& communicator, train::WaitHooks hooks) {
  if (modules_.empty() || communicator.size() == 1) return;
  exchange_ = or_raise(train::NormExchange::create(communicator));
  exchange_->set_hooks(std::move(hooks));
  for (const auto& module : modules_) {
    SynchronizedBatchNormImpl& norm = *module;
    const auto tensors = [&norm] {
      return train::NormTensors{norm.weight, norm.bias, norm.running_mean, norm.running_var, norm.num_batches_tracked};
    };
    layers_.push_back(std::make_shared<train::SynchronizedNorm>(*exchange_, tensors, norm.options));
    exchange_->add(*layers_.back());
    norm.together_ = [layer = layers_.back()](const torch::Tensor& input) {
      return train::SynchronizedNorm::forward(layer, input);
    };
    norm.owner_ = this;
  }
}

}  // namespace remuda::parallel
