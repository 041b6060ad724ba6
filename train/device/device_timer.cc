#include "train/device/device_timer.h"

#include <c10/core/DeviceGuard.h>

namespace remuda::train {
namespace {

using torch::profiler::impl::cudaStubs;  // ROCm's, too

using Event = DeviceEvent::Pointer;

Event event_of(const DeviceTimer::Mark& mark) { return std::static_pointer_cast<Event::element_type>(mark); }

}  // namespace

std::optional<DeviceTimer> DeviceTimer::of(torch::Device device) {
  if (device.is_cpu() || !cudaStubs()->enabled()) return std::nullopt;
  return DeviceTimer(device);
}

DeviceTimer::Mark DeviceTimer::mark() const {
  const c10::DeviceGuard current(device_);
  DeviceEvent::Index device{};
  Event event;
  int64_t unused = 0;
  cudaStubs()->record(&device, &event, &unused);
  return event;
}

double DeviceTimer::seconds(const Mark& from, const Mark& to) const {
  const Event first = event_of(from), last = event_of(to);
  return 1e-6 * double(cudaStubs()->elapsed(&first, &last));
}

profile::Ranges profiler_ranges() {
  if (!cudaStubs()->enabled()) return {};
  return {.push = [](const char* name) { cudaStubs()->rangePush(name); }, .pop = [] { cudaStubs()->rangePop(); }};
}

}  // namespace remuda::train
