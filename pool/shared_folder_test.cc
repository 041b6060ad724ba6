// A pool that a group shares, and a member who places links and files in it that root must not follow.
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool/lifeline.h"
#include "pool/logs.h"
#include "pool/pool.h"
#include "pool/testing/pool.h"
#include "pool/transitions.h"
#include "process/testing/in_child.h"
#include "sqlite/database.h"

namespace remuda::pool {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr unsigned kMember = 4242;

bool become_member() { return ::setgid(kMember) == 0 && ::setuid(kMember) == 0; }

struct Owned {
  unsigned mode, group;
  bool operator==(const Owned&) const = default;
};

Owned owned(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 ? Owned{info.st_mode, info.st_gid} : Owned{};
}

std::string message_of(const Result<void>& outcome) { return outcome ? "" : outcome.error().message; }

std::string use_pool(const std::string& folder) {
  auto pool = Pool::open(folder);
  if (!pool) return pool.error().message;
  return message_of(pool->change([](PoolState& state) -> Result<void> {
    REMUDA_TRY(submit(state, test_job("ada", 1), test_box(4), 100));
    return {};
  }));
}

class SharedFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user, too";
    fs::create_directory(pool_);
    ASSERT_EQ(::chown(pool_.c_str(), 0, kMember), 0);
    fs::permissions(folder_.path(), fs::perms(0755));
    ASSERT_EQ(::chmod(pool_.c_str(), 02770), 0);
    folder_.write("secret", "root's alone");
    ASSERT_EQ(::chmod(secret_.c_str(), 0600), 0);
    fs::create_directory(folder_.path("private"));
    ASSERT_EQ(::chmod(folder_.path("private").c_str(), 0700), 0);
  }

  /// Runs `work` as a member of the group, in the pool's folder.
  void as_member(const std::function<bool()>& work) const {
    const auto end = process::in_child([&](const process::Say&) -> std::string {
      if (!become_member() || ::chdir(pool_.c_str()) != 0) return "cannot become a member";
      return work() ? "" : fmt::format("cannot plant it: {}", errno_text(errno));
    });
    ASSERT_EQ(end.said, "");
  }

  TestFolder folder_;
  const std::string pool_ = folder_.path("pool"), secret_ = folder_.path("secret");
  const Owned before_{S_IFREG | 0600, 0};
};

TEST_F(SharedFolder, IsUsedByAllOfTheGroup) {
  ASSERT_EQ(use_pool(pool_), "");
  as_member([&] { return use_pool(pool_).empty(); });
  EXPECT_EQ(use_pool(pool_), "");
  for (const char* name : {"pool.db", "pool.db-wal", "pool.db-shm"})
    EXPECT_EQ(owned(pool_ + "/" + name), (Owned{S_IFREG | 0660, kMember})) << name;
}

TEST_F(SharedFolder, FilesOfOthersStayAsTheyAre) {
  as_member([&] { return use_pool(pool_).empty() && ::chmod("pool.db-wal", 0600) == 0; });
  EXPECT_EQ(use_pool(pool_), "");
  EXPECT_EQ(owned(pool_ + "/pool.db-wal"), (Owned{S_IFREG | 0600, kMember}));
}

