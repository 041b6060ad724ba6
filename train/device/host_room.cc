#include "train/device/host_room.h"

#include <utility>

namespace remuda::train {
namespace {

comm::Element element_of(torch::ScalarType type) {
  switch (type) {
    case torch::kBFloat16:
      return comm::Element::bfloat16;
    case torch::kHalf:
      return comm::Element::float16;
    case torch::kDouble:
      return comm::Element::float64;
    default:
      return comm::Element::float32;
  }
}

std::span<std::byte> all_bytes(const torch::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace

comm::Values values_of(const torch::Tensor& tensor, comm::Chunk range) {
  return comm::Values(element_of(tensor.scalar_type()), all_bytes(tensor)).part(range);
}

torch::Tensor narrow(const torch::Tensor& tensor, comm::Chunk range) {
  return tensor.narrow(0, int64_t(range.begin), int64_t(range.size()));
}

Result<HostRoom> HostRoom::create(comm::Communicator& communicator, const DeviceOps& ops, size_t count,
                                  torch::ScalarType type) {
  REMUDA_ASSIGN(const std::span<std::byte> memory, communicator.allocate(count * c10::elementSize(type)));
  return HostRoom(ops, torch::from_blob(memory.data(), {int64_t(count)}, torch::TensorOptions().dtype(type)));
}

HostRoom HostRoom::of_its_own(const DeviceOps& ops, size_t count, torch::ScalarType type) {
  return {ops, torch::zeros({int64_t(count)}, torch::TensorOptions().dtype(type))};
}

HostRoom::HostRoom(const DeviceOps& ops, torch::Tensor tensor)
    : ops_(&ops), tensor_(std::move(tensor)), registered_(ops.register_host(bytes())) {}

HostRoom::HostRoom(HostRoom&& other) noexcept
    : ops_(other.ops_), tensor_(std::move(other.tensor_)), registered_(std::exchange(other.registered_, false)) {}

HostRoom::~HostRoom() {
  if (!tensor_.defined()) return;  // moved from
  ops_->finish_copies();
  if (registered_) ops_->release_host(bytes());
}

std::span<std::byte> HostRoom::bytes() const { return all_bytes(tensor_); }

}  // namespace remuda::train
