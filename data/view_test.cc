#include "data/view.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

namespace remuda::data {
namespace {

using testing::ElementsAre;

/// Values 0..5 in two rows of three; black is 0.
std::vector<int> seen(const View& view) {
  const ImageShape shape{1, 2, 3};
  const std::vector<uint8_t> image{1, 2, 3, 4, 5, 6};
  std::vector<float> values(shape.bytes());
  write_view(image, shape, view, ValueTable({.mean = {0}, .deviation = {1.0 / 255}}, 1), values);
  std::vector<int> rounded;
  for (const float value : values) rounded.push_back(int(std::lround(value)));
  return rounded;
}

TEST(View, MirrorsAndMovesOverBlack) {
  EXPECT_THAT(seen({}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(seen({.mirrored = true}), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(seen({.down = 1}), ElementsAre(0, 0, 0, 1, 2, 3));
  EXPECT_THAT(seen({.down = -1}), ElementsAre(4, 5, 6, 0, 0, 0));
  EXPECT_THAT(seen({.right = 1}), ElementsAre(0, 1, 2, 0, 4, 5));
  EXPECT_THAT(seen({.right = -2}), ElementsAre(3, 0, 0, 6, 0, 0));
  EXPECT_THAT(seen({.mirrored = true, .down = 1, .right = 1}), ElementsAre(0, 0, 0, 2, 1, 0));
  EXPECT_THAT(seen({.down = 9, .right = -9}), ElementsAre(0, 0, 0, 0, 0, 0)) << "further than it is wide";
}

TEST(View, IsDrawnFromSeedEpochAndImage) {
  const ImageTransform both{.flip = true, .crop = 2, .seed = 5};
  std::set<std::pair<int, int>> moves;
  int mirrored = 0, other_epoch = 0, other_seed = 0;
  for (uint64_t index = 0; index < 1000; ++index) {
    const View view = view_of(both, 1, index);
    EXPECT_EQ(view, view_of(both, 1, index));
    moves.insert({view.down, view.right});
    mirrored += view.mirrored;
    other_epoch += !(view == view_of(both, 2, index));
    other_seed += !(view == view_of({.flip = true, .crop = 2, .seed = 6}, 1, index));
  }
  EXPECT_EQ(moves.size(), 25u) << "-2 to 2 in both directions";
  EXPECT_NEAR(mirrored, 500, 60);
  EXPECT_GT(other_epoch, 900);
  EXPECT_GT(other_seed, 900);
}

TEST(View, IsTheImageItselfUnlessAskedFor) {
  for (uint64_t index = 0; index < 50; ++index) {
    EXPECT_EQ(view_of({}, 3, index), View{});
    EXPECT_EQ(view_of({.flip = true, .crop = 4}, 0, index), View{}) << "epoch 0 is to test with";
    EXPECT_FALSE(view_of({.crop = 4}, 3, index).mirrored);
    EXPECT_EQ(view_of({.flip = true}, 3, index).right, 0);
  }
}

TEST(ValueTable, IsMinusOneToOneOrNormalisedByChannel) {
  const ValueTable plain({}, 1);
  EXPECT_EQ(plain.of(0)[0], -1);
  EXPECT_EQ(plain.of(0)[255], 1);
  const ValueTable normalised({.mean = {0.5, 0.2}, .deviation = {0.25, 0.1}}, 2);
  EXPECT_FLOAT_EQ(normalised.of(0)[255], 2);
  EXPECT_FLOAT_EQ(normalised.of(1)[51], 0);
  EXPECT_FLOAT_EQ(normalised.of(1)[255], 8);
}

TEST(Transform, NeedsAMeanAndADeviationForEachChannel) {
  const ImageShape shape{3, 4, 4};
  EXPECT_TRUE(check_transform({}, shape));
  EXPECT_TRUE(check_transform({.mean = {1, 2, 3}, .deviation = {1, 2, 3}}, shape));
  EXPECT_EQ(check_transform({.mean = {1, 2, 3}, .deviation = {1}}, shape).error().message,
            "data.mean and data.std must have a number for each channel; the images have 3, and they 3 and 1");
  EXPECT_FALSE(check_transform({.mean = {1}, .deviation = {1}}, shape));
  EXPECT_FALSE(check_transform({.mean = {1, 2, 3}}, shape));
}

}  // namespace
}  // namespace remuda::data
