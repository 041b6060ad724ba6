#include "train/device_norms.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "comm/testing/run_ranks.h"

namespace remuda::train {
namespace {

/// Two buckets, of which the first is longer than what is added up at once.
class DeviceNormsTest : public ::testing::Test {
 protected:
  static constexpr size_t kLong = (9 << 20) + 5, kShort = 3;

  static void with_norms(const std::function<void(DeviceNorms& norms, torch::Tensor gradients)>& test) {
    run_ranks(1, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const DeviceOps ops = DeviceOps::open(torch::Device(torch::kXPU, 0)).value();
      const auto options = torch::device(ops.device()).requires_grad(true);
      const std::vector parameters{torch::zeros({int64_t(kLong)}, options), torch::zeros({int64_t(kShort)}, options)};
      const std::array<size_t, 2> sizes{kLong, kShort}, groups{};
      const auto flat = FlatParameters::create(communicator, ops, parameters,
                                               FlatLayout(sizes, groups, {.bucket_bytes = 1, .state_shares = {1}}),
                                               {torch::kFloat, torch::kFloat});
      ASSERT_TRUE(flat) << flat.error().message;
      ASSERT_EQ(flat->layout().buckets(), 2u);
      DeviceNorms norms(ops, *flat);
      test(norms, flat->gradients().device());
    });
  }
};

TEST_F(DeviceNormsTest, AreThoseOfTheirParts) {
  with_norms([](DeviceNorms& norms, torch::Tensor gradients) {
    gradients.narrow(0, 0, int64_t(kLong)).fill_(1);
    gradients.narrow(0, gradients.numel() - 16, int64_t(kShort)).fill_(2);
    const size_t second = size_t(gradients.numel()) - 16;
    norms.take(0, {0, kLong});
    norms.take(1, {second, second + kShort});
    EXPECT_NEAR(norms.square_sum(), double(kLong) + 4 * kShort, 1e-6 * kLong) << "float32";
    norms.take(0, {5, 10});
    EXPECT_NEAR(norms.square_sum(), 5 + 4 * kShort, 1e-5) << "of a smaller part than before";
    norms.take(0, {});
    EXPECT_NEAR(norms.square_sum(), 4 * kShort, 1e-5) << "of none";
  });
}

TEST_F(DeviceNormsTest, AreFiniteForEveryFiniteFloatAndForNothingElse) {
  with_norms([](DeviceNorms& norms, torch::Tensor gradients) {
    const double largest = std::numeric_limits<float>::max();
    gradients.narrow(0, 0, 4).fill_(largest);
    norms.take(0, {0, kLong});
    EXPECT_NEAR(norms.square_sum() / (4 * largest * largest), 1, 1e-5);
    for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      gradients.narrow(0, int64_t(kLong) - 1, 1).fill_(bad);  // in the last slice
      norms.take(0, {0, kLong});
      EXPECT_FALSE(std::isfinite(norms.square_sum())) << bad;
    }
  });
}

}  // namespace
}  // namespace remuda::train
