#include "train/device/host_copies.h"

#include "train/device/pinned_memory.h"

namespace remuda::train {
namespace {

constexpr double kCopyPatience_s = 300;  // a device that takes longer hangs

}  // namespace

torch::Tensor HostCopies::room(int64_t count, torch::ScalarType type) const {
  if (!pinned_ || count == 0) return torch::empty({count}, torch::dtype(type));
  const auto memory = pinned_memory(*ops_)(size_t(count) * c10::elementSize(type));
  return torch::from_blob(memory.get(), {count}, [memory](void*) {}, torch::dtype(type));
}

std::shared_ptr<void> HostCopies::known(std::span<std::byte> memory) const {
  if (!pinned_ || !ops_->register_host(memory)) return nullptr;
  return {memory.data(), [ops = *ops_, memory](void*) { ops.release_host(memory); }};
}

void HostCopies::copy(const torch::Tensor& to, const torch::Tensor& from) const {
  if (pinned_ && !from.is_cpu())
    ops_->copy(to, from, ops_->here());
  else
    torch::Tensor(to).copy_(from);
}

Result<void> HostCopies::finish(const std::string& what) const {
  return pinned_ ? ops_->wait(ops_->copied_to_host(), what, kCopyPatience_s) : Result<void>();
}

}  // namespace remuda::train
