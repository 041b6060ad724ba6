#include "data/resample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/testing/pictures.h"

namespace remuda::data {
namespace {

using testing::Each;
using testing::ElementsAre;

std::vector<uint8_t> resampled(const Picture& picture, const Region& region, const ImageShape& shape) {
  std::vector<uint8_t> values(shape.bytes());
  Resampler()(picture, region, shape, values);
  return values;
}

std::vector<uint8_t> resampled(const Picture& picture, const ImageShape& shape) {
  return resampled(picture, middle(picture.size, shape), shape);
}

TEST(Resample, ToItsOwnSizeOnlyPartsTheChannels) {
  const Picture picture{3, {1, 2}, {1, 2, 3, 11, 12, 13}};
  EXPECT_THAT(resampled(picture, {3, 1, 2}), ElementsAre(1, 11, 2, 12, 3, 13));
}

TEST(Resample, APlainPictureStaysAsItIs) {
  for (const PictureSize size : {PictureSize{3, 5}, {64, 48}, {1, 1}, {7, 1000}})
    EXPECT_THAT(resampled(plain(size, {200}), {1, 16, 9}), Each(200));
}

/// Values as Pillow's: Image.fromarray(numpy.array([[0, 40, 80, 120, 160, 200]], "uint8")).resize((3, 1), BILINEAR),
/// and to (12, 1).
TEST(Resample, GivesPillowsValues) {
  const Picture slope{1, {1, 6}, {0, 40, 80, 120, 160, 200}};
  EXPECT_THAT(resampled(slope, {0, 0, 1, 6}, {1, 1, 3}), ElementsAre(29, 100, 171));
  EXPECT_THAT(resampled(slope, {0, 0, 1, 6}, {1, 1, 12}),
              ElementsAre(0, 10, 30, 50, 70, 90, 110, 130, 150, 170, 190, 200));
}

TEST(Resample, WhatStandsOutIsCutOffEvenly) {
  const Picture wide{1, {1, 5}, {9, 1, 2, 3, 9}};
  EXPECT_THAT(resampled(wide, {1, 1, 3}), ElementsAre(1, 2, 3));
  const Picture tall{1, {3, 1}, {9, 5, 9}};
  EXPECT_THAT(resampled(tall, {1, 1, 1}), ElementsAre(5));
}

TEST(Resample, ARegionMayLieAtTheEdge) {
  const Picture slope{1, {2, 4}, {0, 10, 20, 30, 0, 10, 20, 30}};
  EXPECT_THAT(resampled(slope, {0, 2, 2, 2}, {1, 2, 2}), ElementsAre(20, 30, 20, 30));
  EXPECT_THAT(resampled(slope, {1, 0, 1, 1}, {1, 1, 1}), ElementsAre(0));
}

}  // namespace
}  // namespace remuda::data
