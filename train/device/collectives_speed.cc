#include "train/device/collectives_speed.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/clock.h"
#include "train/agreement.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

constexpr double kMostBytes = 256 << 20;
constexpr double kPartOfLatency = 0.1;  // of the time of a call
constexpr size_t kSmall = 1 << 10, kLarge = 16 << 20;

/// Of a sum and a gather of so many bytes, each half of both.
Result<double> median_call_s(comm::DeviceCollectives& collectives, const DeviceOps& ops, const torch::Tensor& room,
                             size_t bytes, double timeout_s) {
  const torch::Tensor values = room.narrow(0, 0, int64_t(bytes / sizeof(float)));
  const std::span raw(static_cast<std::byte*>(values.data_ptr()), values.nbytes());
  const comm::Parts parts = comm::even_parts(collectives.size(), size_t(values.numel()), sizeof(float));
  REMUDA_TRY(ops.wait(ops.here(), "zeros", timeout_s));
  std::array<double, 5> seconds{};
  for (double& one : seconds) {
    const double start = monotonic_s();
    REMUDA_ASSIGN(const Moment done,
                  ops.in_library(
                      [&](void* stream) -> Result<void> {
                        REMUDA_TRY(collectives.reduce_scatter({comm::Element::float32, raw}, parts, stream));
                        return collectives.gather_parts(raw, parts.in_bytes(sizeof(float)), stream);
                      },
                      {}));
    REMUDA_TRY(ops.wait(done, "a trial of " + collectives.name(), timeout_s, [&] { return collectives.check(); }));
    one = (monotonic_s() - start) / 2;
  }
  std::ranges::nth_element(seconds, seconds.begin() + 2);
  return seconds[2];
}

}  // namespace

double bucket_bytes_by(const CollectivesSpeed& speed, double least) {
  const double wanted = speed.latency_s * (1 / kPartOfLatency - 1) / std::max(speed.seconds_per_byte, 1e-15);
  return std::clamp(wanted, least, std::max(least, kMostBytes));
}

Result<CollectivesSpeed> measure_collectives(comm::Communicator& communicator, comm::DeviceCollectives& collectives,
                                             const DeviceOps& ops, double timeout_s) {
  torch::Tensor room;
  try {
    room = torch::zeros({int64_t(kLarge / sizeof(float))}, torch::device(ops.device()));
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
  }
  REMUDA_ASSIGN(const std::vector<int> have_room,
                gather_all(communicator, room.defined() ? 1 : 0, label::kCollectives));
  if (std::ranges::find(have_room, 0) != have_room.end()) return CollectivesSpeed();
  REMUDA_ASSIGN(const double small_s, median_call_s(collectives, ops, room, kSmall, timeout_s));
  REMUDA_ASSIGN(const double large_s, median_call_s(collectives, ops, room, kLarge, timeout_s));
  CollectivesSpeed speed{small_s, std::max(0.0, large_s - small_s) / double(kLarge - kSmall)};
  REMUDA_TRY(communicator.broadcast(std::as_writable_bytes(std::span(&speed, 1)), 0, label::kCollectives));
  return speed;
}

}  // namespace remuda::train
