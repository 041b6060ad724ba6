#include "train/device_norms.h"

namespace remuda::train {

DeviceNorms::DeviceNorms(const DeviceOps& ops, const FlatParameters& flat)
    : flat_(flat),
      norms_(torch::zeros({int64_t(flat.layout().buckets())},
                          torch::TensorOptions().dtype(torch::kDouble).device(ops.device()))) {}

void DeviceNorms::take(size_t bucket, comm::Chunk part) const {
  const torch::NoGradGuard no_grad;
  torch::Tensor norm = norms_[int64_t(bucket)];
  if (part.size() == 0) {
    norm.zero_();
    return;
  }
  at::linalg_vector_norm_out(norm, narrow(flat_.gradients().device(), part), 2, {}, false, torch::kDouble);
}

double DeviceNorms::square_sum() const {
  const torch::NoGradGuard no_grad;
  return norms_.to(torch::kCPU).square().sum().item<double>();
}

}  // namespace remuda::train
