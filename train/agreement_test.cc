#include "train/agreement.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// With what both ranks are refused, where rank 1 has these models' parameters, and rank 0 those.
std::string unlike_models(const std::vector<torch::Tensor>& one, const std::vector<torch::Tensor>& zero,
                          const std::vector<std::string>& names) {
  std::string sentence;
  comm::run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const auto checked = check_models(communicator, communicator.rank() == 1 ? one : zero, names);
    if (communicator.rank() == 0) sentence = checked ? "" : checked.error().message;
  });
  return sentence;
}

TEST(Agreement, OfUnlikeModelsNamesTheFirstParameterThatDiffers) {
  const auto tensor = [](std::initializer_list<int64_t> shape) { return torch::zeros(shape); };
  const std::vector<std::string> names{"up.weight", "up.bias", "down.weight"};
  const std::vector<torch::Tensor> two{tensor({4, 2}), tensor({4})};
  EXPECT_EQ(unlike_models(two, two, names), "");
  EXPECT_EQ(
      unlike_models({tensor({4, 2}), tensor({5})}, two, names),
      "the ranks have unlike models: up.bias is Float of shape [5] on rank 1, and up.bias is Float of shape [4] on "
      "rank 0");
  EXPECT_EQ(unlike_models({tensor({4, 2}), tensor({4}), tensor({2, 4})}, two, names),
            "the ranks have unlike models: rank 1 has 3 parameters, and rank 0 2; down.weight is on rank 1 only");
  EXPECT_EQ(unlike_models({tensor({4, 2})}, two, names),
            "the ranks have unlike models: rank 1 has 1 parameter, and rank 0 2; up.bias is on rank 0 only");
  EXPECT_THAT(unlike_models({tensor({4, 2}), tensor({5})}, two, {}), HasSubstr("models: parameter 2 is Float"));
}

TEST(Agreement, OfUnlikeValuesNamesTheParametersThatDiffer) {
  comm::run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    std::vector<float> values(8, 1);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    std::vector<NamedBytes> parameters;
    for (size_t i = 0; i < 4; ++i) parameters.push_back({"layer" + std::to_string(i), bytes.subspan(8 * i, 8)});
    const auto check = [&] { return check_values(communicator, bytes, parameters, torch::kCPU, 40); };
    EXPECT_TRUE(check());
    if (communicator.rank() == 1) values[5] = 2;
    EXPECT_THAT(check().error().message, StartsWith("after step 40 rank 1 and rank 0 have other values of layer2: "
                                                    "something besides the optimizer has changed them (rank 1 "
                                                    "computes with cpu, "));
    if (communicator.rank() == 1) std::ranges::fill(values, 3);
    EXPECT_THAT(check().error().message, HasSubstr("other values of layer0, layer1 and 2 other parameters: "));
  });
}

}  // namespace
}  // namespace remuda::train
