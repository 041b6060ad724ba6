// Tests only: the stand-in's devices: memory, streams and events. What libtorch sees of them is in guard.cc and
// operators.cc.
#pragma once

#include <atomic>
#include <c10/core/Allocator.h>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "train/testing/standin/standin.h"

namespace remuda::train::testing {

/// Added to the address of memory of the device. No address of the host is that large.
constexpr uint64_t kApart = uint64_t{1} << 60;

inline void* apart(void* memory) { return static_cast<std::byte*>(memory) + kApart; }
inline void* real(void* pointer) { return static_cast<std::byte*>(pointer) - kApart; }

/// A thread that does tasks in order.
class Stream {
 public:
  Stream();
  /// Returns how many tasks there are to be done before it counts as done.
  uint64_t push(std::function<void()> task);
  /// Waits until so many tasks are done; they are needed now.
  void wait_for(uint64_t tasks);
  /// Whether they are done; they are needed now.
  bool has_done(uint64_t tasks);
  bool has_done_all();
  void drain();
  /// While it hurries, a task is done before push() returns.
  void hurry(bool now);
  void configure(bool lazy, double random_delay_s, unsigned seed);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  uint64_t pushed_ = 0, done_ = 0, needed_ = 0;
  bool lazy_ = false, hurry_ = false;
  double random_delay_s_ = 0;
  std::mt19937 random_;
  std::thread thread_;
};

/// A point in a stream's work.
struct Event {
  int device = 0, stream = 0;
  uint64_t tasks = 0;        ///< of the stream, before it
  int ignored_by_host = -1;  ///< -1: not asked yet; 1: the host takes it for reached
};

class Device {
 public:
  explicit Device(int index);

  static Device& get(int index);

  void configure(const StandinSettings& settings);
  const StandinSettings& settings() const { return settings_; }
  Stream& stream(int index) { return *streams_.at(size_t(index)); }
  size_t streams() const { return streams_.size(); }

  /// Memory whose content is NaN once the stream gets there; the pointer is apart().
  void* allocate(size_t bytes, int stream);
  void free(void* pointer);
  void report(int64_t bytes) const;
  size_t used() const { return used_; }

  /// The next stream of the pool.
  int next_stream() { return 1 + int(given_++ % unsigned(settings_.pool)); }

  /// Whether this wait is to be ignored.
  bool ignores(WaitKind kind);
  int watch(WaitKind kind, int ignored);

  std::atomic<int> copies_from_host = 0;  ///< under way

  /// Throws where the device is lost, or a task of it failed.
  void check();
  void fail(const std::string& why);
  void lose(bool lost, int after_calls);

 private:
  struct Block {
    size_t bytes;
    int stream;
  };
  struct Watch {
    int count = 0, ignored = -1;
  };

  const int index_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::mutex mutex_;
  std::map<void*, Block> blocks_;                              ///< in use
  std::map<std::pair<int, size_t>, std::vector<void*>> free_;  ///< by stream and size, to be used again
  std::atomic<size_t> used_ = 0;
  StandinSettings settings_;
  std::map<WaitKind, Watch> watches_;
  std::atomic<unsigned> given_ = 0;  ///< streams of the pool
  std::atomic<bool> lost_ = false;
  std::atomic<int> calls_left_ = 0;  ///< until it is; 0: no more are counted
  std::string failure_;
};

/// Of the calling thread.
int current_device();
void set_current_device(int device);
int current_stream(int device);
int set_current_stream(int device, int stream);

c10::Allocator& allocator();

}  // namespace remuda::train::testing
