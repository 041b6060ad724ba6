#include "train/testing/standin/device.h"

#include <algorithm>
#include <array>
#include <c10/util/Exception.h>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <torch/version.h>
#include <utility>

namespace remuda::train::testing {
namespace {

constexpr int kStreams = 4;
constexpr size_t kAlignment = 64;
constexpr int kPoison = 0xff;  ///< NaN in every floating-point type

thread_local int t_device = 0;
thread_local std::array<int, kStandinDevices> t_streams{};

c10::Device device_at(int index) { return {c10::DeviceType::XPU, static_cast<c10::DeviceIndex>(index)}; }

}  // namespace

Stream::Stream() : thread_([this] { run(); }) {}

uint64_t Stream::push(std::function<void()> task) {
  uint64_t number = 0;
  bool hurry = false;
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    number = ++pushed_;
    if (!lazy_) needed_ = number;
    hurry = hurry_;
  }
  changed_.notify_all();
  if (hurry) wait_for(number);
  return number;
}

void Stream::wait_for(uint64_t tasks) {
  std::unique_lock lock(mutex_);
  needed_ = std::max(needed_, tasks);
  changed_.notify_all();
  changed_.wait(lock, [&] { return done_ >= tasks; });
}

bool Stream::has_done(uint64_t tasks) {
  const std::lock_guard lock(mutex_);
  needed_ = std::max(needed_, tasks);
  changed_.notify_all();
  return done_ >= tasks;
}

bool Stream::has_done_all() {
  const std::lock_guard lock(mutex_);
  needed_ = pushed_;
  changed_.notify_all();
  return done_ >= pushed_;
}

void Stream::drain() {
  uint64_t all = 0;
  {
    const std::lock_guard lock(mutex_);
    all = pushed_;
  }
  wait_for(all);
}

void Stream::hurry(bool now) {
  const std::lock_guard lock(mutex_);
  hurry_ = now;
}

void Stream::configure(bool lazy, double random_delay_s, unsigned seed) {
  drain();
  const std::lock_guard lock(mutex_);
  lazy_ = lazy;
  hurry_ = false;
  random_delay_s_ = random_delay_s;
  random_.seed(seed);
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return done_ < needed_ && !tasks_.empty(); });
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    const double delay_s = random_delay_s_ * (random_() / double(std::mt19937::max()));
    lock.unlock();
    if (delay_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(delay_s));
    task();
    lock.lock();
    ++done_;
    changed_.notify_all();
  }
}

Device::Device(int index) : index_(index) {
  for (int i = 0; i < kStreams; ++i) streams_.push_back(std::make_unique<Stream>());
}

/// Never destroyed: tensors of static objects may be freed after it.
Device& Device::get(int index) {
  static auto& devices = *new std::vector<std::unique_ptr<Device>>([] {
    std::vector<std::unique_ptr<Device>> all;
    for (int i = 0; i < kStandinDevices; ++i) all.push_back(std::make_unique<Device>(i));
    return all;
  }());
  return *devices.at(size_t(index));
}

void Device::configure(const StandinSettings& settings) {
  for (size_t i = 0; i < streams_.size(); ++i)
    streams_[i]->configure(i == kComputeStream ? settings.lazy_compute : settings.lazy_copies, settings.random_delay_s,
                           settings.seed + unsigned(i));
  const std::lock_guard lock(mutex_);
  settings_ = settings;
}

void* Device::allocate(size_t bytes, int stream) {
  check();
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (used_ + size > settings_.memory_cap)
      C10_THROW_ERROR(OutOfMemoryError, "the stand-in device is out of memory, as the test wants it");
    auto& same = free_[{stream, size}];
    if (!same.empty()) {
      memory = same.back();
      same.pop_back();
    } else {
      memory = std::aligned_alloc(kAlignment, size);
    }
    used_ += size;
    blocks_[memory] = {size, stream};
    report(static_cast<int64_t>(size));
  }
  this->stream(stream).push([memory, size] { std::memset(memory, kPoison, size); });
  return apart(memory);
}

/// As with the caching allocator of a GPU: memory may be used again at once in its own stream, whatever other streams
/// still do with it.
void Device::free(void* pointer) {
  void* const memory = real(pointer);
  const std::lock_guard lock(mutex_);
  const Block block = blocks_.at(memory);
  blocks_.erase(memory);
  used_ -= block.bytes;
  report(-static_cast<int64_t>(block.bytes));
  stream(block.stream).push([memory, block] { std::memset(memory, kPoison, block.bytes); });
  free_[{block.stream, block.bytes}].push_back(memory);
}

/// To who watches, as libtorch's own allocators do.
void Device::report(int64_t bytes) const {
  c10::reportMemoryUsageToProfiler(nullptr, bytes, used_, used_, device_at(index_));
}

bool Device::ignores(WaitKind kind) {
  const std::lock_guard lock(mutex_);
  Watch& watch = watches_[kind];
  return watch.count++ == watch.ignored;
}

int Device::watch(WaitKind kind, int ignored) {
  const std::lock_guard lock(mutex_);
  return std::exchange(watches_[kind], Watch{0, ignored}).count;
}

void Device::lose(bool lost, int after_calls) {
  lost_ = lost && after_calls == 0;
  calls_left_ = lost ? after_calls : 0;
}

void Device::check() {
  if (calls_left_ > 0 && --calls_left_ == 0) lost_ = true;
  TORCH_CHECK(!lost_, "the stand-in device is lost");
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(failure_.empty(), std::exchange(failure_, {}));
}

void Device::fail(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = why;
}

int current_device() { return t_device; }
void set_current_device(int device) { t_device = device; }
int current_stream(int device) { return t_streams.at(size_t(device)); }
int set_current_stream(int device, int stream) { return std::exchange(t_streams.at(size_t(device)), stream); }

namespace {

void give_back_block(void* context) {
  const auto* owner = static_cast<std::pair<int, void*>*>(context);
  Device::get(owner->first).free(owner->second);
  delete owner;
}

class Memory final : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
  c10::DataPtr allocate(size_t bytes) override { return make(bytes); }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK(false, "memory of a device is not copied so");
  }
#else
  c10::DataPtr allocate(size_t bytes) const override { return make(bytes); }
#endif

 private:
  static c10::DataPtr make(size_t bytes) {
    const c10::Device where = device_at(current_device());
    if (bytes == 0) return {nullptr, where};
    void* const data = Device::get(current_device()).allocate(bytes, current_stream(current_device()));
    return {data, new std::pair(current_device(), data), &give_back_block, where};
  }
};

}  // namespace

c10::Allocator& allocator() {
  static auto& memory = *new Memory;
  return memory;
}

void configure_standin(int device, const StandinSettings& settings) { Device::get(device).configure(settings); }

int watch_waits(int device, WaitKind kind, int ignored) { return Device::get(device).watch(kind, ignored); }

void lose_standin(int device, bool lost, int after_calls) { Device::get(device).lose(lost, after_calls); }

size_t standin_memory(int device) { return Device::get(device).used(); }

}  // namespace remuda::train::testing
