#include "bench/limit.h"

#include <atomic>
#include <fmt/format.h>
#include <sys/mman.h>

#include "base/vector_clones.h"
#include "bench/pair.h"
#include "bench/repeat.h"
#include "measure/core_latency.h"

namespace remuda::bench {
namespace {

constexpr double kSecondsPerSize = 0.4;
constexpr double kSecondsOfLatency = 0.02;

struct Shared {
  measure::SharedTurn turn;
  alignas(128) std::atomic<int> came;
  alignas(128) std::atomic<int> times;
};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

REMUDA_VECTOR_CLONES void scale(float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] *= 1.0000001f;
}

void meet(Shared& shared, int& meetings) {
  ++shared.came;
  ++meetings;
  while (shared.came < 2 * meetings) relax();
}

double measure_scale(Shared& shared, int rank, size_t bytes, int& meetings) {
  std::vector<float> values(bytes / sizeof(float), 1.0f);
  const auto agree = [&](int times) {
    if (rank == 0) shared.times = times;
    meet(shared, meetings);
    return shared.times.load();
  };
  return median_s(
      kSecondsPerSize, [&] { meet(shared, meetings); }, [&] { scale(values.data(), values.size()); }, agree);
}

}  // namespace

Result<std::vector<Limit>> measure_limits(std::span<const size_t> sizes) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return failed("cannot map shared memory");
  auto& shared = *new (memory) Shared{};
  auto values = run_pair([&](int rank) -> Result<std::vector<double>> {
    int meetings = 0;
    meet(shared, meetings);
    REMUDA_ASSIGN(const double hop_s, measure::core_latency_s(shared.turn, rank, kSecondsOfLatency));
    std::vector<double> seconds{hop_s};
    for (const size_t bytes : sizes) seconds.push_back(measure_scale(shared, rank, bytes, meetings));
    return seconds;
  });
  ::munmap(memory, sizeof(Shared));
  if (!values) return tl::unexpected(values.error());
  std::vector<Limit> limits;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double update = (*values)[i + 1];
    limits.push_back({2 * values->front() + update, 4.0 * static_cast<double>(sizes[i]) / update});
  }
  return limits;
}

}  // namespace remuda::bench
