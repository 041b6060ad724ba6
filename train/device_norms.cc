#include "train/device_norms.h"

#include <algorithm>
#include <cmath>

namespace remuda::train {
namespace {

constexpr size_t kTogether = 4 << 20;  // the sum of so many squares is rounded little

/// Of values whose squares are too large for their type.
double norm_of(const torch::Tensor& values) {
  const double largest = values.abs().max().item<double>();
  return std::isfinite(largest) ? (values / largest).norm().item<double>() * largest : largest;
}

}  // namespace

DeviceNorms::DeviceNorms(const DeviceOps& ops, const FlatParameters& flat) : flat_(flat), first_{0} {
  for (size_t bucket = 0; bucket < flat.layout().buckets(); ++bucket)
    first_.push_back(first_.back() + (flat.layout().bucket(bucket).size() + kTogether - 1) / kTogether);
  slices_.resize(first_.back());
  norms_ = torch::zeros({int64_t(first_.back())}, flat.gradients().device().options().device(ops.device()));
}

void DeviceNorms::take(size_t bucket, comm::Chunk part) {
  const torch::NoGradGuard no_grad;
  for (size_t slice = first_[bucket], begin = part.begin; slice < first_[bucket + 1]; ++slice) {
    slices_[slice] = {begin, std::min(part.end, begin + kTogether)};
    torch::Tensor norm = norms_[int64_t(slice)];
    if (slices_[slice].size() == 0)
      norm.zero_();
    else
      at::linalg_vector_norm_out(norm, narrow(flat_.gradients().device(), slices_[slice]), 2, {}, false, {});
    begin = slices_[slice].end;
  }
}

double DeviceNorms::square_sum() const {
  const torch::NoGradGuard no_grad;
  const torch::Tensor norms = norms_.to(torch::kCPU).to(torch::kDouble);
  double sum = 0;
  for (size_t slice = 0; slice < slices_.size(); ++slice) {
    double norm = norms.data_ptr<double>()[slice];
    if (!std::isfinite(norm)) norm = norm_of(narrow(flat_.gradients().device(), slices_[slice]));
    sum += norm * norm;
  }
  return sum;
}

}  // namespace remuda::train
