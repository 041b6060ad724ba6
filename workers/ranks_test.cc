#include "workers/ranks.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

namespace remuda::workers {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;

const Rendezvous kRendezvous{.world_size = 3, .port = 29500, .run_id = "job", .secret = "s", .transport = "tcp"};

TEST(Ranks, SetAllThatTorchrunSets) {
  EXPECT_THAT(torchrun_environment({.rank = 2, .world_size = 3, .master_port = 29500, .run_id = "job"}),
              UnorderedElementsAre(Pair("RANK", "2"), Pair("LOCAL_RANK", "2"), Pair("ROLE_RANK", "2"),
                                   Pair("GROUP_RANK", "0"), Pair("WORLD_SIZE", "3"), Pair("LOCAL_WORLD_SIZE", "3"),
                                   Pair("ROLE_WORLD_SIZE", "3"), Pair("GROUP_WORLD_SIZE", "1"),
                                   Pair("ROLE_NAME", "default"), Pair("MASTER_ADDR", "127.0.0.1"),
                                   Pair("MASTER_PORT", "29500"), Pair("TORCHELASTIC_RUN_ID", "job"),
                                   Pair("TORCHELASTIC_RESTART_COUNT", "0"), Pair("TORCHELASTIC_MAX_RESTARTS", "0"),
                                   Pair("TORCHELASTIC_USE_AGENT_STORE", "False"), Pair("USE_LIBUV", "0")));
}

TEST(Ranks, AddSecretTransportAndThreads) {
  const process::Environment environment = rank_environment(kRendezvous, 1, 8);
  std::map<std::string, std::string> values(environment.begin(), environment.end());
  EXPECT_EQ(values.size(), environment.size()) << "a variable is set twice";
  EXPECT_EQ(values["RANK"], "1");
  EXPECT_EQ(values["REMUDA_SECRET"], "s");
  EXPECT_EQ(values["REMUDA_TRANSPORT"], "tcp");
  EXPECT_EQ(values["OMP_NUM_THREADS"], "8");
  EXPECT_EQ(values["OPENBLAS_NUM_THREADS"], "1");
}

TEST(Ranks, LeaveTheUsersChoiceOfKernelsAlone) {
  const auto names_kernels = [] {
    for (const auto& [name, value] : rank_environment(kRendezvous, 0, 1))
      if (name == "OPENBLAS_CORETYPE") return true;
    return false;
  };
  ::setenv("OPENBLAS_CORETYPE", "Zen", 1);
  EXPECT_FALSE(names_kernels());
  ::unsetenv("OPENBLAS_CORETYPE");
}

TEST(TorchrunEnvironment, AsksForTheStoreThatEveryPyTorchHas) {
  const auto says = [](const std::string& value) {
    const process::Environment environment = torchrun_environment({.world_size = 2});
    return std::ranges::find(environment, std::pair<std::string, std::string>{"USE_LIBUV", value}) != environment.end();
  };
  ::unsetenv("USE_LIBUV");
  EXPECT_TRUE(says("0"));
  ::setenv("USE_LIBUV", "1", 1);
  EXPECT_FALSE(says("0")) << "the user has chosen";
  ::unsetenv("USE_LIBUV");
}

}  // namespace
}  // namespace remuda::workers
