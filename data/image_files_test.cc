#include "data/image_files.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "data/testing/pictures.h"

namespace remuda::data {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class ImageFilesTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
    folder_.write(name, bytes);
  }
  ImageFiles open(const std::string& name, ImageFormat format = {}) {
    auto set = ImageFiles::open(folder_.path(name), format);
    EXPECT_TRUE(set) << (set ? "" : set.error().message);
    return std::move(*set);
  }
  std::string refusal(const std::string& name, ImageFormat format = {}) {
    const auto set = ImageFiles::open(folder_.path(name), format);
    if (set) return "none";
    EXPECT_EQ(set.error().kind, ErrorKind::usage);
    return set.error().message;
  }
  static std::vector<uint8_t> values(const Images& set, size_t index) {
    std::vector<uint8_t> values(set.shape().bytes());
    const auto read = set.read(index, values);
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    return values;
  }

  ScratchFolder folder_;
  const std::string red_ = png_file(plain({4, 4}, {255, 0, 0})), green_ = png_file(plain({4, 4}, {0, 255, 0})),
                    blue_ = png_file(plain({4, 4}, {0, 0, 255}));
};

TEST_F(ImageFilesTest, AFolderHasAClassForEachOfItsFolders) {
  write("set/dog/2.png", blue_);
  write("set/dog/deep/1.PNG", green_);
  write("set/cat/9.png", red_);
  write("set/cat/notes.txt", "no image");
  write("set/cat/._9.png", "of the system");
  write("set/README", "no image");
  const ImageFiles set = open("set");
  EXPECT_THAT(set.class_names(), ElementsAre("cat", "dog"));
  ASSERT_EQ(set.size(), 3u);
  EXPECT_EQ(set.classes(), 2);
  EXPECT_EQ(set.shape(), (ImageShape{3, 4, 4}));
  EXPECT_THAT((std::vector{set.label(0), set.label(1), set.label(2)}), ElementsAre(0, 1, 1));
  EXPECT_EQ(values(set, 0)[0], 255) << "red comes first";
  EXPECT_EQ(values(set, 1)[32], 255) << "2.png before deep: in the order of names, so blue is third";
}

TEST_F(ImageFilesTest, AnArchiveIsReadAsTheFolderItWasMadeOf) {
  folder_.write("set.tar",
                tar_file({{"train/cat/9.png", red_}, {"train/dog/1.png", green_}, {"train/dog/2.png", blue_}}));
  const ImageFiles set = open("set.tar");
  EXPECT_THAT(set.class_names(), ElementsAre("cat", "dog")) << "the common folder is passed over";
  ASSERT_EQ(set.size(), 3u);
  EXPECT_THAT((std::vector{set.label(0), set.label(1), set.label(2)}), ElementsAre(0, 1, 1));
  EXPECT_EQ(values(set, 0)[0], 255);
  EXPECT_EQ(values(set, 1)[16], 255);
  EXPECT_EQ(values(set, 2)[32], 255);
}

TEST_F(ImageFilesTest, OneFolderInAnArchiveIsItsOnlyClass) {
  folder_.write("set.tar", tar_file({{"./cat/1.png", red_}}));
  EXPECT_THAT(open("set.tar").class_names(), ElementsAre("cat"));
}

TEST_F(ImageFilesTest, ImagesAreBroughtToOneSize) {
  write("set/a/1.png", png_file(plain({9, 30}, {50, 50, 50})));
  write("set/b/1.jpg", jpeg_file(plain({70, 20}, {50, 50, 50})));
  const ImageFiles set = open("set", {.channels = 1, .size = 6});
  EXPECT_EQ(set.shape(), (ImageShape{1, 6, 6}));
  EXPECT_THAT(values(set, 0), Each(50));
  EXPECT_THAT(values(set, 1), Each(50));
}

TEST_F(ImageFilesTest, WithoutASizeAllMustHaveThatOfTheFirst) {
  write("set/a/1.png", red_);
  write("set/a/2.png", png_file(plain({5, 4}, {1, 1, 1})));
  const ImageFiles set = open("set");
  std::vector<uint8_t> values(set.shape().bytes());
  EXPECT_EQ(
      set.read(1, values).error().message,
      folder_.path("set/a/2.png") + " has 4 x 5 pixels, but the first image has 4 x 4; data.size brings all to one");
}

TEST_F(ImageFilesTest, AnErrorNamesTheImageAndItsArchive) {
  folder_.write("set.tar", tar_file({{"a/1.png", red_}, {"a/2.png", "text"}}));
  const ImageFiles set = open("set.tar");
  std::vector<uint8_t> values(set.shape().bytes());
  EXPECT_EQ(set.read(1, values).error().message,
            "a/2.png in " + folder_.path("set.tar") + " is neither a JPEG nor a PNG file");
}

TEST_F(ImageFilesTest, AFileThatIsGoneIsAnErrorOfItsName) {
  write("set/a/1.png", red_);
  const ImageFiles set = open("set");
  std::filesystem::remove(folder_.path("set/a/1.png"));
  std::vector<uint8_t> values(set.shape().bytes());
  EXPECT_THAT(set.read(0, values).error().message, HasSubstr(folder_.path("set/a/1.png") + ": No such file"));
}

TEST_F(ImageFilesTest, WhatIsNoImageSetIsRefused) {
  std::filesystem::create_directory(folder_.path("empty"));
  EXPECT_EQ(refusal("empty"), folder_.path("empty") +
                                  " holds no images; each class is a folder of JPEG and PNG files, "
                                  "and its name that of the class");
  write("flat/1.png", red_);
  EXPECT_THAT(refusal("flat"), HasSubstr("holds the image 1.png beside its folders; each class is a folder"));
  write("gif/a/1.gif", "GIF89a");
  EXPECT_THAT(refusal("gif"), HasSubstr("holds a/1.gif, which is neither a JPEG nor a PNG file"));
  folder_.write("links.tar", tar_member("a/1.png", "", '2') + std::string(1024, '\0'));
  EXPECT_THAT(refusal("links.tar"), HasSubstr("holds a/1.png as a link; tar --dereference"));
  EXPECT_THAT(refusal("absent"), HasSubstr("absent: No such file or directory"));
  write("bad/a/1.png", "text");
  EXPECT_THAT(refusal("bad"), HasSubstr("bad/a/1.png is neither a JPEG nor a PNG file"));
}

}  // namespace
}  // namespace remuda::data
