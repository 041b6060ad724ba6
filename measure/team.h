// Team: one thread on each core of a CPU device, for work that is cut into as many parts.
#pragma once

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

namespace remuda::measure {

class Team {
 public:
  /// Each thread stays on its core as far as the kernel allows. No cores: one thread that runs anywhere.
  explicit Team(const std::vector<int>& cores);
  /// Waits for the threads.
  ~Team();
  Team(const Team&) = delete;

  size_t size() const { return threads_.size(); }
  /// Calls part(i) on thread i, on all of them at once; returns when all have returned. One caller at a time.
  void run(const std::function<void(size_t)>& part);

 private:
  void work(size_t index, int core);

  std::barrier<> start_, end_;
  const std::function<void(size_t)>* part_ = nullptr;  ///< null: the threads shall end
  std::vector<std::thread> threads_;
};

/// Where thread `index` of `count` begins in `bytes` bytes; whole cache lines, except at the end.
size_t part_begin(size_t bytes, size_t index, size_t count);

}  // namespace remuda::measure
