#include "measure/team.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <sched.h>

namespace remuda::measure {
namespace {

constexpr int kAnyCore = -1;
constexpr size_t kCacheLine = 64;

void stay_on(int core) {
  if (core == kAnyCore) return;
  const size_t bytes = CPU_ALLOC_SIZE(core + 1);
  const auto release = [](cpu_set_t* set) { CPU_FREE(set); };
  const std::unique_ptr<cpu_set_t, decltype(release)> set(CPU_ALLOC(core + 1), release);
  CPU_ZERO_S(bytes, set.get());
  CPU_SET_S(core, bytes, set.get());
  (void)::sched_setaffinity(0, bytes, set.get());
}

std::ptrdiff_t meeting_size(size_t cores) { return static_cast<std::ptrdiff_t>(std::max<size_t>(cores, 1)) + 1; }

}  // namespace

Team::Team(const std::vector<int>& cores) : start_(meeting_size(cores.size())), end_(meeting_size(cores.size())) {
  const std::vector<int> places = cores.empty() ? std::vector{kAnyCore} : cores;
  for (size_t i = 0; i < places.size(); ++i) threads_.emplace_back(&Team::work, this, i, places[i]);
}

Team::~Team() {
  part_ = nullptr;
  start_.arrive_and_wait();
  for (auto& thread : threads_) thread.join();
}

void Team::run(const std::function<void(size_t)>& part) {
  part_ = &part;
  start_.arrive_and_wait();
  end_.arrive_and_wait();
}

void Team::work(size_t index, int core) {
  stay_on(core);
  for (;;) {
    start_.arrive_and_wait();
    if (!part_) return;
    (*part_)(index);
    end_.arrive_and_wait();
  }
}

size_t part_begin(size_t bytes, size_t index, size_t count) {
  return index == count ? bytes : bytes / count * index / kCacheLine * kCacheLine;
}

}  // namespace remuda::measure
