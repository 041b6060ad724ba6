#include "cli/jobs/log_reader.h"

#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"

namespace remuda::cli {
namespace {

class LogReaderTest : public testing::Test {
 protected:
  LogReaderTest() { write(""); }

  void write(const std::string& text, int flags = O_TRUNC) const {
    const Fd file(::open(path_.c_str(), O_WRONLY | O_CREAT | flags, 0600));
    EXPECT_TRUE(write_all(file.get(), text, path_));
  }
  LogReader open() const {
    auto reader = LogReader::open(path_);
    if (!reader) throw std::runtime_error(reader.error().message);
    return std::move(*reader);
  }
  static std::string all(LogReader& reader) {
    std::string text;
    EXPECT_TRUE(reader.read([&](std::string_view bytes) -> Result<void> {
      text += bytes;
      return {};
    }));
    return text;
  }
  std::string last(int lines) const {
    LogReader reader = open();
    EXPECT_TRUE(reader.go_to_last(lines));
    return all(reader);
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_.path("log");
};

TEST_F(LogReaderTest, ForRootReadsNoMoreThanTheUserWhoNamedItMay) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr int kUser = 61004;
  write("of root");
  const std::string link = folder_.path("link");
  std::filesystem::create_symlink(path_, link);
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  const auto refused = LogReader::open_as(kUser, link);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("Permission denied"));
  EXPECT_EQ(::geteuid(), 0U);
  ASSERT_EQ(::chown(path_.c_str(), kUser, kUser), 0);
  auto own = LogReader::open_as(kUser, link);
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(all(*own), "of root");
}

TEST_F(LogReaderTest, GoesOnWhereItWas) {
  LogReader reader = open();
  EXPECT_EQ(all(reader), "");
  write("one\n");
  EXPECT_EQ(all(reader), "one\n");
  write("two\n", O_APPEND);
  EXPECT_EQ(all(reader), "two\n");
}

TEST_F(LogReaderTest, FindsTheLastLines) {
  write("one\ntwo\nthree\n");
  EXPECT_EQ(last(0), "");
  EXPECT_EQ(last(1), "three\n");
  EXPECT_EQ(last(2), "two\nthree\n");
  EXPECT_EQ(last(9), "one\ntwo\nthree\n");
  write("one\ntwo");
  EXPECT_EQ(last(1), "two");
  write("\n\n");
  EXPECT_EQ(last(1), "\n");
}

TEST_F(LogReaderTest, FindsLinesThatAreLongerThanABlock) {
  const std::string line(200'000, 'x');
  write("one\n" + line + "\n" + line + "\n");
  EXPECT_EQ(last(1), line + "\n");
  EXPECT_EQ(last(2), line + "\n" + line + "\n");
}

TEST_F(LogReaderTest, BeginsAnewWhereTheFileWasCutShort) {
  write("one\ntwo\n");
  LogReader reader = open();
  all(reader);
  write("3\n");
  EXPECT_EQ(all(reader), "3\n");
}

TEST_F(LogReaderTest, GoesOnWithAFileThatWasRemoved) {
  write("one\n");
  LogReader reader = open();
  std::filesystem::remove(path_);
  EXPECT_EQ(all(reader), "one\n");
}

TEST_F(LogReaderTest, RefusesWhatIsNoFile) {
  for (const std::string path : {"/dev/null", "/", "/no/such"}) {
    const auto reader = LogReader::open(path);
    ASSERT_FALSE(reader) << path;
    EXPECT_EQ(reader.error().kind, ErrorKind::usage);
    EXPECT_THAT(reader.error().message, testing::HasSubstr("cannot read " + path));
  }
}

}  // namespace
}  // namespace remuda::cli
