#include "data/image_set.h"

#include <array>
#include <filesystem>
#include <gmock/gmock.h>

#include "base/testing/scratch_folder.h"
#include "data/testing/files.h"

namespace remuda::data {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr const char* kFashion = "/usr/share/datasets/fashion-mnist/";  // of Debian's dataset-fashion-mnist

class ImageSetTest : public testing::Test {
 protected:
  std::string error_of(const std::string& images, const std::string& labels) {
    const auto set = ImageSet::open(folder_.write("images", images), folder_.write("labels", labels));
    if (set) return "";
    EXPECT_EQ(set.error().kind, ErrorKind::usage);
    return set.error().message;
  }
  ScratchFolder folder_;
  const std::string images_ = folder_.path("images"), labels_ = folder_.path("labels");
};

TEST_F(ImageSetTest, HoldsImagesAndLabels) {
  const auto set = ImageSet::open(folder_.write("images", idx({3, 2, 2}, 12)), folder_.write("labels", idx({3}, 3)));
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->size(), 3u);
  EXPECT_EQ(set->shape(), (ImageShape{1, 2, 2}));
  EXPECT_EQ(set->classes(), 3);
  EXPECT_THAT(set->pixels(1), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(set->label(2), 2);
}

TEST_F(ImageSetTest, HoldsColours) {
  const auto set =
      ImageSet::open(folder_.write("images", gzip(idx({2, 3, 4, 5}, 120))), folder_.write("labels", gzip(idx({2}, 2))));
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->shape(), (ImageShape{3, 4, 5}));
  EXPECT_EQ(set->pixels(1)[0], 60);
}

TEST_F(ImageSetTest, OutlivesItsFiles) {
  auto set = ImageSet::open(folder_.write("images", idx({3, 2, 2}, 12)), folder_.write("labels", idx({3}, 3)));
  ASSERT_TRUE(set);
  std::filesystem::remove(images_);
  std::filesystem::remove(labels_);
  const ImageSet moved = std::move(*set);
  EXPECT_THAT(moved.pixels(2), ElementsAre(8, 9, 10, 11));
  EXPECT_EQ(moved.label(1), 1);
}

TEST_F(ImageSetTest, RefusesLabelsForImages) {
  EXPECT_EQ(error_of(idx({3}, 3), idx({3, 2, 2}, 12)),
            images_ + " holds labels (1 dimension), not images; are images and labels swapped?");
}

TEST_F(ImageSetTest, RefusesOtherDimensions) {
  EXPECT_EQ(error_of(idx({3, 4}, 12), idx({3}, 3)), images_ + " has 2 dimensions; images have 3 or 4");
  EXPECT_EQ(error_of(idx({3, 2, 2}, 12), idx({3, 2}, 6)), labels_ + " has 2 dimensions; labels have 1");
}

TEST_F(ImageSetTest, RefusesHugeSides) {
  EXPECT_EQ(error_of(idx({1, 20000, 1}, 20000), idx({1}, 1)),
            images_ + " holds images of more than 16384 pixels a side");
}

TEST_F(ImageSetTest, WantsALabelForEachImage) {
  EXPECT_EQ(error_of(idx({3, 2, 2}, 12), idx({2}, 2)),
            images_ + " holds 3 images, " + labels_ + " holds 2 labels; there must be one for each");
}

TEST_F(ImageSetTest, NamesTheFileThatIsWrong) {
  EXPECT_EQ(error_of("", idx({2}, 2)), images_ + " is not an IDX file: it has only 0 bytes");
  EXPECT_EQ(error_of(idx({3, 2, 2}, 12), ""), labels_ + " is not an IDX file: it has only 0 bytes");
}

TEST(FashionMnist, IsReadAsPackaged) {
  const std::string folder = kFashion;
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  const auto train = ImageSet::open(folder + "train-images-idx3-ubyte.gz", folder + "train-labels-idx1-ubyte.gz");
  ASSERT_TRUE(train) << train.error().message;
  EXPECT_EQ(train->size(), 60000u);
  const auto test = ImageSet::open(folder + "t10k-images-idx3-ubyte.gz", folder + "t10k-labels-idx1-ubyte.gz");
  ASSERT_TRUE(test) << test.error().message;
  EXPECT_EQ(test->size(), 10000u);
  for (const ImageSet* set : {&*train, &*test}) {
    EXPECT_EQ(set->shape(), (ImageShape{1, 28, 28}));
    EXPECT_EQ(set->classes(), 10);
    std::array<size_t, 10> counts{};
    for (size_t i = 0; i < set->size(); ++i) ++counts.at(set->label(i));
    EXPECT_THAT(counts, Each(set->size() / 10));
  }
}

}  // namespace
}  // namespace remuda::data
