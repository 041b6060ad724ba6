#include "train/device/mirror.h"

#include <utility>

namespace remuda::train {

Result<Mirror> Mirror::create(comm::Communicator& communicator, const DeviceOps& ops, size_t count,
                              torch::ScalarType type) {
  REMUDA_ASSIGN(HostRoom host, HostRoom::create(communicator, ops, count, type));
  torch::Tensor device = host.tensor();
  if (!ops.is_synchronous()) device = torch::zeros(device.sizes(), device.options().device(ops.device()));
  return Mirror(ops, std::move(host), std::move(device));
}

Moment Mirror::to_host(comm::Chunk range) const { return to_host(std::vector{range}).front(); }

std::vector<Moment> Mirror::to_host(const std::vector<comm::Chunk>& ranges) const {
  const Moment here = ops_->here();
  std::vector<Moment> moments(ranges.size(), here);
  if (ops_->is_synchronous()) return moments;
  Moment since = here;  // the first copy waits for it, the others come after that one
  for (size_t i = 0; i < ranges.size(); ++i)
    if (ranges[i].size() > 0)
      moments[i] = ops_->copy(narrow(host(), ranges[i]), narrow(device_, ranges[i]), std::exchange(since, {}));
  return moments;
}

Moment Mirror::to_device(comm::Chunk range) {
  if (!ops_->is_synchronous() && range.size() > 0)
    arrived_ = ops_->copy(narrow(device_, range), narrow(host(), range), {});
  return arrived_;
}

void Mirror::join() { ops_->after(arrived_); }

}  // namespace remuda::train
