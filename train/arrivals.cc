#include "train/arrivals.h"

#include <utility>

#include "train/weights.h"

namespace remuda::train {
namespace {

std::span<std::byte> bytes_of(const torch::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace

torch::Tensor Arrivals::staged_for(const torch::Tensor& to) {
  staged_bytes_ += to.nbytes();
  return torch::empty(to.sizes(), to.options().device(torch::kCPU));
}

torch::Tensor Arrivals::room_for(const torch::Tensor& to) {
  if (to.is_cpu() && to.is_contiguous()) return to;
  const torch::Tensor staged = staged_for(to);
  landings_.emplace_back([to, staged] { torch::Tensor(to).copy_(staged); });
  return staged;
}

Result<void> Arrivals::want(const std::string& kind, const std::string& name, uint64_t first, torch::Tensor to) {
  REMUDA_TRY(pieces_.want(kind, name, file_type(to.scalar_type()).value(), first, bytes_of(room_for(to))));
  return fetch_if_many();
}

Result<void> Arrivals::want(const std::vector<Part>& parts, torch::Tensor to) {
  if (parts.size() == 1) {
    pieces_.want(parts[0].file, *parts[0].info, bytes_of(room_for(to)));
    return fetch_if_many();
  }
  std::vector<std::pair<torch::Tensor, double>> values;
  for (const Part& part : parts) {
    values.emplace_back(staged_for(to), part.weight);
    pieces_.want(part.file, *part.info, bytes_of(values.back().first));
  }
  landings_.emplace_back([to, values] {
    torch::Tensor sum;
    for (const auto& [value, weight] : values) sum = sum.defined() ? sum + value * weight : value * weight;
    torch::Tensor(to).copy_(sum);
  });
  return fetch_if_many();
}

Result<void> Arrivals::fetch_if_many() { return staged_bytes_ >= kMostStaged_bytes ? fetch() : Result<void>(); }

Result<void> Arrivals::fetch() {
  staged_bytes_ = 0;
  const auto landings = std::exchange(landings_, {});
  REMUDA_TRY(pieces_.fetch());
  for (const auto& land : landings) land();
  return {};
}

}  // namespace remuda::train
