#include "cli/train/train_rank.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <sys/stat.h>
#include <vector>

#include "base/env.h"
#include "base/testing/scratch_folder.h"

namespace remuda::cli {
namespace {

using testing::HasSubstr;

class LaunchedBy : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& name : set_) ::unsetenv(name.c_str());
  }
  void set(const env::Variable& variable, const std::string& value) {
    ::setenv(variable.name, value.c_str(), 1);
    set_.emplace_back(variable.name);
  }
  void be_a_step() {
    set(env::slurm_job, "4711");
    set(env::slurm_step, "2");
    set(env::slurm_rank, "3");
    set(env::slurm_size, "4");
    set(env::slurm_local_rank, "1");
    set(env::slurm_hosts, "node[03-07,9],login");
  }

 private:
  std::vector<std::string> set_;
};

TEST(WhyNotElastic, IsALauncherThatEndsMoreRanksThanMayBeLost) {
  const LaunchedRank alone{.launcher = "torchrun", .size = 4}, two{.launcher = "torchrun", .size = 4, .local_size = 2};
  EXPECT_EQ(why_not_elastic(two, 0), "") << "not elastic";
  EXPECT_EQ(why_not_elastic(alone, 1), "");
  EXPECT_EQ(why_not_elastic(two, 2), "") << "a whole host may be lost";
  EXPECT_THAT(why_not_elastic(two, 1), HasSubstr("elastic.ranks_lost = 1 keeps no run alive here"));
  EXPECT_THAT(why_not_elastic(two, 1), HasSubstr(" ends 2 ranks of a host when one of them ends"));
  const LaunchedRank all{.launcher = "torchrun", .size = 2, .local_size = 2};
  EXPECT_THAT(why_not_elastic(all, 2), HasSubstr("ends 2 ranks of a host")) << "nobody is left";
  EXPECT_THAT(why_not_elastic({.launcher = "mpirun", .size = 3}, 3), HasSubstr("ends 3 ranks when one"));
  EXPECT_EQ(why_not_elastic({.launcher = "srun", .size = 3}, 1), "") << "that depends on its --kill-on-bad-exit";
}

TEST_F(LaunchedBy, NobodyIsNoRank) { EXPECT_EQ(launched_rank().value(), std::nullopt); }

TEST_F(LaunchedBy, TorchrunHasItsVariables) {
  set(env::rank, "3");
  set(env::world_size, "8");
  set(env::local_rank, "1");
  set(env::master_addr, "10.0.0.7");
  set(env::master_port, "29500");
  set(env::run_id, "monday");
  const LaunchedRank rank = launched_rank().value().value();
  EXPECT_EQ(rank.launcher, "torchrun");
  EXPECT_EQ(rank.rank, 3);
  EXPECT_EQ(rank.size, 8);
  EXPECT_EQ(rank.local_rank, 1);
  EXPECT_EQ(rank.master_address, "10.0.0.7");
  EXPECT_EQ(rank.master_port, 29500);
  EXPECT_EQ(rank.run_id, "monday");
  EXPECT_EQ(rank.local_size, 1) << "not said";
  set(env::local_world_size, "4");
  EXPECT_EQ(launched_rank().value()->local_size, 4);
  set(env::use_agent_store, "True");
  EXPECT_EQ(launched_rank().value()->master_port, 29501) << "torchrun listens on its own";
  set(env::world_size, "1");
  set(env::rank, "0");
  EXPECT_EQ(launched_rank().value(), std::nullopt) << "one rank of one: it starts its own";
}

TEST_F(LaunchedBy, SrunFindsRank0ByTheHostsOfTheStep) {
  be_a_step();
  const LaunchedRank rank = launched_rank().value().value();
  EXPECT_EQ(rank.launcher, "srun");
  EXPECT_EQ(rank.rank, 3);
  EXPECT_EQ(rank.local_rank, 1);
  EXPECT_EQ(rank.master_address, "node03");
  EXPECT_GE(rank.master_port, 20000);
  EXPECT_LT(rank.master_port, 32000);
  set(env::slurm_step, "3");
  EXPECT_NE(launched_rank().value()->master_port, rank.master_port) << "two steps of one job may run at once";
  set(env::slurm_step, "batch");
  EXPECT_EQ(launched_rank().value(), std::nullopt) << "a batch script is no rank";
}

TEST_F(LaunchedBy, MpirunMustBeToldWhereRank0Is) {
  set(env::ompi_rank, "1");
  set(env::ompi_size, "2");
  set(env::ompi_local_rank, "1");
  EXPECT_EQ(launched_rank().error().message,
            "rank 1 of 2 does not know where rank 0 is: mpirun starts it without MASTER_ADDR and MASTER_PORT");
  set(env::master_addr, "127.0.0.1");
  set(env::master_port, "1234");
  EXPECT_EQ(launched_rank().value()->master_port, 1234);
}

TEST_F(LaunchedBy, AnyoneMustSayNumbers) {
  be_a_step();
  set(env::slurm_rank, "4");
  EXPECT_THAT(launched_rank().error().message, HasSubstr("SLURM_PROCID is '4'; it must be a number from 0 to 3"));
}

TEST(FirstHost, IsThatOfRank0) {
  EXPECT_EQ(first_host("login"), "login");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("node[03-07,9],login"), "node03");
  EXPECT_EQ(first_host("node[9,11]"), "node9");
  EXPECT_EQ(first_host("node[7]"), "node7");
  EXPECT_EQ(first_host("rack[1-2]-a,x"), "rack1-a");
  for (const char* wrong : {"", "node[", "node[1", "node[1-2", ","}) EXPECT_EQ(first_host(wrong), "") << wrong;
}

TEST(FirstHost, ReadsAnyText) {
  std::mt19937 random(3);
  const std::string alphabet = "a1[],-";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t length = random() % 12; text.size() < length;) text += alphabet[random() % alphabet.size()];
    EXPECT_LE(first_host(text).size(), text.size()) << text;
  }
}

TEST(AddressTowards, IsThisHosts) {
  EXPECT_EQ(address_towards("127.0.0.1").value(), "127.0.0.1");
  EXPECT_EQ(address_towards("localhost").value(), "127.0.0.1");
  EXPECT_THAT(address_towards("no-such-host.invalid").error().message, HasSubstr("cannot find the host no-such-host"));
}

TEST(UsersSecret, IsTheSameForAllAndNobodyElses) {
  const ScratchFolder state;
  ::setenv("XDG_STATE_HOME", state.path().c_str(), 1);
  const std::string first = users_secret().value();
  EXPECT_GE(first.size(), 32u);
  EXPECT_EQ(users_secret().value(), first);
  struct stat info = {};
  ASSERT_EQ(::stat(state.path("remuda/ranks.secret").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  state.write("remuda/ranks.secret", "short");
  EXPECT_THAT(users_secret().error().message, HasSubstr("holds no secret; delete it"));
  ::setenv(env::secret.name, "given", 1);
  EXPECT_EQ(users_secret().value(), "given");
  ::unsetenv(env::secret.name);
  ::unsetenv("XDG_STATE_HOME");
}

}  // namespace
}  // namespace remuda::cli
