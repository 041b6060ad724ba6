#include "pool/folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/env.h"
#include "pool/lifeline.h"
#include "pool/pool.h"
#include "pool/testing/pool.h"
#include "pool/transitions.h"
#include "process/testing/in_child.h"

namespace remuda::pool {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class PoolFolder : public ::testing::Test {
 protected:
  PoolFolder() { ::setenv("XDG_STATE_HOME", folder.path("state").c_str(), 1); }
  ~PoolFolder() override { ::unsetenv("XDG_STATE_HOME"); }

  std::string at(const std::string& machine_file) {
    const auto path = pool_folder_at({folder.path("shared"), folder.path("machine-id")}, machine_file);
    return path ? *path : path.error().message;
  }

  static std::string host() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
  }

  TestFolder folder;
};

TEST_F(PoolFolder, IsNamedByTheMachine) {
  folder.write("machine-id", "0123456789abcdef0123456789abcdef\n");
  EXPECT_EQ(at(""), folder.path("state/remuda/pool-0123456789abcdef0123456789abcdef"));
  folder.write("machine-id", "uninitialized\n");
  EXPECT_EQ(at(""), folder.path("state/remuda/pool-") + host());
}

TEST_F(PoolFolder, IsMovedWhereItWasNamedByTheHost) {
  const std::string old_path = at("");
  {
    auto pool = Pool::open(old_path);
    ASSERT_TRUE(pool);
    ASSERT_TRUE(pool->change([](PoolState& state) -> Result<void> {
      REMUDA_TRY(submit(state, test_job("ada", 1), test_box(1), 100));
      return {};
    }));
  }
  folder.write("machine-id", "0123456789abcdef0123456789abcdef\n");
  {
    const auto job = Lifeline::hold(old_path);
    ASSERT_TRUE(job);
    EXPECT_EQ(at(""), old_path) << "a job is in it";
  }
  const std::string path = at("");
  EXPECT_EQ(path, folder.path("state/remuda/pool-0123456789abcdef0123456789abcdef"));
  EXPECT_EQ(at(""), path) << "once";
  for (const std::string& name : {path, old_path}) {
    auto pool = Pool::open(name);
    ASSERT_TRUE(pool) << pool.error().message;
    EXPECT_EQ(pool->read()->jobs.size(), 1U) << name;
  }
}

TEST_F(PoolFolder, IsMovedOnceByManyProcesses) {
  const std::string old_path = at("");
  ASSERT_TRUE(Pool::open(old_path));
  folder.write("machine-id", "0123456789abcdef0123456789abcdef\n");
  fs::create_symlink("left", folder.path("state/remuda/pool-0123456789abcdef0123456789abcdef"));  // by one that died
  std::vector<std::string> paths(8);
  std::vector<std::thread> processes;
  for (std::string& path : paths) processes.emplace_back([&] { path = at(""); });
  for (std::thread& process : processes) process.join();
  for (const std::string& path : paths) EXPECT_EQ(path, paths.front());
  EXPECT_TRUE(fs::exists(paths.front() + "/pool.db"));
  EXPECT_TRUE(fs::is_symlink(old_path));
}

TEST_F(PoolFolder, IsTheUsersOwnOnThisHost) {
  EXPECT_THAT(at("").substr(folder.path("state").size()), MatchesRegex("/remuda/pool-[-.A-Za-z0-9_]+"));
}

TEST_F(PoolFolder, IsTheSharedOneWhereThatIs) {
  fs::create_directory(folder.path("shared"));
  EXPECT_EQ(at(""), folder.path("shared"));
}

TEST_F(PoolFolder, IsTheUsersOwnWhereTheSharedOneIsNotForThem) {
  fs::create_directory(folder.path("shared"));
  fs::permissions(folder.path(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  const auto child = process::in_child([&](const process::Say&) -> std::string {
    return ::setgid(12345) != 0 || ::setuid(12345) != 0 ? "skip: the user cannot be changed" : at("");
  });
  if (child.said.starts_with("skip")) GTEST_SKIP() << child.said;
  EXPECT_THAT(child.said, StartsWith(folder.path("state/remuda/pool-")));
}

TEST_F(PoolFolder, SaysWhatKeepsAUserOutOfTheSharedOne) {
  const std::string shared = folder.path("shared");
  EXPECT_FALSE(shared_pool_obstacle_at(shared)) << "there is none";
  fs::create_directory(shared);
  EXPECT_FALSE(shared_pool_obstacle_at(shared)) << "this user may write it";
  fs::permissions(folder.path(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  const auto ask = [&] {
    return process::in_child([&](const process::Say&) -> std::string {
             if (::setgroups(0, nullptr) != 0 || ::setgid(12345) != 0 || ::setuid(12345) != 0)
               return "skip: the user cannot be changed";
             const auto obstacle = shared_pool_obstacle_at(shared);
             return obstacle ? obstacle->sentence + " | " + obstacle->remedy : "none";
           })
        .said;
  };
  const std::string said = ask();
  if (said.starts_with("skip")) GTEST_SKIP() << said;
  EXPECT_THAT(said, StartsWith("12345 may not write " + shared + ", the pool for all users: "));
  EXPECT_THAT(said, HasSubstr("sudo chgrp remuda " + shared));
  EXPECT_THAT(said, HasSubstr("sudo usermod -aG remuda 12345"));
  ASSERT_EQ(::chown(shared.c_str(), 0, 4), 0);  // adm
  ASSERT_EQ(::chmod(shared.c_str(), 02770), 0);
  EXPECT_THAT(ask(), HasSubstr("| sudo usermod -aG adm 12345, and a new login"));
}

TEST_F(PoolFolder, OfARecordedMachineIsNamedByItsPath) {
  fs::create_directory(folder.path("other"));
  for (const char* name : {"my box.json", "other/my box.json"}) std::ofstream(folder.path(name)) << "{}";
  fs::create_symlink(folder.path("my box.json"), folder.path("link.json"));
  const std::string path = at(folder.path("my box.json"));
  EXPECT_THAT(path.substr(folder.path("state").size()), MatchesRegex("/remuda/pools/my_box-[0-9a-f]+"));
  EXPECT_EQ(at(folder.path("other/../my box.json")), path);
  EXPECT_EQ(at(folder.path("link.json")), path);
  EXPECT_NE(at(folder.path("other/my box.json")), path);
}

TEST_F(PoolFolder, OfNoFileIsAnError) {
  EXPECT_EQ(at(folder.path("no.json")), "cannot read " + folder.path("no.json") + ": No such file or directory");
}

TEST_F(PoolFolder, NeedsAPlace) {
  ::setenv("XDG_STATE_HOME", "relative", 1);
  const std::string home = env::get(env::home).value_or("");
  ::setenv("HOME", "/home/ada", 1);
  EXPECT_THAT(at(""), StartsWith("/home/ada/.local/state/remuda/pool-"));
  ::unsetenv("HOME");
  EXPECT_EQ(at(""), "there is no place for the pool: neither HOME nor XDG_STATE_HOME names a folder");
  ::setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace remuda::pool
