#include "train/testing/standin/library.h"

#include <c10/core/Stream.h>
#include <cstdio>

#include "train/testing/standin/device.h"

/// What remuda looks up by name in a program for GPUs.
extern "C" {
int cudaDeviceGetPCIBusId(char* address, int size, int device) {
  std::snprintf(address, size_t(size), "0000:%02x:00.0", unsigned(device));
  return 0;
}
/// c10::cuda::CUDAStream::stream()
void* standin_stream(const c10::Stream* stream) __asm__("_ZNK3c104cuda10CUDAStream6streamEv");
void* standin_stream(const c10::Stream* stream) {
  return &remuda::train::testing::Device::get(stream->device_index()).stream(int(stream->id()));
}
}

namespace remuda::train::testing {

void use_standin_library(const comm::LibraryFaults& faults) {
  const auto enqueue = [](void* stream, std::function<void()> task) {
    static_cast<Stream*>(stream)->push(std::move(task));
  };
  comm::configure_standin_library({enqueue, real}, faults);
}

}  // namespace remuda::train::testing