TEST_F(SharedFolder, ALogThatAnotherUserMadeIsNotWritten) {
  {
    ASSERT_TRUE(open_pool_log(pool_, 1));
  }
  as_member([&] {
    const Fd log(::open("logs/9.log", O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
    return static_cast<bool>(log);
  });
  EXPECT_FALSE(open_pool_log(pool_, 9));
  EXPECT_TRUE(open_pool_log(pool_, 2));
}

/// SQLite itself refuses links, but only where it opens the files beside the database: not in rollback mode.
TEST_F(SharedFolder, LinksBesideTheDatabaseAreNotFollowed) {
  as_member([&] {
    if (!use_pool(pool_).empty()) return false;
    {
      auto database = sqlite::Database::open(pool_ + "/pool.db");
      if (!database || !(*database)->execute("PRAGMA journal_mode = DELETE")) return false;
    }
    ::unlink("pool.db-wal");
    ::unlink("pool.db-shm");
    return ::symlink(secret_.c_str(), "pool.db-wal") == 0 && ::symlink(secret_.c_str(), "pool.db-shm") == 0;
  });
  EXPECT_THAT(use_pool(pool_), HasSubstr("somebody else may have put it there"));
  EXPECT_EQ(owned(secret_), before_);
}

/// With the kernel's protection of hard links off.
TEST_F(SharedFolder, SecondNamesOfOtherFilesAreNotShared) {
  as_member([&] { return use_pool(pool_).empty(); });
  fs::remove(pool_ + "/pool.db-shm");
  fs::remove(pool_ + "/pool.db-wal");
  fs::create_hard_link(secret_, pool_ + "/pool.db-wal");
  EXPECT_THAT(use_pool(pool_), HasSubstr("somebody else may have put it there"));
  EXPECT_EQ(owned(secret_), before_);
  EXPECT_EQ(folder_.read("secret"), "root's alone");
}

TEST_F(SharedFolder, ALinkInPlaceOfTheDatabaseIsNotFollowed) {
  const std::string elsewhere = folder_.path("private/planted");
  as_member([&] { return ::symlink(elsewhere.c_str(), "pool.db") == 0; });
  EXPECT_THAT(use_pool(pool_), HasSubstr("somebody else may have put it there"));
  EXPECT_TRUE(fs::is_empty(folder_.path("private")));
}

TEST_F(SharedFolder, APipeInPlaceOfTheJournalHangsNobody) {
  as_member([] { return ::mkfifo("pool.db-journal", 0666) == 0; });
  EXPECT_THAT(use_pool(pool_), HasSubstr("pool.db-journal"));
}

TEST_F(SharedFolder, LinksInPlaceOfItsFoldersAreNotFollowed) {
  const std::string elsewhere = folder_.path("private");
  const std::string unread = elsewhere + "/1.2.3";
  ASSERT_EQ(::mkfifo(unread.c_str(), 0600), 0);
  as_member([&] {
    return ::symlink(elsewhere.c_str(), "bells") == 0 && ::symlink(elsewhere.c_str(), "lives") == 0 &&
           ::symlink(elsewhere.c_str(), "logs") == 0;
  });
  EXPECT_NE(use_pool(pool_), "");
  EXPECT_FALSE(Lifeline::hold(pool_));
  EXPECT_FALSE(open_pool_log(pool_, 7));
  sweep_lifelines(pool_);
  EXPECT_TRUE(fs::exists(unread)) << "what stands elsewhere was swept away";
  EXPECT_EQ(std::distance(fs::directory_iterator(elsewhere), fs::directory_iterator()), 1);
  EXPECT_EQ(owned(elsewhere), (Owned{S_IFDIR | 0700, 0}));
}

TEST_F(SharedFolder, ALinkThatComesBetweenTwoStepsIsNotFollowed) {
  {
    ASSERT_TRUE(Lifeline::hold(pool_));
  }
  const process::ProcessId self = process::own_process_id();
  const std::string draft = fmt::format("lives/{}.{}.{}.new", self.pid_namespace, self.pid, self.start_ticks);
  const pid_t member = ::fork();
  if (member == 0) {
    if (!become_member() || ::chdir(pool_.c_str()) != 0) ::_exit(1);
    for (;;) {
      (void)!::symlink(secret_.c_str(), "lives/planted");
      (void)!::rename("lives/planted", draft.c_str());
    }
  }
  for (int i = 0; i < 5000 && owned(secret_) == before_; ++i) (void)Lifeline::hold(pool_);
  ::kill(member, SIGKILL);
  ::waitpid(member, nullptr, 0);
  EXPECT_EQ(owned(secret_), before_);
}

}  // namespace
}  // namespace remuda::pool
