// The stand-in itself: it computes what a CPU computes, and punishes what it is made to punish.
#include "train/testing/standin/standin.h"

#include <gtest/gtest.h>

#include "train/device/device_ops.h"
#include "train/testing/cases.h"

namespace remuda::train::testing {
namespace {

const torch::Device kDevice(torch::kXPU, 1);

class Standin : public ::testing::Test {
 protected:
  ~Standin() override {
    lose_standin(1, false);
    configure_standin(1, {});
  }
};

TEST_F(Standin, ComputesTheBitsOfACpu) {
  configure_standin(1, {.random_delay_s = 1e-4});
  for (const auto& model_case : model_cases()) {
    const Batch batch = make_batch(model_case, 6, 3, torch::kFloat);
    const auto host = make_seeded(model_case, torch::kFloat), device = make_seeded(model_case, torch::kFloat);
    device->to(kDevice);
    case_loss(model_case, *host, batch).sum.backward();
    case_loss(model_case, *device, {batch.input.to(kDevice), batch.target}).sum.backward();
    const auto expected = host->parameters(), computed = device->parameters();
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_LT(relative_error({computed[i].grad().to(torch::kCPU)}, {expected[i].grad()}), 1e-6)
          << model_case.name << ", parameter " << i;
  }
}

TEST_F(Standin, MemoryIsFullOfNaNBeforeItIsWritten) {
  EXPECT_TRUE(torch::empty({100}, kDevice).to(torch::kCPU).isnan().all().item<bool>());
}

TEST_F(Standin, MemoryIsApartFromTheHosts) {
  const auto tensor = torch::zeros({100}, kDevice);
  EXPECT_DEATH(static_cast<void>(*static_cast<volatile float*>(tensor.data_ptr())), "");
}

TEST_F(Standin, FreedMemoryIsOverwrittenForThoseWhoStillReadIt) {
  configure_standin(1, {.lazy_copies = true});
  const auto ops = DeviceOps::open(kDevice).value();
  const auto host = torch::zeros({1000});
  Moment done;
  {
    const auto tensor = torch::ones({1000}, kDevice);
    done = ops.copy(host, tensor, ops.here());
  }
  torch::zeros({1}, kDevice).to(torch::kCPU);  // the default stream has got there
  ASSERT_TRUE(ops.wait(done, "a copy", 10));
  EXPECT_TRUE(host.isnan().all().item<bool>());
}

TEST_F(Standin, ACopyToTheHostIsNotThereBeforeItIsDone) {
  configure_standin(1, {.lazy_copies = true});
  const auto ops = DeviceOps::open(kDevice).value();
  const auto tensor = torch::ones({1000}, kDevice);
  auto host = torch::zeros({1000});
  ops.finish_copies();
  const Moment done = ops.copy(host, tensor, ops.here());
  EXPECT_TRUE(host.isnan().all().item<bool>());
  ASSERT_TRUE(ops.wait(done, "a copy", 10));
  EXPECT_TRUE(host.eq(1).all().item<bool>());
}

TEST_F(Standin, IsFullLikeAGpu) {
  const size_t before = standin_memory(1);
  configure_standin(1, {.memory_cap = before + (1 << 20)});
  try {
    torch::zeros({1 << 20}, kDevice);
    FAIL() << "4 MiB fit in 1 MiB";
  } catch (const std::exception& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
  }
  EXPECT_EQ(standin_memory(1), before);
  EXPECT_NO_THROW(torch::zeros({1 << 17}, kDevice));
}

TEST_F(Standin, ADeviceThatIsLostFailsInEveryCallAndEndsEveryWait) {
  configure_standin(1, {.lazy_copies = true});
  const auto ops = DeviceOps::open(kDevice).value();
  const auto tensor = torch::ones({1000}, kDevice);
  const Moment done = ops.copy(torch::zeros({1000}), tensor, ops.here());
  lose_standin(1);
  EXPECT_ANY_THROW(torch::Tensor(tensor).mul_(2));
  const auto waited = ops.wait(done, "the copy of bucket 3", 10);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().message, "xpu:1 was lost during the copy of bucket 3: the stand-in device is lost");
}

TEST_F(Standin, AWaitHasAnEnd) {
  const auto ops = DeviceOps::open(kDevice).value();
  const auto tensor = torch::ones({1000}, kDevice);
  configure_standin(1, {.random_delay_s = 1});  // a task of three is all but sure to take longer than 10 ms
  const auto waited = ops.wait(ops.copy(torch::zeros({1000}), tensor, ops.here()), "the copy of bucket 3", 0.01);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().message, "xpu:1 did not finish the copy of bucket 3 within 0 s");
}

TEST(DeviceOps, RefusesADeviceThatLibtorchDoesNotHave) {
  const auto none = DeviceOps::open(torch::Device(torch::kXPU, kStandinDevices));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::usage);
  EXPECT_NE(none.error().message.find("xpu:4 is not there: libtorch "), std::string::npos) << none.error().message;
  const auto other = DeviceOps::open(torch::Device(torch::kHIP, 0));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("cannot compute on hip devices"), std::string::npos) << other.error().message;
}

}  // namespace
}  // namespace remuda::train::testing
