// A CPU device: its cores copy between memory they touched first, the host's memory, and memory that other devices'
// cores touched first.
#include <algorithm>
#include <memory>

#include "measure/core_latency.h"
#include "measure/memory.h"
#include "measure/shared_memory.h"
#include "train/measure/gemm.h"
#include "train/measure/target.h"

namespace remuda::train {
namespace {

constexpr double kShortestProduct_s = 0.005;

class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(bytes), memory_(new std::byte[bytes]) {}  // not touched yet
  std::span<std::byte> bytes() const { return {memory_.get(), bytes_}; }

 private:
  size_t bytes_;
  std::unique_ptr<std::byte[]> memory_;
};

class CpuTarget final : public Target {
 public:
  CpuTarget(const measure::Plan& plan, size_t own, measure::SharedMemory shared)
      : plan_(plan), own_(own), shared_(std::move(shared)), team_(plan.devices[own].cores), mine_(size()) {
    touch(team_, mine_.bytes());
    touch(team_, buffer(own_));
    if (host_rank(plan_) != plan_.devices[own_].rank) return;
    touch(team_, host());
    measure::lay_chain(host());
  }

  // Copies back to the host what came from there, so that its content stays complete for the next device.
  Result<DeviceFigures> device(size_t device) override {
    DeviceFigures figures{.measured = {.id = plan_.devices[device].id}};
    figures.measured.latency_us = measure::load_latency_us(host(), plan_.figure_s);
    figures.measured.host_to_device_gbps = copy_gbps(team_, mine_.bytes(), host(), plan_.figure_s);
    figures.measured.device_to_host_gbps = copy_gbps(team_, host(), mine_.bytes(), plan_.figure_s);
    figures.memory_copy_gbps = copy_gbps(team_, mine_.bytes(), buffer(own_), plan_.figure_s);
    figures.measured.gemm = gemm_rates(
        at::kCPU,
        {.seconds = plan_.figure_s, .shortest_s = std::min(plan_.figure_s, kShortestProduct_s), .wait = [] {}});
    return figures;
  }

  Result<double> pull_gbps(size_t, size_t peer) override {
    return copy_gbps(team_, mine_.bytes(), buffer(peer), plan_.figure_s);
  }

  Result<double> latency_us(size_t device, size_t) override {
    auto& turn = *reinterpret_cast<measure::SharedTurn*>(shared_.bytes().data());
    REMUDA_ASSIGN(const double hop_s, measure::core_latency_s(turn, device == own_ ? 0 : 1, plan_.figure_s));
    return hop_s * 1e6;
  }

 private:
  size_t size() const { return static_cast<size_t>(plan_.bytes); }
  std::span<std::byte> host() const { return shared_.bytes().subspan(measure::host_offset(), size()); }
  std::span<std::byte> buffer(size_t device) const {
    return shared_.bytes().subspan(buffer_offset(plan_, device), size());
  }

  const measure::Plan plan_;
  const size_t own_;
  measure::SharedMemory shared_;
  measure::Team team_;
  Buffer mine_;
};

}  // namespace

Result<std::unique_ptr<Target>> make_cpu_target(const measure::Plan& plan, int rank) {
  REMUDA_ASSIGN(measure::SharedMemory shared, measure::SharedMemory::open(Fd(plan.memory_fd), shared_bytes(plan)));
  size_t own = 0;
  while (plan.devices[own].rank != rank) ++own;
  return std::make_unique<CpuTarget>(plan, own, std::move(shared));
}

}  // namespace remuda::train
