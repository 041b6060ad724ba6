#include "train/device/device_ops.h"

#include <algorithm>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "train/device/vendor_runtime.h"
#include "train/error_text.h"
#if TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR >= 209
#include <c10/core/CachingDeviceAllocator.h>
#endif

namespace remuda::train {
namespace {

constexpr double kSpin_s = 50e-6;   // shorter than most copies of a bucket
constexpr double kSleep_s = 50e-6;  // then as long as that between two looks

/// This process's part of the host's cores.
double own_part() {
  cpu_set_t cores;
  const double all = double(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  const double mine = ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : all;
  return std::min(1.0, mine / all);
}

double host_memory_bytes() { return double(::sysconf(_SC_PHYS_PAGES)) * double(::sysconf(_SC_PAGESIZE)) * own_part(); }

/// MemAvailable: what programs can have without swapping.
double host_free_bytes() {
  std::ifstream lines("/proc/meminfo");
  std::string name, unit;
  for (double kilobytes = 0; lines >> name >> kilobytes; std::getline(lines, unit))
    if (name == "MemAvailable:") return kilobytes * 1024 * own_part();
  return 0;
}

/// What empties the cache of all devices of this type; none where nothing can.
std::function<void()> emptying_of(torch::DeviceType type) {
#if TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR >= 209
  if (auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(type)))
    return [allocator] { allocator->emptyCache(); };
#endif
  return type == torch::kCPU ? nullptr : cache_emptying();
}

}  // namespace

Result<DeviceOps> DeviceOps::open(torch::Device device, Streams streams) {
  if (device.is_cpu()) return DeviceOps(device, std::nullopt, std::nullopt);
  try {
    const c10::impl::VirtualGuardImpl guard(device.type());
    if (!device.has_index()) device = guard.getDevice();
    if (device.index() >= guard.deviceCount())
      return usage_error(fmt::format("{} is not there: libtorch {} sees {} such device{}", device.str(), TORCH_VERSION,
                                     guard.deviceCount(), guard.deviceCount() == 1 ? "" : "s"));
    guard.setDevice(device);
    const auto one = [&] { return guard.getStreamFromGlobalPool(device); };
    const c10::Stream first = one();
    const bool separate = streams == Streams::separate;
    return DeviceOps(device, guard, Kept{first, separate ? one() : first, separate ? one() : first});
  } catch (const c10::Error&) {
    return usage_error(
        fmt::format("this libtorch ({}) cannot compute on {} devices; build with one that can, such as --torch=python",
                    TORCH_VERSION, c10::DeviceTypeName(device.type(), true)));
  }
}

Moment DeviceOps::here() const {
  if (is_synchronous()) return {};
  auto event = std::make_shared<c10::Event>(device_.type());
  event->record(guard_->getStream(device_));
  return event;
}

void DeviceOps::after(const Moment& moment) const {
  if (moment) moment->block(guard_->getStream(device_));
}

Result<void> DeviceOps::wait(const Moment& moment, const std::string& what, double timeout_s,
                             const std::function<Result<void>()>& look) const {
  if (!moment) return {};
  try {
    const double start = monotonic_s();
    while (!moment->query()) {
      if (look) REMUDA_TRY(look());
      const double waited = monotonic_s() - start;
      if (waited > timeout_s)
        return failed(fmt::format("{} did not finish {} within {:.0f} s", device_.str(), what, waited));
      if (waited > kSpin_s) steady_clock().sleep_s(kSleep_s);
    }
    return {};
  } catch (const std::exception& error) {
    return failed(fmt::format("{} was lost during {}: {}", device_.str(), what, sentence_of(error)));
  }
}

Moment DeviceOps::copy(const torch::Tensor& to, const torch::Tensor& from, const Moment& since) const {
  const c10::StreamGuard current(to.device() == device_ ? streams_->to_device : streams_->to_host);
  const torch::NoGradGuard no_grad;
  after(since);
  torch::Tensor(to).copy_(from, /*non_blocking=*/true);
  return here();
}

Moment DeviceOps::copied_to_host() const {
  if (is_synchronous()) return {};
  const c10::StreamGuard current(streams_->to_host);
  return here();
}

Result<Moment> DeviceOps::in_library(const std::function<Result<void>(void* stream)>& give, const Moment& since) const {
  const c10::StreamGuard current(streams_->library);
  after(since);
  REMUDA_TRY(give(native_stream(*guard_, streams_->library)));
  return here();
}

void DeviceOps::finish_copies() const {
  constexpr double kPatience_s = 10;  // copies that take longer are those of a device that hangs
  if (is_synchronous()) return;
  try {
    const double start = monotonic_s();
    for (const c10::Stream& stream : {streams_->to_host, streams_->to_device, streams_->library})
      while (!guard_->queryStream(stream) && monotonic_s() - start < kPatience_s) steady_clock().sleep_s(kSleep_s);
  } catch (const std::exception&) {
    return;  // the device is lost, and copies nothing any more
  }
}

bool DeviceOps::register_host(std::span<std::byte> memory) const {
  if (is_synchronous() || memory.empty()) return false;
  const c10::DeviceGuard current(device_);
  const Result<void> pinned = pin_host(memory);
  if (pinned) return true;
  const std::lock_guard lock(refusals_->mutex);
  refusals_->all.bytes += double(memory.size());
  if (refusals_->all.why.empty()) refusals_->all.why = pinned.error().message;
  return false;
}

void DeviceOps::release_host(std::span<std::byte> memory) const {
  const c10::DeviceGuard current(device_);
  unpin_host(memory);
}

Refused DeviceOps::refused() const {
  const std::lock_guard lock(refusals_->mutex);
  return refusals_->all;
}

bool DeviceOps::has_cache() const { return emptying_of(device_.type()) != nullptr; }

void DeviceOps::empty_cache() const {
  if (const auto empty = emptying_of(device_.type())) empty();
}

double DeviceOps::free_bytes() const {
  if (device_.is_cpu()) return host_free_bytes();
  const c10::DeviceGuard current(device_);
  const auto memory = device_memory();
  return memory ? double(memory->free) : 0;
}

double DeviceOps::memory_bytes() const {
  if (device_.is_cpu()) return host_memory_bytes();
  const c10::DeviceGuard current(device_);
  const auto memory = device_memory();
  return memory ? double(memory->total) : 0;
}

}  // namespace remuda::train
