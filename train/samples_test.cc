#include "train/samples.h"

#include <filesystem>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "comm/testing/run_ranks.h"
#include "data/testing/pictures.h"

namespace remuda::train {
namespace {

TEST(Samples, ImagesAreGatheredInTheOrderAskedForWithTheirLabels) {
  const ScratchFolder folder;
  const std::string pixels{char(0), char(51), char(102), char(255), char(255), char(204), char(153), char(0)};
  const job::DataFiles files{
      .images = folder.write("images", std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02", 16) + pixels),
      .labels = folder.write("labels", std::string("\0\0\x08\x01\0\0\0\x02\x01\x03", 10))};
  const Samples samples = Samples::open({.train = files}, data::Split::train, {}).value();
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
  const Samples samples =
      Samples::open(
          {.format = job::DataFormat::tokens, .train = {.tokens = folder.write("tokens", bytes)}, .context = 3},
          data::Split::train, {.vocabulary = 10})
          .value();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples.model_input().context, 3);
  const std::vector<uint64_t> indices{1, 0};
  const Batch batch = samples.gather(indices).value();
  EXPECT_TRUE(batch.input.equal(torch::tensor({{4, 5, 6}, {1, 2, 3}}, torch::kLong)));
  EXPECT_TRUE(batch.target.equal(torch::tensor({{5, 6, 7}, {2, 3, 4}}, torch::kLong)));
}

TEST(Samples, RanksOfAHostDecodeAnImageOnce) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path("grey"));
  const std::string file = folder.write("grey/1.png", data::png_file(data::plain({2, 2}, {102, 102, 102})));
  const job::DataSpec spec{
      .format = job::DataFormat::images, .train = {.path = folder.path()}, .size = 2, .cache_mib = 1};
  const std::vector<uint64_t> first{0};
  comm::run_ranks(3, comm::ConnectOptions::Transport::automatic, [&](comm::Communicator& communicator) {
    Samples samples = Samples::open(spec, data::Split::train, {}).value();
    ASSERT_TRUE(samples.share_cache(communicator));
    if (communicator.rank() == 1) {
      ASSERT_TRUE(samples.gather(first));
      std::filesystem::remove(file);
    }
    ASSERT_TRUE(communicator.barrier(1));
    const auto batch = samples.gather(first);
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_NEAR(batch->input.mean().item<double>(), 102 / 127.5 - 1, 1e-6);
  });
}

}  // namespace
}  // namespace remuda::train
