// GPUs, through libtorch alone. Its device type of that name stands for the GPUs of several vendors: which one was
// decided when libtorch was built.
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <sched.h>

#include "base/env.h"
#include "base/letter_case.h"
#include "measure/repeat.h"
#include "train/measure/gemm.h"
#include "train/measure/target.h"

namespace remuda::train {
namespace {

constexpr int64_t kWord = 8;
constexpr int64_t kLargestMatrix = 16384;

/// The variable that selects the GPUs which a vendor's driver shows, and those that would interfere with it.
struct Visibility {
  const char* vendor;
  const char* variable;
  std::vector<const char*> cleared;
};

const std::vector<Visibility>& visibilities() {
  static const std::vector<Visibility> known{
      {"nvidia", env::cuda_visible_devices.name, {}},
      {"amd",
       env::rocr_visible_devices.name,
       {env::hip_visible_devices.name, env::cuda_visible_devices.name, env::gpu_device_ordinal.name}}};
  return known;
}

/// Makes libtorch see only these GPUs, in this order; to be called before its first search for GPUs.
Result<void> show_only(const std::string& vendor, const std::string& uuids) {
  const std::string name = lower(vendor);
  const auto found = std::ranges::find_if(visibilities(), [&](const auto& v) { return name.starts_with(v.vendor); });
  if (found == visibilities().end()) return failed(fmt::format("libtorch has no devices of {}", vendor));
  for (const char* variable : found->cleared) ::unsetenv(variable);
  ::setenv(found->variable, uuids.c_str(), 1);
  return {};
}

class AcceleratorTarget final : public Target {
 public:
  AcceleratorTarget(const measure::Plan& plan, int rank) : plan_(plan), places_(plan.devices.size(), -1) {
    std::string uuids, vendor;
    for (size_t i = 0; i < plan.devices.size(); ++i) {
      const measure::PlanDevice& device = plan.devices[i];
      if (device.rank != rank || device.uuid.empty()) continue;
      vendor = device.vendor;
      uuids += (uuids.empty() ? "" : ",") + device.uuid;
      places_[i] = count_++;
    }
    usable_ = find_devices(vendor, uuids);
  }

  Result<DeviceFigures> device(size_t device) override {
    REMUDA_ASSIGN(const at::Device here, device_of(device));
    const at::DeviceGuard current(here);
    stay_near(plan_.devices[device]);
    const auto pinned = torch::empty({plan_.bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
    pinned.fill_(1);
    const auto memory = torch::empty({plan_.bytes}, at::TensorOptions().dtype(at::kByte).device(here));
    DeviceFigures figures{.measured = {.id = plan_.devices[device].id}};
    figures.measured.host_to_device_gbps = copy_gbps(memory, pinned, {here});
    figures.measured.device_to_host_gbps = copy_gbps(pinned, memory, {here});
    figures.measured.latency_us = 1e6 * copy_s(memory.narrow(0, 0, kWord), pinned.narrow(0, 0, kWord), {here});
    figures.measured.gemm = gemm_rates(
        here, {.seconds = plan_.figure_s, .largest = kLargestMatrix, .wait = [here] { synchronize({here}); }});
    return figures;
  }

  Result<double> pull_gbps(size_t device, size_t peer) override {
    REMUDA_ASSIGN(const at::Device here, device_of(device));
    REMUDA_ASSIGN(const at::Device there, device_of(peer));
    const auto to = torch::empty({plan_.bytes}, at::TensorOptions().dtype(at::kByte).device(here));
    const auto from = torch::ones({plan_.bytes}, at::TensorOptions().dtype(at::kByte).device(there));
    return copy_gbps(to, from, {here, there});
  }

  Result<double> latency_us(size_t device, size_t peer) override {
    REMUDA_ASSIGN(const at::Device here, device_of(device));
    REMUDA_ASSIGN(const at::Device there, device_of(peer));
    const auto mine = torch::ones({kWord}, at::TensorOptions().dtype(at::kByte).device(here));
    const auto other = torch::ones({kWord}, at::TensorOptions().dtype(at::kByte).device(there));
    const auto round_trip = [&] {
      other.copy_(mine);
      synchronize({here, there});
      mine.copy_(other);
      synchronize({here, there});
    };
    return 1e6 / 2 * measure::median_s(plan_.figure_s, [&] { return measure::time_s(round_trip); });
  }

 private:
  static void synchronize(const std::vector<at::Device>& devices) {
    for (const auto& device : devices) torch::cuda::synchronize(device.index());
  }

  double copy_s(const at::Tensor& to, const at::Tensor& from, const std::vector<at::Device>& devices) const {
    synchronize(devices);
    const auto copy = [&] {
      to.copy_(from, /*non_blocking=*/true);
      synchronize(devices);
    };
    return measure::median_s(plan_.figure_s, [&] { return measure::time_s(copy); });
  }

  double copy_gbps(const at::Tensor& to, const at::Tensor& from, const std::vector<at::Device>& devices) const {
    return static_cast<double>(to.numel()) / copy_s(to, from, devices) / 1e9;
  }

  Result<void> find_devices(const std::string& vendor, const std::string& uuids) const {
    if (count_ == 0) return failed("it has no UUID by which it could be asked for");
    REMUDA_TRY(show_only(vendor, uuids));
    if (!torch::cuda::is_available())
      return failed(fmt::format("the libtorch of remuda-train ({}) finds no GPU of {}", TORCH_VERSION, vendor));
    const size_t seen = torch::cuda::device_count();
    if (seen == static_cast<size_t>(count_)) return {};
    return failed(fmt::format("libtorch finds {} of the {} GPUs of {} that are to be measured", seen, count_, vendor));
  }

  Result<at::Device> device_of(size_t device) const {
    if (places_[device] < 0) return failed("it has no UUID by which it could be asked for");
    REMUDA_TRY(usable_);
    return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(places_[device]));
  }

  /// Moves this thread, and so the host memory that it touches first, to the cores nearest to the device.
  static void stay_near(const measure::PlanDevice& device) {
    if (device.cores.empty()) return;
    cpu_set_t near;
    CPU_ZERO(&near);
    for (const int core : device.cores)
      if (core >= 0 && core < CPU_SETSIZE) CPU_SET(static_cast<size_t>(core), &near);
    (void)::sched_setaffinity(0, sizeof near, &near);
  }

  const measure::Plan plan_;
  std::vector<int> places_;  ///< by position in the plan: libtorch's index, or -1
  int count_ = 0;
  Result<void> usable_;
};

}  // namespace

std::unique_ptr<Target> make_accelerator_target(const measure::Plan& plan, int rank) {
  return std::make_unique<AcceleratorTarget>(plan, rank);
}

}  // namespace remuda::train
