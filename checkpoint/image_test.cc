#include "checkpoint/image.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "base/file.h"
#include "base/testing/scratch_folder.h"
#include "checkpoint/testing/files.h"
#include "weights/reader.h"

namespace remuda::checkpoint {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Truly;
using weights::DType;

class ImageTest : public ::testing::Test {
 protected:
  static void fill(const Image& image, const weights::TensorInfo& tensor) {
    const std::span<std::byte> bytes = image.bytes_of(tensor);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 7 + tensor.name.size());
  }

  const ScratchFolder folder_;
  const Stored stored_{3, folder_.path()};
  Haste haste_;
};

/// Of more than one piece, and of no whole number of pages.
TEST_F(ImageTest, IsTheFileThatAReaderFinds) {
  const auto image = Image::create(
      {.tensors = {{"b", DType::u8, {5}}, {"large", DType::f32, {(9 << 20) / 4 + 3}}, {"count", DType::i64, {2}}}});
  ASSERT_TRUE(image);
  for (const weights::TensorInfo& tensor : image->tensors()) fill(*image, tensor);
  const auto file = image->write(stored_, "rank-0.safetensors", haste_);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(*file, describe(stored_.folder, "rank-0.safetensors"));

  const auto reader = weights::Reader::open(folder_.path("rank-0.safetensors"));
  ASSERT_TRUE(reader) << reader.error().message;
  ASSERT_EQ(reader->header().tensors, image->tensors());
  for (const weights::TensorInfo& tensor : image->tensors()) {
    std::vector<std::byte> there(tensor.bytes());
    ASSERT_TRUE(reader->read(tensor, 0, there));
    EXPECT_TRUE(std::ranges::equal(there, image->bytes_of(tensor))) << tensor.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(image->bytes_of(tensor).data()) % weights::size_of(tensor.type), 0U);
  }
}

/// Wherever the values lie, and however many there are.
TEST_F(ImageTest, IsFilledWithWhatItIsGiven) {
  std::vector<weights::TensorInfo> tensors;
  for (const uint64_t size : {1, 15, 16, 17, 63, 64, 65, 127, 4097})
    tensors.push_back({std::to_string(size), DType::u8, {size}});
  const auto image = Image::create({.tensors = tensors});
  ASSERT_TRUE(image);
  std::vector<std::byte> values(5000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::byte(i * 31 + i / 256);
  for (size_t first = 0; first < 17; ++first) {
    for (const weights::TensorInfo& tensor : image->tensors())
      image->fill(tensor, std::span(values).subspan(first + tensor.bytes() % 5, tensor.bytes()));
    for (const weights::TensorInfo& tensor : image->tensors())
      EXPECT_TRUE(std::ranges::equal(image->bytes_of(tensor),
                                     std::span(values).subspan(first + tensor.bytes() % 5, tensor.bytes())))
          << tensor.name << " from " << first;
  }
}

TEST_F(ImageTest, MayHoldNothing) {
  const auto image = Image::create({});
  ASSERT_TRUE(image->write(stored_, "empty", haste_));
  EXPECT_THAT(weights::Reader::open(folder_.path("empty"))->header().tensors, IsEmpty());
}

TEST_F(ImageTest, LeavesThePageCacheToOthers) {
  struct statfs info{};
  if (::statfs(folder_.path().c_str(), &info) != 0 ||
      (info.f_type != EXT4_SUPER_MAGIC && info.f_type != XFS_SUPER_MAGIC))
    GTEST_SKIP() << "of other file systems it is not known what stays in the cache";
  constexpr size_t kBytes = 1 << 20, kPage = 4096;
  const auto image = Image::create({.tensors = {{"w", DType::u8, {kBytes}}}});
  ASSERT_TRUE(image->write(stored_, "file", haste_));
  const auto mapped = MappedFile::map(open_for_reading(folder_.path("file"))->get(), "file");
  std::vector<unsigned char> resident(kBytes / kPage, 0xff);  // of its whole pages
  ASSERT_EQ(::mincore(const_cast<std::byte*>(mapped->bytes().data()), kBytes, resident.data()), 0);
  EXPECT_THAT(resident, Each(Truly([](unsigned char page) { return (page & 1) == 0; })));
}

TEST_F(ImageTest, LeavesNothingWhenItIsGivenUp) {
  const auto image = Image::create({.tensors = {{"w", DType::f32, {1000}}}});
  haste_.given_up = true;
  EXPECT_THAT(image->write(stored_, "file", haste_).error().message, HasSubstr("did not wait"));
  EXPECT_THAT(folder_.names(), IsEmpty());
}

// In an hour, unless somebody waits for it, or nobody does any more.
TEST_F(ImageTest, OneThatIsSpreadOverTimeMayBeHurriedOrGivenUp) {
  const auto image = Image::create({.tensors = {{"w", DType::u8, {12 << 20}}}});
  haste_.spread_s = 3600;
  const auto write = [&] { return image->write(stored_, "file", haste_); };
  auto hurried = std::async(std::launch::async, write);
  EXPECT_EQ(hurried.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  haste_.spread_s = 0;
  const auto file = hurried.get();
  ASSERT_TRUE(file);
  EXPECT_EQ(*file, describe(stored_.folder, "file"));

  haste_.spread_s = 3600;
  auto given_up = std::async(std::launch::async, write);
  haste_.given_up = true;
  EXPECT_THAT(given_up.get().error().message, HasSubstr("did not wait"));
}

TEST_F(ImageTest, FailsWhereThereIsNoMemory) {
  EXPECT_THAT(Image::create({.tensors = {{"w", DType::u8, {uint64_t{1} << 60}}}}).error().message,
              HasSubstr("no memory"));
}

}  // namespace
}  // namespace remuda::checkpoint
