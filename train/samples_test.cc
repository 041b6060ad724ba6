#include "train/samples.h"

#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"

namespace remuda::train {
namespace {

TEST(Samples, ImagesAreGatheredInTheOrderAskedForWithTheirLabels) {
  const ScratchFolder folder;
  const std::string pixels{char(0), char(51), char(102), char(255), char(255), char(204), char(153), char(0)};
  const job::DataFiles files{
      .images = folder.write("images", std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02", 16) + pixels),
      .labels = folder.write("labels", std::string("\0\0\x08\x01\0\0\0\x02\x01\x03", 10))};
  const Samples samples = Samples::open({}, files, {}).value();
  EXPECT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples.model_input().classes, 4) << "labels 0 to 3";
  const std::vector<uint64_t> indices{1, 0, 1};
  const Batch batch = samples.gather(indices).value();
  EXPECT_EQ(batch.input.sizes(), (std::vector<int64_t>{3, 1, 2, 2}));
  EXPECT_EQ(batch.input.scalar_type(), torch::kFloat);
  const auto first = torch::tensor({1.0, 0.6, 0.2, -1.0}).view({1, 2, 2});
  EXPECT_TRUE(batch.input[0].allclose(first, 0, 1e-6)) << "0..255 is -1..1";
  EXPECT_TRUE(batch.input[1].allclose(-first, 0, 1e-6));
  EXPECT_TRUE(batch.target.equal(torch::tensor({3, 1, 3}, torch::kLong)));
}

TEST(Samples, TokensHaveTheNextTokenAsTarget) {
  const ScratchFolder folder;
  std::string bytes;
  for (char token = 1; token <= 9; ++token) bytes += {token, '\0'};
  const Samples samples = Samples::open({.format = job::DataFormat::tokens, .context = 3},
                                        {.tokens = folder.write("tokens", bytes)}, {.vocabulary = 10})
                              .value();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples.model_input().context, 3);
  const std::vector<uint64_t> indices{1, 0};
  const Batch batch = samples.gather(indices).value();
  EXPECT_TRUE(batch.input.equal(torch::tensor({{4, 5, 6}, {1, 2, 3}}, torch::kLong)));
  EXPECT_TRUE(batch.target.equal(torch::tensor({{5, 6, 7}, {2, 3, 4}}, torch::kLong)));
}

}  // namespace
}  // namespace remuda::train
