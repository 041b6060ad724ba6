// On the stand-in accelerator: a program that sees several devices, on threads whose current device is another one.
#include "train/device/device_ops.h"

#include <c10/core/DeviceGuard.h>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <thread>

#include "train/device/vendor_runtime.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

constexpr int kOther = 2;

DeviceOps other_ops() { return DeviceOps::open(torch::Device(torch::kXPU, kOther)).value(); }

/// On a thread that has made no device its own, as a work queue's has not.
void on_a_thread(const std::function<void()>& work) { std::thread(work).join(); }

struct HostPages {
  HostPages() : memory(static_cast<std::byte*>(std::aligned_alloc(4096, 8192)), 8192) {}
  ~HostPages() { std::free(memory.data()); }
  HostPages(const HostPages&) = delete;
  std::span<std::byte> memory;
};

class OnOneOfSeveralDevices : public ::testing::Test {
 protected:
  ~OnOneOfSeveralDevices() override {
    for (const int device : {0, kOther}) testing::configure_standin(device, {});
  }
};

TEST_F(OnOneOfSeveralDevices, MemoryIsRegisteredForThatOne) {
  const DeviceOps ops = other_ops();
  const HostPages pages;
  on_a_thread([&] { EXPECT_TRUE(ops.register_host(pages.memory)); });
  EXPECT_EQ(testing::standin_pinned_by(pages.memory.data()), kOther);
  ops.release_host(pages.memory);
  EXPECT_EQ(ops.refused().bytes, 0);
}

TEST_F(OnOneOfSeveralDevices, OneWithoutANumberIsTheCurrentOneAndStaysIt) {
  std::thread([] {
    const c10::DeviceGuard current(torch::Device(torch::kXPU, kOther));
    const DeviceOps ops = DeviceOps::open(torch::kXPU).value();
    EXPECT_EQ(ops.device(), torch::Device(torch::kXPU, kOther));
  }).join();
}

TEST_F(OnOneOfSeveralDevices, ItsMemoryIsWhatIsKnown) {
  testing::configure_standin(0, {.memory_cap = 1 << 20, .tells_memory = true});
  testing::configure_standin(kOther, {.memory_cap = 3 << 20, .tells_memory = true});
  const DeviceOps ops = other_ops();
  on_a_thread([&] {
    EXPECT_EQ(ops.memory_bytes(), 3 << 20);
    EXPECT_EQ(ops.free_bytes(), double((3 << 20) - testing::standin_memory(kOther)));
  });
}

TEST_F(OnOneOfSeveralDevices, ItsCapabilityIsWhatIsKnown) {
  testing::configure_standin(0, {.capability = 90});
  testing::configure_standin(kOther, {.capability = 61});
  EXPECT_EQ(device_capability(0), 90);
  EXPECT_EQ(device_capability(kOther), 61);
  EXPECT_FALSE(device_capability(1)) << "the library does not say";
}

TEST_F(OnOneOfSeveralDevices, WhatItsDriverRefusesToRegisterIsCounted) {
  testing::configure_standin(kOther, {.refuses_to_register = true});
  const DeviceOps ops = other_ops();
  const DeviceOps copy = ops;  // NOLINT(performance-unnecessary-copy-initialization): copies count together
  EXPECT_EQ(ops.refused().why, "");
  const HostPages pages, more;
  EXPECT_FALSE(ops.register_host(pages.memory));
  EXPECT_FALSE(copy.register_host(more.memory.first(4096)));
  EXPECT_EQ(ops.refused().bytes, 8192 + 4096);
  EXPECT_EQ(ops.refused().why, "operation not supported (error 801)");
}

}  // namespace
}  // namespace remuda::train
