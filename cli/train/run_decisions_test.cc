#include "cli/train/run_decisions.h"

#include <gtest/gtest.h>
#include <utility>

namespace remuda::cli {
namespace {

Json balance(int step, const std::vector<int>& shares) {
  return {{"event", "balance"}, {"step", step}, {"shares", shares}, {"reason", "why"}};
}

Json decision(int step, const std::vector<int>& shares) {
  return {{"step", step}, {"shares", shares}, {"reason", "why"}};
}

const Json kLost{{"lost_ranks", Json::array({Json::object()})},
                 {"share_changes", 0},
                 {"balance", {{"policy", "auto"}, {"decisions", Json::array()}}}};

TEST(RunDecisions, AreThoseBeforeALossAndAfter) {
  RunDecisions decisions;
  for (const Json& event : {balance(0, {4, 4, 4}), balance(0, {5, 4, 3}), balance(9, {6, 3, 3})}) decisions.take(event);
  decisions.take_loss();
  decisions.take(balance(0, {7, 5}));
  decisions.take({{"event", "regrouped"}, {"resumed_from", 12}});
  decisions.take(balance(20, {6, 6}));
  Json report = kLost;
  decisions.complete(report);
  EXPECT_EQ(report["balance"]["policy"], "auto");
  EXPECT_EQ(report["balance"]["decisions"], Json({decision(0, {4, 4, 4}), decision(0, {5, 4, 3}),
                                                  decision(9, {6, 3, 3}), decision(12, {7, 5}), decision(20, {6, 6})}));
  EXPECT_EQ(report["share_changes"], 3) << "for want of memory in the first step, and two later";
}

TEST(RunDecisions, ALossBeforeTheNextSplitIsNoSplit) {
  RunDecisions decisions;
  decisions.take(balance(0, {4, 4, 4}));
  decisions.take_loss();
  decisions.take_loss();
  decisions.take(balance(0, {12}));
  decisions.take({{"event", "regrouped"}, {"resumed_from", 3}});
  Json report = kLost;
  decisions.complete(report);
  EXPECT_EQ(report["balance"]["decisions"], Json({decision(0, {4, 4, 4}), decision(3, {12})}));
  EXPECT_EQ(report["share_changes"], 0);
}

TEST(RunDecisions, WhereARankJoinsTheLastOneIsTheFirstSplitOfAll) {
  RunDecisions decisions;
  for (const Json& event : {balance(0, {6, 6}), balance(9, {7, 5}), balance(0, {5, 4, 3})}) decisions.take(event);
  decisions.take_change({{"event", "joined"}, {"step", 12}});
  decisions.take(balance(20, {4, 4, 4}));
  Json report = kLost;
  report["joined_ranks"] = std::exchange(report["lost_ranks"], {});
  report.erase("lost_ranks");
  decisions.complete(report);
  EXPECT_EQ(report["balance"]["decisions"],
            Json({decision(0, {6, 6}), decision(9, {7, 5}), decision(12, {5, 4, 3}), decision(20, {4, 4, 4})}));
  EXPECT_EQ(report["share_changes"], 2);
}

TEST(RunDecisions, CountCheckpointsOfARankThatIsLostToo) {
  RunDecisions decisions;
  for (const char* failed : {"", "", "no room", ""}) {
    if (std::string(failed) == "no room") decisions.take_loss();
    decisions.take({{"event", "checkpoint"}, {"step", 5}, {"failed", failed}});
  }
  Json report = kLost;
  report["checkpoints"] = {{"written", 1}, {"failed", 1}, {"bytes", 9}};
  decisions.complete(report);
  EXPECT_EQ(report["checkpoints"], Json({{"written", 3}, {"failed", 1}, {"bytes", 9}}));
  Json of_new_ranks = kLost;
  decisions.complete(of_new_ranks);
  EXPECT_EQ(of_new_ranks["checkpoints"], Json({{"resumed_from", 0}, {"written", 3}, {"failed", 1}}));
}

TEST(RunDecisions, OfARunWithoutALossAreThoseOfItsReport) {
  RunDecisions decisions;
  decisions.take(balance(0, {4, 4, 4}));
  decisions.take({{"event", "regrouped"}, {"resumed_from", "no number"}});
  Json report{{"share_changes", 5}};
  decisions.complete(report);
  EXPECT_EQ(report, Json({{"share_changes", 5}}));
}

}  // namespace
}  // namespace remuda::cli
