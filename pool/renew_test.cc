#include "pool/renew.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pool/pool.h"
#include "pool/testing/pool.h"

namespace remuda::pool {
namespace {

TEST(MakePrivate, DoesNothingWhereThereIsNoPoolOrAPrivateOne) {
  const TestFolder folder;
  EXPECT_FALSE(make_private(folder.path("none")).value_or(true));
  ASSERT_TRUE(Pool::open(folder.path("pool")));
  struct stat before{}, after{};
  ASSERT_EQ(::stat(folder.path("pool/pool.db").c_str(), &before), 0);
  EXPECT_FALSE(make_private(folder.path("pool")).value_or(true));
  ASSERT_EQ(::stat(folder.path("pool/pool.db").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST(MakePrivate, RefusesAFolderOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  const TestFolder folder;
  ASSERT_TRUE(Pool::open(folder.path("pool")));
  ASSERT_EQ(::chown(folder.path("pool").c_str(), 4711, 4711), 0);
  const auto refused = make_private(folder.path("pool"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, folder.path("pool") + " belongs to another user");
}

/// Another user could have put a link there, or hold a second name of the file.
TEST(MakePrivate, RefusesALinkInPlaceOfTheFile) {
  const TestFolder folder;
  ASSERT_TRUE(Pool::open(folder.path("pool")));
  ASSERT_EQ(::chmod(folder.path("pool").c_str(), 0770), 0);
  ASSERT_EQ(::rename(folder.path("pool/pool.db").c_str(), folder.path("elsewhere").c_str()), 0);
  ASSERT_EQ(::symlink(folder.path("elsewhere").c_str(), folder.path("pool/pool.db").c_str()), 0);
  EXPECT_FALSE(make_private(folder.path("pool")));
}

TEST(MakePrivate, ACopyThatAKilledProcessLeftIsReplaced) {
  const TestFolder folder;
  ASSERT_TRUE(Pool::open(folder.path("pool")));
  ASSERT_EQ(::chmod(folder.path("pool/pool.db").c_str(), 0660), 0);
  folder.write("pool/pool.db.private", "half a copy");
  EXPECT_TRUE(make_private(folder.path("pool")).value_or(false));
  EXPECT_TRUE(Pool::open(folder.path("pool")));
  EXPECT_FALSE(folder.has("pool/pool.db.private"));
}

}  // namespace
}  // namespace remuda::pool
