#include "data/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/testing/pictures.h"

namespace remuda::data {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::StartsWith;

Picture decoded(const std::string& file, int channels, PictureSize needed = {1 << 14, 1 << 14}) {
  Picture picture;
  const auto done = decode(bytes_of(file), "a.jpg", channels, needed, picture);
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  return picture;
}

std::string refusal(const std::string& file) {
  Picture picture;
  const auto done = decode(bytes_of(file), "cat/a.jpg", 3, {8, 8}, picture);
  if (done) return "none";
  EXPECT_EQ(done.error().kind, ErrorKind::usage);
  EXPECT_EQ(done.error().message.find('\n'), std::string::npos);
  return done.error().message;
}

/// The largest difference of two pictures' values.
int difference(const Picture& a, const Picture& b) {
  EXPECT_EQ(a.size, b.size);
  EXPECT_EQ(a.values.size(), b.values.size());
  int most = 0;
  for (size_t i = 0; i < std::min(a.values.size(), b.values.size()); ++i)
    most = std::max(most, std::abs(a.values[i] - b.values[i]));
  return most;
}

TEST(Decode, PngFilesGiveTheirPixels) {
  const Picture picture = slopes({5, 7});
  const Picture same = decoded(png_file(picture), 3);
  EXPECT_EQ(same.size, (PictureSize{5, 7}));
  EXPECT_EQ(same.values, picture.values);
}

TEST(Decode, JpegFilesGiveAboutTheirPixels) {
  const Picture picture = slopes({40, 24});
  EXPECT_LE(difference(decoded(jpeg_file(picture), 3), picture), 6);
}

TEST(Decode, OneChannelIsLuma) {
  const Picture red = plain({2, 2}, {255, 0, 0});
  EXPECT_THAT(decoded(png_file(red), 1).values, ElementsAre(76, 76, 76, 76)) << "0.299 of 255";
  EXPECT_THAT(decoded(jpeg_file(red), 1).values, Each(testing::AllOf(testing::Ge(74), testing::Le(78))));
}

TEST(Decode, GreyFilesHaveThreeEqualChannels) {
  const Picture grey = plain({1, 2}, {77});
  EXPECT_THAT(decoded(png_file(grey), 3).values, Each(77));
  EXPECT_THAT(decoded(jpeg_file(grey), 3).values, Each(77));
  EXPECT_EQ(decoded(png_file(grey), 1).values.size(), 2u);
}

TEST(Decode, TransparentPartsAreWhite) {
  EXPECT_THAT(decoded(png_file(plain({1, 1}, {10, 20, 30, 0})), 3).values, ElementsAre(255, 255, 255));
  EXPECT_THAT(decoded(png_file(plain({1, 1}, {10, 20, 30, 255})), 3).values, ElementsAre(10, 20, 30));
}

TEST(Decode, JpegFilesForPrintHoldComplements) {
  const Picture inks = plain({8, 8}, {255, 128, 0, 255});
  const Picture picture = decoded(jpeg_file(inks), 3);
  EXPECT_NEAR(picture.values[0], 255, 3);
  EXPECT_NEAR(picture.values[1], 128, 3);
  EXPECT_NEAR(picture.values[2], 0, 3);
}

TEST(Decode, LargeJpegFilesAreDecodedSmallerButNotTooSmall) {
  const std::string file = jpeg_file(slopes({160, 320}));
  EXPECT_EQ(decoded(file, 3, {40, 40}).size, (PictureSize{40, 80}));
  EXPECT_EQ(decoded(file, 3, {41, 41}).size, (PictureSize{80, 160}));
  EXPECT_EQ(decoded(file, 3, {20, 41}).size, (PictureSize{40, 80})) << "both directions count";
  EXPECT_EQ(decoded(file, 3, {160, 320}).size, (PictureSize{160, 320}));
  EXPECT_EQ(decoded(file, 3, {1, 1}).size, (PictureSize{20, 40})) << "an eighth is the least";
}

TEST(Decode, ThatIsCutOffIsRefused) {
  const std::string jpeg = jpeg_file(slopes({64, 64})), png = png_file(slopes({64, 64}));
  EXPECT_THAT(refusal(jpeg.substr(0, jpeg.size() / 2)), StartsWith("cat/a.jpg is a damaged JPEG file: Premature end"));
  EXPECT_THAT(refusal(png.substr(0, png.size() / 2)), StartsWith("cat/a.jpg is a damaged PNG file: "));
  EXPECT_THAT(refusal(jpeg.substr(0, 20)), StartsWith("cat/a.jpg is a damaged JPEG file: "));
  EXPECT_THAT(refusal(png.substr(0, 20)), StartsWith("cat/a.jpg is a damaged PNG file: "));
}

TEST(Decode, OfAnotherKindIsRefused) {
  EXPECT_EQ(refusal("GIF89a"), "cat/a.jpg is neither a JPEG nor a PNG file");
  EXPECT_EQ(refusal(""), "cat/a.jpg is neither a JPEG nor a PNG file");
}

/// A JPEG header names its size in 16 bits each, high byte first.
TEST(Decode, ThatAnnouncesTooManyPixelsIsRefusedByItsHeader) {
  std::string file = jpeg_file(slopes({8, 8}));
  const size_t frame = file.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  file.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_EQ(refusal(file), "cat/a.jpg announces 65500 x 65500 pixels; at most 89478485 are decoded");
}

TEST(Decode, NamesOfPictures) {
  for (const char* name : {"a.jpg", "a.JPG", "b/c.jpeg", "d.e.png"}) EXPECT_TRUE(is_picture_name(name)) << name;
  for (const char* name : {"a.gif", "jpg", "a.jpg.txt", "", "png"}) EXPECT_FALSE(is_picture_name(name)) << name;
}

}  // namespace
}  // namespace remuda::data
