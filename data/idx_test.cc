#include "data/idx.h"

#include <gmock/gmock.h>

#include "base/testing/scratch_folder.h"
#include "data/testing/files.h"

namespace remuda::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

Result<IdxHeader> parse(const std::string& bytes) {
  return parse_idx_header(std::as_bytes(std::span(bytes)), "some.idx");
}

std::string error_of(const std::string& bytes) {
  const auto header = parse(bytes);
  return header ? "" : header.error().message;
}

TEST(IdxHeader, HoldsDimensions) {
  const auto header = parse(idx_header({60000, 28, 30}));
  ASSERT_TRUE(header);
  EXPECT_THAT(header->dimensions, ElementsAre(60000, 28, 30));
  EXPECT_EQ(header->values, 60000u * 28 * 30);
  EXPECT_EQ(header->bytes(), 16u);
}

TEST(IdxHeader, RefusesWhatIsNoIdxFile) {
  EXPECT_EQ(error_of(""), "some.idx is not an IDX file: it has only 0 bytes");
  EXPECT_EQ(error_of("abc"), "some.idx is not an IDX file: it has only 3 bytes");
  EXPECT_EQ(error_of("\x89PNG\r\n"), "some.idx is not an IDX file: it begins with 89 50, not 00 00");
}

TEST(IdxHeader, RefusesOtherTypesAndShapes) {
  EXPECT_EQ(error_of({0, 0, 13, 1, 0, 0, 0, 1}),
            "some.idx holds IDX values of type 0x0d; unsigned bytes (0x08) can be read");
  EXPECT_EQ(error_of({0, 0, 8, 0}), "some.idx is an IDX array of 0 dimensions; 1 to 4 can be read");
  EXPECT_EQ(error_of({0, 0, 8, -1}), "some.idx is an IDX array of 255 dimensions; 1 to 4 can be read");
  EXPECT_EQ(error_of(idx_header({3, 0, 5})), "some.idx is an empty IDX array: dimension 2 is 0");
}

TEST(IdxHeader, RefusesATruncatedHeader) {
  const std::string whole = idx_header({10, 28, 28});
  for (size_t size = 4; size < whole.size(); ++size)
    EXPECT_EQ(error_of(whole.substr(0, size)), "some.idx is truncated within its IDX header");
}

TEST(IdxHeader, RefusesSizesThatOverflow) {
  const uint32_t most = 0xFFFFFFFF;
  const std::string damaged = "some.idx announces more values than any file holds; its IDX header is damaged";
  EXPECT_EQ(error_of(idx_header({most, most})), damaged);
  EXPECT_EQ(error_of(idx_header({most, most, most, most})), damaged);
  EXPECT_EQ(error_of(idx_header({1u << 31, 1u << 31, 4})), damaged);
  EXPECT_EQ(error_of(idx_header({most})), "");
}

class IdxFileTest : public testing::Test {
 protected:
  std::string error_of_file(const std::string& bytes) {
    const auto file = open_idx(folder_.write("some.idx", bytes));
    return file ? "" : file.error().message;
  }
  ScratchFolder folder_;
};

TEST_F(IdxFileTest, IsReadPlainOrPacked) {
  const std::string bytes = idx({2, 3}, 6);
  for (const auto& content : {bytes, gzip(bytes)}) {
    const auto file = open_idx(folder_.write("some.idx", content));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_THAT(file->header.dimensions, ElementsAre(2, 3));
    EXPECT_THAT(file->values(), ElementsAre(0, 1, 2, 3, 4, 5));
  }
}

TEST_F(IdxFileTest, HasTheSizeThatItsHeaderSays) {
  EXPECT_THAT(error_of_file(idx({2, 3}, 5)),
              EndsWith("some.idx is truncated: its header announces 18 bytes, it has 17"));
  EXPECT_THAT(error_of_file(idx({2, 3}, 7)),
              EndsWith("some.idx is too long: its header announces 18 bytes, it has 19"));
  EXPECT_THAT(error_of_file(gzip(idx({2, 3}, 5))),
              EndsWith("some.idx is truncated: its header announces 18 bytes, it has 17"));
  EXPECT_THAT(error_of_file(gzip(idx({2, 3}, 7))),
              EndsWith("some.idx unpacks to more than the 18 bytes its header announces"));
}

TEST_F(IdxFileTest, IsNamedInEveryError) {
  EXPECT_THAT(error_of_file(""), testing::HasSubstr(folder_.path("some.idx")));
  EXPECT_THAT(error_of_file(gzip("")), EndsWith("some.idx is not an IDX file: it has only 0 bytes"));
  EXPECT_THAT(error_of_file(gzip("PNG of a horse")),
              EndsWith("some.idx is not an IDX file: it begins with 50 4e, not 00 00"));
  EXPECT_THAT(error_of_file(gzip(idx({2, 3}, 6)).substr(0, 20)), EndsWith("some.idx is a truncated gzip file"));
}

TEST_F(IdxFileTest, IsAFileThatIsThere) {
  const auto missing = open_idx(folder_.path("none"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "cannot read " + folder_.path("none") + ": No such file or directory");
  EXPECT_EQ(missing.error().kind, ErrorKind::usage);
  const auto folder = open_idx(folder_.path("."));
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, EndsWith("it is a directory, not a file"));
}

}  // namespace
}  // namespace remuda::data
