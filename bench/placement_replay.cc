#include "bench/placement_replay.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <queue>
#include <random>

#include "base/check.h"

namespace remuda::bench {
namespace {

constexpr double kMeanDuration = 10, kMeanSize = 2.1, kLoad = 0.8;

struct Running {
  double end;
  Mask gpus;
  bool operator>(const Running& other) const { return end > other.end; }
};

/// The same on every machine, unlike the distributions of the standard library.
class Draw {
 public:
  explicit Draw(uint64_t seed) : generator_(seed) {}
  double uniform() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }
  double exponential(double mean) { return -std::log1p(-uniform()) * mean; }

 private:
  std::mt19937_64 generator_;
};

}  // namespace

std::vector<ReplayJob> replay_jobs(size_t gpus, size_t jobs, uint64_t seed) {
  std::vector<int> sizes{1, 1, 1, 1, 1, 2, 2, 2, 4, 4};
  if (gpus >= 8) sizes.insert(sizes.end(), {1, 2, 4});
  Draw draw(seed);
  std::vector<ReplayJob> stream(jobs);
  for (ReplayJob& job : stream) {
    const int size = sizes[static_cast<size_t>(draw.uniform() * static_cast<double>(sizes.size()))];
    job.gpus = std::min(size, static_cast<int>(gpus));
    job.duration = draw.exponential(kMeanDuration);
    job.gap = draw.exponential(kMeanDuration * kMeanSize / static_cast<double>(gpus) / kLoad);
  }
  return stream;
}

ReplayResult replay(const ReplayMachine& machine, const std::vector<ReplayJob>& jobs, const Policy& policy) {
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running;
  Mask free = machine.all();
  double now = 0;
  const auto finish_until_now = [&] {
    for (; !running.empty() && running.top().end <= now; running.pop()) free |= running.top().gpus;
  };
  ReplayResult result;
  size_t counted = 0;
  for (const ReplayJob& job : jobs) {
    now += job.gap;
    finish_until_now();
    while (std::popcount(free) < job.gpus) {
      now = running.top().end;
      finish_until_now();
    }
    const Mask set = policy(free, job.gpus);
    REMUDA_CHECK(std::popcount(set) == job.gpus && (set & ~free) == 0, "a policy picks as many free GPUs as asked");
    free &= ~set;
    running.push({now + job.duration, set});
    if (job.gpus < 2) continue;
    ++counted;
    const double gbps = machine.ring_gbps[set], best = machine.best_gbps[static_cast<size_t>(job.gpus)];
    result.mean += gbps / best;
    result.best += gbps == best ? 1 : 0;
  }
  result.mean /= static_cast<double>(counted);
  result.best /= static_cast<double>(counted);
  return result;
}

}  // namespace remuda::bench
