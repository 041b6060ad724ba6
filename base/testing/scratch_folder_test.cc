#include "base/testing/scratch_folder.h"

#include <gmock/gmock.h>
#include <ios>

namespace remuda {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

TEST(ScratchFolder, HoldsWhatIsPutIntoIt) {
  const ScratchFolder folder;
  EXPECT_EQ(folder.write("b", std::string_view("x\0y", 3)), folder.path("b"));
  EXPECT_EQ(folder.read("b"), std::string("x\0y", 3));
  folder.write("a/deep/file", "");
  folder.link("c", "a/deep");
  EXPECT_TRUE(folder.has("c/file"));
  EXPECT_THAT(folder.names(), ElementsAre("a", "b", "c"));
  folder.remove("a");
  EXPECT_FALSE(folder.has("c/file"));
  EXPECT_EQ(folder.read("c/file"), "");
}

TEST(ScratchFolder, IsItsOwnersAndGoesWithAllItHolds) {
  std::string path;
  {
    ScratchFolder folder;
    folder.write("a/b", "x");
    path = folder.path();
    const ScratchFolder moved = std::move(folder);
    EXPECT_EQ(moved.path(), path);
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(ScratchFolder, ThatCannotBeMadeOrWrittenThrows) {
  EXPECT_THROW(ScratchFolder("/no/such/folder"), fs::filesystem_error);
  const ScratchFolder folder;
  folder.make_folder("here");
  EXPECT_THROW(folder.write("here", "x"), std::ios_base::failure);
}

}  // namespace
}  // namespace remuda
