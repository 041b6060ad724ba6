// What is taken for granted of the library of collectives that the device's maker has, and of the way to it.
#include <dlfcn.h>
#include <fmt/format.h>

#include "comm/nccl/factory.h"
#include "train/device/device_ops.h"
#include "train/device/vendor_runtime.h"
#include "train/facts/fact.h"

namespace remuda::train::facts {
namespace {

constexpr int64_t kBytes = int64_t{1} << 30;
constexpr int kTimes = 20;  // some milliseconds
constexpr double kPatience_s = 60;

using Memset = int(void*, int, size_t, void*);

Memset* find_memset() {
  for (const char* name : {"cudaMemsetAsync", "hipMemsetAsync"})
    if (void* found = ::dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<Memset*>(found);
  return nullptr;
}

Answer stream_handle(at::Device device) {
  const Streams streams(device);
  const c10::Stream other = streams.another();
  void* const handle = native_stream(c10::impl::VirtualGuardImpl(device.type()), other);
  auto* const set = find_memset();
  if (!handle || !set) return does_not_hold(handle ? "its maker's run-time library is not found" : "there is none");
  const auto memory = torch::zeros({kBytes}, at::TensorOptions().device(device).dtype(at::kByte));
  streams.wait();
  for (int i = 0; i < kTimes; ++i)
    if (const int error = set(memory.data_ptr(), 1, size_t(kBytes), handle); error != 0)
      return does_not_hold(fmt::format("the run-time library refuses it with error {}", error));
  const bool busy = !streams.idle(other);
  streams.wait(other);
  if (!memory.eq(1).all().item<bool>()) return does_not_hold("the stream was done before the work behind its handle");
  return busy ? holds("work that is given to the handle keeps the stream busy")
              : cannot_be_asked("the work was done too early");
}

/// A group of one: two ranks need two devices.
Answer collectives(at::Device device) {
  const auto place = device_address(device.index());
  if (!place) return does_not_hold("the maker's run-time library does not report the device's address");
  const auto library = comm::nccl::find(place->maker, library_folders());
  if (!library) return cannot_be_asked(library.error().message);
  const auto id = (*library)->make_id();
  if (!id) return does_not_hold(id.error().message);
  const auto ops = DeviceOps::open(device);
  const auto group = (*library)->join(*id, 0, 1, kPatience_s);
  if (!group) return does_not_hold(group.error().message);
  const auto values = torch::arange(1000, at::TensorOptions().device(device).dtype(at::kFloat));
  const comm::Parts all({size_t(values.numel())});
  const std::span bytes(static_cast<std::byte*>(values.data_ptr()), values.nbytes());
  const auto done = ops->in_library(
      [&](void* stream) -> Result<void> {
        REMUDA_TRY((*group)->reduce_scatter(comm::Values(comm::Element::float32, bytes), all, stream));
        return (*group)->gather_parts(bytes, all.in_bytes(sizeof(float)), stream);
      },
      ops->here());
  if (!done) return does_not_hold(done.error().message);
  const auto waited = ops->wait(*done, "a sum", kPatience_s, [&] { return (*group)->check(); });
  if (!waited) return does_not_hold(waited.error().message);
  if (!values.to(at::kCPU).equal(torch::arange(1000, at::kFloat))) return does_not_hold("the sum is wrong");
  (*group)->abort();
  return holds(fmt::format("{} on the device at {}: joined, called, aborted", (*library)->name(), place->address));
}

}  // namespace

std::vector<Fact> collectives_facts() {
  return {
      {"stream handle", "the handle of a stream is that stream for functions of the device's maker", stream_handle},
      {"collectives", "the maker's library is found, takes calls that do not wait, and can be aborted", collectives},
  };
}

}  // namespace remuda::train::facts
