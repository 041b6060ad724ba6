#include "data/foreign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"

namespace remuda::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Foreign, FilesThatPeopleHaveAreNamed) {
  const ScratchFolder folder;
  const auto kind = [&](const std::string& bytes) { return foreign_kind(folder.write("file", bytes)); };
  EXPECT_EQ(kind("\x89PNG\r\n\x1a\n and so on"), "a PNG image");
  EXPECT_EQ(kind("label,pixel0,pixel1\n3,0,255\n"), "text (CSV, JSON or the like)");
  EXPECT_EQ(kind(std::string("PK\x03\x04\0\0archive/data.pkl", 22)),
            "a ZIP archive (torch.save() and NumPy's .npz are)");
  EXPECT_EQ(kind("\x93NUMPY\x01"), "a NumPy file");
  EXPECT_EQ(kind(std::string(257, '\0') + "ustar"), "a tar archive");
  EXPECT_EQ(kind("<html><body>404</body></html>"), "an HTML page");
  EXPECT_EQ(foreign_kind(folder.path("")), "a folder");
}

TEST(Foreign, DataIsNotForeign) {
  const ScratchFolder folder;
  const auto kind = [&](const std::string& bytes) { return foreign_kind(folder.write("file", bytes)); };
  EXPECT_EQ(kind(std::string("\0\0\x08\x01\0\0\0\x02\x01\x03", 10)), "") << "IDX";
  EXPECT_EQ(kind("\x1f\x8b\x08"), "") << "gzip, of an IDX file perhaps";
  std::string tokens;
  for (int token = 0; token < 1000; ++token) tokens += {static_cast<char>(token), static_cast<char>(token >> 8)};
  EXPECT_EQ(kind(tokens), "");
  EXPECT_EQ(kind(""), "");
  EXPECT_EQ(foreign_kind(folder.path("absent")), "") << "for others to refuse";
}

TEST(Foreign, RefusalNamesTheFormatsAndTheWayThere) {
  const ScratchFolder folder;
  EXPECT_TRUE(refuse_foreign(folder.write("tokens", std::string("\1\0\2\0", 4))));
  const auto refused = refuse_foreign(folder.write("data.csv", "label,pixel0,pixel1\n3,0,255\n"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr(folder.path("data.csv") + " is text"), HasSubstr("IDX"),
                                             HasSubstr("uint16"), HasSubstr("docs/train.md")));
}

}  // namespace
}  // namespace remuda::data
