#include "data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "data/image_set.h"
#include "data/testing/files.h"

namespace remuda::data {
namespace {

using testing::ElementsAre;

TEST(Dataset, ImagesAreFloatsFromMinusOneToOne) {
  const ScratchFolder folder;
  auto set =
      ImageSet::open(folder.write("images", idx({2, 1, 3}, 6, 256)), folder.write("labels", idx({2}, 2))).value();
  const ImageSamples samples(std::make_unique<ImageSet>(std::move(set)));
  ASSERT_EQ(samples.size(), 2u);
  ASSERT_EQ(samples.input_bytes(), 3 * sizeof(float));
  std::array<float, 3> input;
  std::array<int64_t, 1> target;
  ASSERT_TRUE(samples.write(1, 1, std::as_writable_bytes(std::span(input)), std::as_writable_bytes(std::span(target))));
  EXPECT_THAT(input, ElementsAre(3 / 127.5f - 1, 4 / 127.5f - 1, 5 / 127.5f - 1));
  EXPECT_EQ(target[0], 1);
}

TEST(Dataset, ImagesAreSeenAsTheirEpochHasThem) {
  const ScratchFolder folder;
  const std::string images = folder.write("images", idx({40, 1, 3}, 120, 256)),
                    labels = folder.write("labels", idx({40}, 40));
  const ImageTransform flip{.flip = true};
  const ImageSamples samples(std::make_unique<ImageSet>(ImageSet::open(images, labels).value()), flip);
  const ImageSamples plain(std::make_unique<ImageSet>(ImageSet::open(images, labels).value()));
  const auto read = [](const ImageSamples& set, uint64_t index, uint64_t epoch) {
    std::array<float, 3> input;
    std::array<int64_t, 1> target;
    EXPECT_TRUE(
        set.write(index, epoch, std::as_writable_bytes(std::span(input)), std::as_writable_bytes(std::span(target))));
    return input;
  };
  int mirrored = 0;
  for (uint64_t i = 0; i < samples.size(); ++i) {
    auto expected = read(plain, i, 4);
    EXPECT_EQ(read(samples, i, 0), expected);
    if (view_of(flip, 4, i).mirrored) std::swap(expected[0], expected[2]);
    EXPECT_EQ(read(samples, i, 4), expected);
    mirrored += view_of(flip, 4, i).mirrored;
  }
  EXPECT_GT(mirrored, 5);
}

TEST(Dataset, TokensAreFollowedByTheirTargets) {
  const ScratchFolder folder;
  const TokenSamples samples(TokenSet::open(folder.write("tokens", token_bytes({1, 2, 3, 4, 5})), 2, 6).value(), 2);
  ASSERT_EQ(samples.size(), 2u);
  std::array<int64_t, 2> input, target;
  ASSERT_EQ(samples.input_bytes(), sizeof input);
  ASSERT_EQ(samples.target_bytes(), sizeof target);
  ASSERT_TRUE(samples.write(1, 1, std::as_writable_bytes(std::span(input)), std::as_writable_bytes(std::span(target))));
  EXPECT_THAT(input, ElementsAre(3, 4));
  EXPECT_THAT(target, ElementsAre(4, 5));
}

}  // namespace
}  // namespace remuda::data
