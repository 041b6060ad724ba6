// Runs of which only the steps are known, on simulated devices.
#include "balance/state_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::balance {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr StateBytes kBytes{.whole = 100, .owned = 1000};

/// Devices that update all of the state in these times, beside other work of a step.
struct Devices {
  std::vector<double> update_s, memory_bytes, peak_bytes;
  double rest_s = 0;
  std::vector<double> parts, fixed_s;  ///< of each update, besides

  StateMoves moves() const {
    std::vector<StateOwner> owners;
    for (const double bytes : memory_bytes) owners.push_back({.memory_bytes = bytes});
    return {owners, kBytes, parts};
  }

  StateSeen step() const {
    StateSeen seen{{}, peak_bytes, 0};
    double longest_s = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const double fixed = i < fixed_s.size() && parts[i] > 0 ? fixed_s[i] : 0;
      seen.update_s.push_back(fixed + parts[i] * update_s[i]);
      longest_s = std::max(longest_s, seen.update_s[i]);
    }
    seen.step_s = rest_s + longest_s;
    return seen;
  }

  /// The moves in so many steps; each is in force from the step after the next one, as in a run.
  int run(StateMoves& moves, int steps) {
    int count = 0;
    std::vector<double> next;
    for (int i = 0; i < steps; ++i) {
      const auto found = moves.observe(step());
      if (!next.empty()) parts = std::exchange(next, {});
      if (!found) continue;
      next = *found;
      ++count;
    }
    return count;
  }
};

TEST(StateMoves, GoOnceToWhereUpdatesAreFaster) {
  Devices devices{{0.01, 0.3}, {24e9, 256e9}, {0, 0}, 0.05, {0.1, 0.9}};
  StateMoves moves = devices.moves();
  EXPECT_EQ(devices.run(moves, kStateMovePause - 1), 0) << "steps settle";
  EXPECT_EQ(devices.run(moves, 200), 1) << "then it is the best there is";
  EXPECT_THAT(devices.parts, ElementsAre(DoubleNear(30.0 / 31, 1e-9), DoubleNear(1.0 / 31, 1e-9)));
}

TEST(StateMoves, EndWhereTheyBringNothing) {
  Devices devices{{0.002, 0.002}, {1e9, 1e9}, {0, 0}, 0.001, {0.5, 0.5}, {0.001, 0.005}};
  StateMoves moves = devices.moves();
  EXPECT_LE(devices.run(moves, 5000), 8);
  EXPECT_GT(devices.parts[1], 1e-6);
}

TEST(StateMoves, AreMadeAgainWhereASpeedChanges) {
  Devices devices{{0.1, 0.1}, {1e9, 1e9}, {0, 0}, 0.01, {0.5, 0.5}};
  StateMoves moves = devices.moves();
  EXPECT_EQ(devices.run(moves, 100), 0);
  devices.update_s = {0.1, 0.4};
  EXPECT_GE(devices.run(moves, 100), 1);
  EXPECT_THAT(devices.parts, ElementsAre(DoubleNear(0.8, 0.02), DoubleNear(0.2, 0.02)));
}

TEST(StateMoves, OfLittleGainAreNotMade) {
  Devices devices{{0.01, 0.03}, {1e9, 1e9}, {0, 0}, 0.16, {0.5, 0.5}};
  StateMoves moves = devices.moves();
  EXPECT_EQ(devices.run(moves, 200), 0) << "7.5 ms of a step of 175";
  devices.rest_s = 0.1;
  EXPECT_EQ(devices.run(moves, 200), 1) << "of 115";
}

TEST(StateMoves, GoNoFurtherThanThereIsRoomBesideWhatStepsNeed) {
  // Of 2000 bytes a step has needed 1700: 270 of the 300 that are left are 0.27 of the state.
  Devices devices{{0.01, 0.3}, {2000, 1e9}, {1700, 0}, 0.001, {0.2, 0.8}};
  StateMoves moves = devices.moves();
  EXPECT_EQ(devices.run(moves, 40), 1);
  EXPECT_THAT(devices.parts, ElementsAre(DoubleNear(0.47, 1e-9), DoubleNear(0.53, 1e-9)));
  devices.peak_bytes = {2000, 0};
  EXPECT_EQ(devices.run(moves, 200), 0) << "what came is in use now";
}

TEST(StateMoves, WaitUntilEachThatOwnsAPartHasShownItsUpdate) {
  Devices devices{{0, 0.3}, {1e9, 1e9}, {0, 0}, 0.001, {0.5, 0.5}};
  StateMoves moves = devices.moves();
  EXPECT_EQ(devices.run(moves, 100), 0);
}

TEST(StateMoves, GiveNothingToOneThatHasNeverUpdated) {
  Devices devices{{0.3, 0.1, 0.01}, {1e9, 1e9, 1e9}, {0, 0, 0}, 0.001, {0.5, 0.5, 0}};
  StateMoves moves = devices.moves();
  EXPECT_EQ(devices.run(moves, 100), 1);
  EXPECT_THAT(devices.parts, ElementsAre(DoubleNear(0.25, 1e-9), DoubleNear(0.75, 1e-9), 0));
}

}  // namespace
}  // namespace remuda::balance
