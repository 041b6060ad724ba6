#include "checkpoint/checked_file.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"
#include "checkpoint/testing/files.h"

namespace remuda::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uint64_t kBlocks = (8 + 4) * kSummedBytes;  // more than is read at once

class CheckedFileTest : public ::testing::Test {
 protected:
  static std::string content(uint64_t bytes) {
    std::string text(bytes, '\0');
    for (size_t i = 0; i < text.size(); ++i) text[i] = char(i * 7 + i / 251);
    return text;
  }
  StoredFile write(const std::string& name, uint64_t bytes) const {
    folder_.write(name, content(bytes));
    return describe(folder_.path(), name);
  }
  CheckedFile open(const StoredFile& file, int version = Manifest::kVersion) const {
    return CheckedFile::open(folder_.path(), file, version).value();
  }
  static std::string read(const CheckedFile& file, uint64_t at, uint64_t bytes) {
    std::string text(bytes, '\0');
    const auto done = file.read(at, std::as_writable_bytes(std::span(text)));
    return done ? text : done.error().message;
  }

  const ScratchFolder folder_;
};

TEST_F(CheckedFileTest, GivesWhatIsThere) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, kSummedBytes, kBlocks, kBlocks + 4097}) {
    const CheckedFile file = open(write("file", bytes));
    const std::string all = content(bytes);
    EXPECT_EQ(read(file, 0, bytes), all);
    for (const uint64_t at : {uint64_t{5}, kSummedBytes - 1, kBlocks - kSummedBytes - 9})
      if (at + 10 <= bytes) {
        EXPECT_EQ(read(file, at, 10), all.substr(at, 10)) << at;
      }
  }
}

TEST_F(CheckedFileTest, ManyRangesOfSeveralFilesComeInOnePass) {
  const CheckedFile a = open(write("a", kBlocks + 100)), b = open(write("b", 2 * kSummedBytes + 3));
  const std::string all_of_a = content(kBlocks + 100), all_of_b = content(2 * kSummedBytes + 3);
  std::string first(kBlocks, '\0'), second(1000, '\0'), third(all_of_b.size(), '\0');
  const auto to = [](std::string& text) { return std::as_writable_bytes(std::span(text)).data(); };
  ASSERT_TRUE(fetch({{&a, 77, first.size(), to(first)},
                     {&b, 0, third.size(), to(third)},
                     {&a, 80, second.size(), to(second)},  // once more
                     {&b, 0, third.size(), nullptr}}));
  EXPECT_EQ(first, all_of_a.substr(77, first.size()));
  EXPECT_EQ(second, all_of_a.substr(80, second.size()));
  EXPECT_EQ(third, all_of_b);
}

// At the ends of the file, and of what is compared and read at once.
TEST_F(CheckedFileTest, ABitThatIsAnotherOneIsFoundWhereverItIs) {
  const StoredFile stored = write("file", kBlocks + 100);
  for (const long at : {0L, long(kSummedBytes) - 1, long(kSummedBytes), long(kBlocks) - 1, long(kBlocks), -1L}) {
    flip_bit(folder_.path("file"), at);
    const CheckedFile file = open(stored);
    std::string text(stored.bytes, '\0');
    const auto all = fetch({{&file, 0, text.size(), std::as_writable_bytes(std::span(text)).data()}});
    ASSERT_FALSE(all) << at;
    EXPECT_THAT(all.error().message, HasSubstr("file is damaged: its sum is ")) << at;
    EXPECT_FALSE(fetch({{&file, 0, stored.bytes, nullptr}})) << "nobody wants it, but it is compared";
    const size_t place = at < 0 ? size_t(at + long(stored.bytes)) : size_t(at);
    EXPECT_EQ(text[place], '\0') << "what is damaged is given to nobody";
    flip_bit(folder_.path("file"), at);
  }
  EXPECT_TRUE(fetch({}));
}

TEST_F(CheckedFileTest, WhatNobodyWantsIsNotRead) {
  const StoredFile stored = write("file", kBlocks);
  flip_bit(folder_.path("file"), -1);
  const CheckedFile file = open(stored);
  EXPECT_EQ(read(file, 0, kBlocks - kSummedBytes), content(kBlocks - kSummedBytes));
  EXPECT_THAT(read(file, kBlocks - kSummedBytes - 1, 2), HasSubstr("is damaged"));
}

TEST_F(CheckedFileTest, OneOfAnotherLengthIsNotOpened) {
  const StoredFile stored = write("file", 1000);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{999}, uint64_t{1001}, kSummedBytes + 1000}) {
    fs::resize_file(folder_.path("file"), bytes);
    EXPECT_EQ(CheckedFile::open(folder_.path(), stored, Manifest::kVersion).error().message,
              folder_.path("file") + " is damaged: it has " + std::to_string(bytes) + " bytes in place of 1000");
  }
  fs::remove(folder_.path("file"));
  EXPECT_THAT(CheckedFile::open(folder_.path(), stored, Manifest::kVersion).error().message, HasSubstr("cannot read"));
}

TEST_F(CheckedFileTest, OneThatChangesWhileItIsOpenIsDamaged) {
  const CheckedFile file = open(write("file", kBlocks));
  EXPECT_EQ(read(file, 0, 10), content(10));
  flip_bit(folder_.path("file"), 5);
  EXPECT_THAT(read(file, 0, 10), HasSubstr("is damaged: its sum is"));
  fs::resize_file(folder_.path("file"), kBlocks - 100);
  EXPECT_THAT(read(file, kBlocks - 10, 10), HasSubstr("has become shorter while it was read"));
}

TEST_F(CheckedFileTest, OfVersion1OnlyTheLengthIsCompared) {
  StoredFile stored = write("file", kSummedBytes + 10);
  stored.sums = {7};
  EXPECT_EQ(read(open(stored, 1), 0, stored.bytes), content(stored.bytes));
}

TEST_F(CheckedFileTest, IsReadAlsoWhereNothingGoesPastTheCache) {
  char name[] = "/dev/shm/remuda-test-XXXXXX";
  const Fd file(::mkstemp(name));
  if (!file) GTEST_SKIP() << "there is no /dev/shm";
  const std::string all = content(kBlocks + 100);
  ASSERT_TRUE(write_all(file.get(), all, name));
  const auto checked = CheckedFile::open("/dev/shm", describe("/dev/shm", fs::path(name).filename()), 2);
  fs::remove(name);
  ASSERT_TRUE(checked);
  EXPECT_EQ(read(*checked, 3, kBlocks), all.substr(3, kBlocks));
}

}  // namespace
}  // namespace remuda::checkpoint
