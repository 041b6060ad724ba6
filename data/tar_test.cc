#include "data/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/scratch_folder.h"
#include "data/testing/pictures.h"

namespace remuda::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Lists the bytes as an archive; each member as "NAME: its content".
class Tar : public testing::Test {
 protected:
  Result<std::vector<std::string>> list(const std::string& bytes) {
    const Fd fd = open_for_reading(folder_.write("a.tar", bytes)).value();
    REMUDA_ASSIGN(const auto members, list_tar(fd.get(), "a.tar"));
    std::vector<std::string> lines;
    for (const TarMember& member : members)
      lines.push_back(member.name + (member.is_link ? " link" : ": " + bytes.substr(member.offset, member.bytes)));
    return lines;
  }
  std::string refusal(const std::string& bytes) {
    const auto listed = list(bytes);
    if (listed) return "none";
    EXPECT_EQ(listed.error().kind, ErrorKind::usage);
    return listed.error().message;
  }
  const std::string end_ = std::string(1024, '\0');
  ScratchFolder folder_;
};

TEST_F(Tar, FilesAndLinksAreListedButNotFolders) {
  EXPECT_THAT(list(tar_member("a/", "", '5') + tar_member("a/1", "one") + tar_member("a/2", "", '2') + end_).value(),
              ElementsAre("a/1: one", "a/2 link"));
}

TEST_F(Tar, MayEndWithoutBlocksOfZeros) {
  EXPECT_THAT(list(tar_member("a", std::string(512, 'x'))).value(), ElementsAre("a: " + std::string(512, 'x')));
}

TEST_F(Tar, LongNamesStandInNotesBeforeTheirMembers) {
  const std::string longer(150, 'n');
  EXPECT_THAT(list(tar_member("././@LongLink", longer + '\0', 'L') + tar_member(longer, "gnu") +
                   tar_member("pax", "162 path=" + longer + "/q\n" + "10 size=2\n", 'x') + tar_member("cut", "cu.") +
                   tar_member("next", "plain") + end_)
                  .value(),
              ElementsAre(longer + ": gnu", longer + "/q: cu", "next: plain"));
}

TEST_F(Tar, ThatIsDamagedIsRefused) {
  const std::string good = tar_member("a", "content");
  EXPECT_THAT(refusal(""), HasSubstr("a.tar is an empty tar archive"));
  EXPECT_THAT(refusal(std::string(512, 'x')), HasSubstr("a.tar is no tar archive, or a damaged one: its header"));
  EXPECT_THAT(refusal(good.substr(0, 515)), HasSubstr("a member goes beyond the file's end (at byte 0)"));
  std::string renamed = good + good;
  renamed[512 + 512] = 'b';
  EXPECT_THAT(refusal(renamed), HasSubstr("its header has a wrong sum (at byte 1024)"));
  EXPECT_THAT(refusal(tar_member("n", std::string((1 << 20) + 1, 'n'), 'L') + good),
              HasSubstr("the note before a member"));
}

}  // namespace
}  // namespace remuda::data
