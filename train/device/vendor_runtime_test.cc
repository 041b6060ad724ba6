// A maker's run-time library that refuses everything, in place of CUDA's: this program exports its functions.
#include "train/device/vendor_runtime.h"

#include <array>
#include <gtest/gtest.h>
#include <utility>

namespace {
constexpr int kInvalidValue = 1;
int last_error = 0;
int asked_device = -1;
int fail() { return last_error = kInvalidValue; }
}  // namespace

extern "C" {
int cudaHostRegister(void*, size_t, unsigned) { return fail(); }
int cudaHostUnregister(void*) { return fail(); }
int cudaMemGetInfo(size_t*, size_t*) { return fail(); }
int cudaDeviceGetAttribute(int*, int, int device) {
  asked_device = device;
  return fail();
}
const char* cudaGetErrorString(int) { return "invalid argument"; }
int cudaGetLastError() { return std::exchange(last_error, 0); }
}

namespace remuda::train {
namespace {

/// libtorch asks for the last error after each kernel it starts, and throws if there is one.
TEST(VendorRuntime, AFailedCallLeavesNoErrorForLibtorchToFind) {
  std::array<std::byte, 64> memory{};
  EXPECT_EQ(pin_host(memory).error().message, "invalid argument (error 1)");
  EXPECT_EQ(last_error, 0);
  unpin_host(memory);
  EXPECT_EQ(last_error, 0);
  EXPECT_FALSE(device_memory());
  EXPECT_EQ(last_error, 0);
  EXPECT_FALSE(device_capability(3));
  EXPECT_EQ(last_error, 0);
  EXPECT_EQ(asked_device, 3);
}

}  // namespace
}  // namespace remuda::train
