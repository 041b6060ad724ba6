#include "base/state_folder.h"

#include <cstdlib>
#include <gmock/gmock.h>

#include "base/env.h"
#include "base/testing/scratch_folder.h"

namespace remuda {
namespace {

namespace fs = std::filesystem;

class StateFolder : public ::testing::Test {
 protected:
  ~StateFolder() override {
    ::setenv("HOME", home_.c_str(), 1);
    ::unsetenv("XDG_STATE_HOME");
  }
  const std::string home_ = env::get(env::home).value_or("/");
};

TEST_F(StateFolder, IsWhereTheUserWantsItOrInTheirHome) {
  ::setenv("HOME", "/home/ada", 1);
  ::setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(state_folder(), "/state/remuda");
  ::setenv("XDG_STATE_HOME", "relative", 1);
  EXPECT_EQ(state_folder(), "/home/ada/.local/state/remuda");
  ::setenv("HOME", "", 1);
  EXPECT_EQ(state_folder(), std::nullopt);
}

TEST_F(StateFolder, IsMadeForItsOwnerAlone) {
  const ScratchFolder scratch;
  ASSERT_TRUE(make_folder(scratch.path("a/b")));
  ASSERT_TRUE(make_folder(scratch.path("a/b"))) << "it is there";
  EXPECT_EQ(fs::status(scratch.path("a")).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(scratch.path("a/b")).permissions(), fs::perms::owner_all);
  const std::string file = scratch.write("file", "");
  EXPECT_EQ(make_folder(file + "/c").error().message, "cannot make the folder " + file + "/c: Not a directory");
}

}  // namespace
}  // namespace remuda
