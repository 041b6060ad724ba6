#include "train/device/mirror.h"

#include <utility>

namespace remuda::train {
namespace {

torch::Tensor narrow(const torch::Tensor& tensor, comm::Chunk range) {
  return tensor.narrow(0, int64_t(range.begin), int64_t(range.size()));
}

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

comm::Values values_of(const torch::Tensor& tensor, comm::Chunk range) {
  const std::span bytes(static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes());
  return comm::Values(element_of(tensor.scalar_type()), bytes).part(range);
}

}  // namespace

Result<Mirror> Mirror::create(comm::Communicator& communicator, const DeviceOps& ops, size_t count,
                              torch::ScalarType type) {
  REMUDA_ASSIGN(const std::span<std::byte> memory, communicator.allocate(count * c10::elementSize(type)));
  const auto host = torch::from_blob(memory.data(), {int64_t(count)}, torch::TensorOptions().dtype(type));
  if (ops.is_synchronous()) return Mirror(ops, memory, host, host);
  return Mirror(ops, memory, host, torch::zeros({int64_t(count)}, host.options().device(ops.device())));
}

Mirror::Mirror(const DeviceOps& ops, std::span<std::byte> memory, torch::Tensor host, torch::Tensor device)
    : ops_(&ops),
      memory_(memory),
      host_(std::move(host)),
      device_(std::move(device)),
      registered_(ops.register_host(memory)) {}

Mirror::Mirror(Mirror&& other) noexcept
    : ops_(other.ops_),
      memory_(other.memory_),
      host_(std::move(other.host_)),
      device_(std::move(other.device_)),
      registered_(std::exchange(other.registered_, false)),
      arrived_(std::move(other.arrived_)) {}

Mirror::~Mirror() {
  if (!device_.defined()) return;  // moved from
  ops_->finish_copies();
  if (registered_) ops_->release_host(memory_);
}

comm::Values Mirror::host_values(comm::Chunk range) const { return values_of(host_, range); }
comm::Values Mirror::device_values(comm::Chunk range) const { return values_of(device_, range); }

Moment Mirror::to_host(comm::Chunk range) const { return to_host(std::vector{range}).front(); }

std::vector<Moment> Mirror::to_host(const std::vector<comm::Chunk>& ranges) const {
  const Moment here = ops_->here();
  std::vector<Moment> moments(ranges.size(), here);
  if (ops_->is_synchronous()) return moments;
  Moment since = here;  // the first copy waits for it, the others come after that one
  for (size_t i = 0; i < ranges.size(); ++i)
    if (ranges[i].size() > 0)
      moments[i] = ops_->copy(narrow(host_, ranges[i]), narrow(device_, ranges[i]), std::exchange(since, {}));
  return moments;
}

void Mirror::to_device(comm::Chunk range) {
  if (ops_->is_synchronous() || range.size() == 0) return;
  arrived_ = ops_->copy(narrow(device_, range), narrow(host_, range), {});
}

void Mirror::join() { ops_->after(arrived_); }

}  // namespace remuda::train
