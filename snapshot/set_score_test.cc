// What devices are worth as a set.
#include "snapshot/set_score.h"

#include <gtest/gtest.h>

#include "base/testing/machine_file.h"
#include "snapshot/replay_source.h"

namespace remuda::snapshot {
namespace {

TEST(SetScore, IsThatOfThePlacement) {
  const Inventory machine = read_recording(machine_file("nv-2x3090-nvlink-bridge")).value().inventory;
  const Json score = set_score(machine, {"", {"gpu:0", "gpu:1"}}).value();
  EXPECT_EQ(score["devices"].size(), 2u);
  EXPECT_EQ(score["explanation"]["devices"], (Json{"gpu:0", "gpu:1"}));
  EXPECT_GT(score["explanation"]["ring"]["gbps"], 0);
}

TEST(SetScore, RefusesWhatIsNoSet) {
  const Inventory machine = read_recording(machine_file("nv-2x3090-nvlink-bridge")).value().inventory;
  EXPECT_EQ(set_score(machine, {"", {}}).error().kind, ErrorKind::usage);
  EXPECT_EQ(set_score(machine, {"", std::vector<std::string>(17, "gpu:0")}).error().message,
            "name 1 to 16 devices, as in devices=gpu:0,gpu:1");
  EXPECT_FALSE(set_score(machine, {"", {"gpu:0", "gpu:0"}}));
  EXPECT_FALSE(set_score(machine, {"", {"gpu:77"}}));
}

}  // namespace
}  // namespace remuda::snapshot
