#include "wire/place.h"

#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"

namespace remuda::wire {
namespace {

TEST(AgentSocket, IsThatOfTheMachineWhereTheMarkStandsBesideIt) {
  const ScratchFolder folder;
  const std::string socket = folder.path("agent.sock");
  EXPECT_EQ(agent_socket(true, std::nullopt, socket), std::nullopt);
  folder.write(kInstalled, "");
  EXPECT_EQ(agent_socket(true, std::nullopt, socket), socket) << "also where no agent listens";
  EXPECT_EQ(agent_socket(false, std::nullopt, socket), std::nullopt) << "a recorded machine has none";
}

TEST(AgentSocket, IsTheOneThatIsNamedForAnyMachine) {
  for (const bool live : {true, false}) {
    EXPECT_EQ(agent_socket(live, "/home/ada/socket", "/nowhere/agent.sock"), "/home/ada/socket");
    EXPECT_EQ(agent_socket(live, "", "/nowhere/agent.sock"), std::nullopt);
  }
}

}  // namespace
}  // namespace remuda::wire
