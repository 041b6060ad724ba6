// What libtorch asks of a type of device: the current one, its streams and events.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "train/testing/standin/device.h"

namespace remuda::train::testing {
namespace {

constexpr auto kType = c10::DeviceType::XPU;

c10::Device as_device(int index) { return {kType, static_cast<c10::DeviceIndex>(index)}; }
int index_of(c10::Device device) { return device.has_index() ? device.index() : current_device(); }
c10::Stream as_stream(c10::Device device, int id) {
  return c10::Stream(c10::Stream::UNSAFE, as_device(index_of(device)), static_cast<c10::StreamId>(id));
}

/// What libtorch keeps in its void*: the last point recorded.
struct Handle {
  std::shared_ptr<Event> event;
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return as_device(current_device()); }
  void setDevice(c10::Device device) const override { set_current_device(index_of(device)); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { set_current_device(index_of(device)); }
  c10::DeviceIndex deviceCount() const noexcept override { return kStandinDevices; }

  c10::Stream getStream(c10::Device device) const noexcept override {
    return as_stream(device, current_stream(index_of(device)));
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return as_stream(device, kComputeStream); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return as_stream(device, Device::get(index_of(device)).next_stream());
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return as_stream(stream.device(), set_current_stream(index_of(stream.device()), int(stream.id())));
  }
  /// Of libtorch 2.11 on.
  void* getStreamNativeHandle(const c10::Stream stream) const { return &stream_of(stream); }
  bool queryStream(const c10::Stream& stream) const override { return stream_of(stream).has_done_all(); }
  void synchronizeStream(const c10::Stream& stream) const override { stream_of(stream).drain(); }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    Device& device = Device::get(index_of(stream.device()));
    device.check();
    if (!*event) *event = new Handle;
    auto& recorded = static_cast<Handle*>(*event)->event;
    recorded = std::make_shared<Event>();
    recorded->device = index_of(stream.device());
    recorded->stream = int(stream.id());
    stream_of(stream).hurry(false);
    recorded->tasks = stream_of(stream).push([] {});
  }
  void block(void* event, const c10::Stream& stream) const override {
    const auto point = static_cast<Handle*>(event)->event;
    Device& device = Device::get(point->device);
    const bool compute_waits = stream.id() == kComputeStream, for_compute = point->stream == kComputeStream;
    const WaitKind kind = compute_waits ? WaitKind::compute_for_copies
                          : for_compute ? WaitKind::copies_for_compute
                                        : WaitKind::copies_for_copies;
    if (stream.id() != point->stream && device.ignores(kind)) return stream_of(stream).hurry(true);
    stream_of(stream).push([point] { Device::get(point->device).stream(point->stream).wait_for(point->tasks); });
  }
  bool queryEvent(void* event) const override {
    if (!event) return true;
    const auto point = static_cast<Handle*>(event)->event;
    Device& device = Device::get(point->device);
    device.check();
    if (point->stream != kComputeStream && point->ignored_by_host < 0)
      point->ignored_by_host = device.ignores(WaitKind::host_for_copies) ? 1 : 0;
    return point->ignored_by_host == 1 || device.stream(point->stream).has_done(point->tasks);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<Handle*>(event); }

 private:
  static Stream& stream_of(const c10::Stream& stream) {
    return Device::get(index_of(stream.device())).stream(int(stream.id()));
  }
};

C10_REGISTER_GUARD_IMPL(XPU, Guard);

}  // namespace
}  // namespace remuda::train::testing
