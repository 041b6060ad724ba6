// What libtorch's profiler asks of a type of device: events with times, and ranges for its maker's own profiler.
#include <chrono>

#include "train/testing/standin/device.h"
#include "train/torch_compat.h"

namespace remuda::train::testing {
namespace {

using Event = DeviceEvent::Pointer;

/// In the work of a stream.
struct Point {
  Device* device = nullptr;
  Stream* stream = nullptr;
  uint64_t tasks = 0;
  std::chrono::steady_clock::time_point passed;
};

Point& point_of(const Event& event) { return *reinterpret_cast<Point*>(event.get()); }

struct Stubs final : ProfilerStubs {
  void record(DeviceEvent::Index* index, Event* event, int64_t*) const override {
    const int current = current_device();
    *index = static_cast<DeviceEvent::Index>(current);
    Device& device = Device::get(current);
    device.check();
    const auto point = std::make_shared<Point>();
    point->device = &device;
    point->stream = &device.stream(current_stream(current));
    point->tasks = point->stream->push([point] { point->passed = std::chrono::steady_clock::now(); });
    *event = Event(point, reinterpret_cast<Event::element_type*>(point.get()));
  }
  float elapsed(const Event* from, const Event* to) const override {
    for (const Event* event : {from, to}) {
      point_of(*event).device->check();
      point_of(*event).stream->wait_for(point_of(*event).tasks);
    }
    return std::chrono::duration<float, std::micro>(point_of(*to).passed - point_of(*from).passed).count();
  }
  void mark(const char*) const override {}
  void rangePush(const char* name) const override { standin_ranges().emplace_back(name); }
  void rangePop() const override { standin_ranges().emplace_back("end"); }
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)> call) const override {
    for (int device = 0; device < kStandinDevices; ++device) call(device);
  }
  void synchronize() const override {}
};

const bool kRegistered = [] {
  static Stubs stubs;
  torch::profiler::impl::registerCUDAMethods(&stubs);
  return true;
}();

}  // namespace

std::vector<std::string>& standin_ranges() {
  thread_local std::vector<std::string> ranges;
  return ranges;
}

}  // namespace remuda::train::testing
