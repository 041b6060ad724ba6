#include "data/gzip.h"

#include <gmock/gmock.h>

#include "data/testing/files.h"

namespace remuda::data {
namespace {

using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Result<MappedFile> unpack(const std::string& packed, uint64_t expected) {
  return unpack_gzip(bytes_of(packed), "some.gz",
                     [&](std::span<const std::byte>) -> Result<uint64_t> { return expected; });
}

std::string long_text(size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += static_cast<char>((i * i) >> 7);
  return text;
}

TEST(Gzip, IsToldByItsFirstBytes) {
  EXPECT_TRUE(is_gzip(bytes_of(gzip(""))));
  EXPECT_FALSE(is_gzip(bytes_of("\x1f")));
  EXPECT_FALSE(is_gzip(bytes_of("")));
  EXPECT_FALSE(is_gzip(bytes_of("PK")));
}

TEST(Gzip, UnpacksAnySize) {
  for (const size_t size : {0, 1, 100, 1 << 20, (1 << 20) + 1, 3 << 20}) {
    const std::string text = long_text(size);
    const auto file = unpack(gzip(text), size);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(text_of(*file), text);
  }
}

TEST(Gzip, UnpacksStreamsOneAfterTheOther) {
  const auto file = unpack(gzip("one ") + gzip("") + gzip("two"), 7);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(text_of(*file), "one two");
}

TEST(Gzip, ShowsTheHeadOfTheContent) {
  std::string head;
  const auto keep = [&](std::span<const std::byte> bytes) -> Result<uint64_t> {
    head.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return 100;
  };
  ASSERT_TRUE(unpack_gzip(bytes_of(gzip(long_text(100))), "some.gz", keep));
  EXPECT_EQ(head, long_text(kHeadBytes));
  ASSERT_TRUE(unpack_gzip(bytes_of(gzip("abc")), "some.gz", keep));
  EXPECT_EQ(head, "abc");
}

TEST(Gzip, GivesTheErrorOfWhoReadTheHead) {
  const auto refuse = [](std::span<const std::byte>) -> Result<uint64_t> { return usage_error("no good head"); };
  const auto file = unpack_gzip(bytes_of(gzip("abc")), "some.gz", refuse);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message, "no good head");
}

TEST(Gzip, RefusesEveryTruncation) {
  const std::string packed = gzip(long_text(500));
  for (size_t size = 2; size < packed.size(); ++size) {
    const auto file = unpack(packed.substr(0, size), 500);
    ASSERT_FALSE(file) << size;
    EXPECT_EQ(file.error().message, "some.gz is a truncated gzip file");
    EXPECT_EQ(file.error().kind, ErrorKind::usage);
  }
}

TEST(Gzip, RefusesWhatFollowsTheContent) {
  const auto file = unpack(gzip("abc") + "junk", 3);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message, "some.gz is a damaged gzip file");
}

TEST(Gzip, NeverGivesDamagedContent) {
  const std::string text = long_text(300);
  const std::string packed = gzip(text);
  size_t refused = 0;
  for (size_t i = 10; i < packed.size(); ++i) {
    std::string damaged = packed;
    damaged[i] ^= 0x10;
    const auto file = unpack(damaged, 300);
    if (file) {
      EXPECT_EQ(text_of(*file), text) << i;  // a bit that only fills up a byte
    } else {
      ++refused;
    }
  }
  EXPECT_GE(refused, packed.size() - 12);
}

TEST(Gzip, StopsAtTheAnnouncedSize) {
  const auto file = unpack(gzip(std::string(50 << 20, 'x')), 100000);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message, "some.gz unpacks to more than the 100000 bytes its header announces");
}

TEST(Gzip, RefusesASizeThatCannotBe) {
  const auto file = unpack(gzip("abc"), uint64_t{1} << 40);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message,
              HasSubstr("some.gz is truncated: its header announces 1099511627776 bytes, more than"));
}

}  // namespace
}  // namespace remuda::data
