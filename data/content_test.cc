#include "data/content.h"

#include <fcntl.h>
#include <filesystem>
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"

namespace remuda::data {
namespace {

using ::testing::HasSubstr;

TEST(Content, TellsFilesApartByEachByteAndByTheirLength) {
  const ScratchFolder folder;
  folder.write("a", "some data");
  folder.write("same", "some data");
  folder.write("other", "some dath");
  folder.write("longer", std::string("some data\0", 10));
  folder.write("empty", "");
  const auto line = [&](const char* name) { return describe_content(folder.path(name)).value(); };
  EXPECT_THAT(line("a"), HasSubstr("9 bytes, hash "));
  EXPECT_EQ(line("a"), line("same"));
  for (const char* name : {"other", "longer", "empty"}) EXPECT_NE(line("a"), line(name)) << name;
}

TEST(Content, OfALargeFileItReadsPartsAndTheEnds) {
  const ScratchFolder folder;
  constexpr off_t kBytes = (200 << 20) + 123;
  const auto line_with = [&](off_t place) {
    folder.write("large", "");
    EXPECT_EQ(::truncate(folder.path("large").c_str(), kBytes), 0);
    const int fd = ::open(folder.path("large").c_str(), O_WRONLY);
    EXPECT_EQ(::pwrite(fd, place < 0 ? "" : "x", place < 0 ? 0 : 1, std::max<off_t>(place, 0)), place < 0 ? 0 : 1);
    ::close(fd);
    return describe_content(folder.path("large")).value();
  };
  const std::string zeros = line_with(-1);
  EXPECT_NE(line_with(0), zeros);
  EXPECT_NE(line_with(kBytes - 1), zeros);
  EXPECT_NE(line_with((kBytes - (64 << 10)) / 255 * 100), zeros);
}

TEST(Content, AFileThatIsMissingIsNamed) {
  const auto line = describe_content("/nowhere/data");
  ASSERT_FALSE(line);
  EXPECT_THAT(line.error().message, HasSubstr("/nowhere/data"));
}

TEST(Content, OfAFolderIsTheNamesAndTheBeginningsOfItsFiles) {
  const ScratchFolder folder;
  const auto line = [&] { return describe_content(folder.path("set")).value(); };
  std::filesystem::create_directories(folder.path("set/a/deep"));
  folder.write("set/a/1", "one");
  folder.write("set/a/deep/2", "two");
  const std::string first = line();
  EXPECT_THAT(first, testing::StartsWith("2 files, hash "));
  EXPECT_EQ(line(), first);
  folder.write("set/a/deep/2", "twO");
  EXPECT_NE(line(), first) << "another content";
  folder.write("set/a/deep/2", "two");
  EXPECT_EQ(line(), first);
  std::filesystem::rename(folder.path("set/a/1"), folder.path("set/a/0"));
  EXPECT_NE(line(), first) << "another name";
}

}  // namespace
}  // namespace remuda::data
