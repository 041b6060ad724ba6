// What has happened, as snapshots show it.
#include "snapshot/events.h"

#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>

namespace remuda::snapshot {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

const Json kNothing = Json::array();

std::vector<std::string> told(const EventLog& log, double until_s = 1e9) {
  std::vector<std::string> texts;
  for (const Json& one : log.until(until_s))
    texts.push_back(fmt::format("{} {} {}", one["time_s"].get<double>(), one["kind"].get<std::string>(),
                                one["text"].get<std::string>()));
  return texts;
}

Json run(double at_s, int step, int checkpoint_step, double first) {
  return Json::array({{{"job", 4},
                       {"run",
                        {{"at_s", at_s},
                         {"step", step},
                         {"checkpoint_step", checkpoint_step},
                         {"checkpoint_age_s", 5},
                         {"parts", {{{"device", "a"}, {"share", first}}, {{"device", "b"}, {"share", 1 - first}}}}}}}});
}

TEST(Events, AreSeenInWhatRunsSay) {
  EventLog log;
  const auto take = [&](const Json& runs) { log.take({kNothing, runs, 0}); };
  take(run(100, 10, 0, 0.5));
  take(run(110, 20, 20, 0.505));
  take(run(120, 30, 20, 0.4));
  take(run(130, 21, 20, 0.5));
  EXPECT_THAT(told(log), ElementsAre("105 checkpoint checkpoint after step 20",
                                     "120 rebalance each step was split 50 % and 50 %, now 40 % and 60 %",
                                     "130 restart it goes on from step 21"))
      << "half a hundredth is no other split, and one that began again has no split before";
  EXPECT_EQ(log.until(1e9)[0]["devices"], (Json{"a", "b"}));
  EXPECT_EQ(log.until(1e9)[0]["job"], 4);
  EXPECT_THAT(told(log, 119), SizeIs(1)) << "what is still to come in a recording is not told";
}

TEST(Events, AnAlertBeginsOnce) {
  EventLog log;
  const Json alerts = Json::parse(R"([{"rule":"device error","device":"a","since_s":50,"text":"error 79"},
    {"rule":"throttled","device":"a","since_s":10,"raised_s":70}, {"rule":"held and idle","device":"b","since_s":60},
    {"rule":"no time"}, 7])");
  for (int n = 0; n < 3; ++n) log.take({alerts, kNothing, 0});
  EXPECT_THAT(told(log),
              ElementsAre("50 error device error: error 79", "60 alert held and idle", "70 throttled throttled"));
}

TEST(Events, ErrorsOfSamplesAreThoseThatWereNotThereBefore) {
  Inventory inventory;
  inventory.devices.resize(2);
  inventory.devices[0].id = "a", inventory.devices[1].id = "b";
  const std::vector<int64_t> first{13, 13, 79, 79}, second{0, 0, 0, 48};
  for (size_t i = 0; i < first.size(); ++i) {
    Sample sample{.time_s = 10.0 * static_cast<double>(i)};
    sample.devices.resize(2);
    sample.devices[0].xid = first[i], sample.devices[1].xid = second[i];
    inventory.samples.push_back(std::move(sample));
  }
  EventLog log;
  log.take_errors(inventory);
  EXPECT_THAT(told(log), ElementsAre("20 error the driver reports error 79", "30 error the driver reports error 48"));
}

TEST(Events, ARestartIsNotedOnceAndTheOldestAreForgotten) {
  EventLog log;
  for (int n = 0; n < 2; ++n) log.take_restart(7, 40, {"a"});
  EXPECT_THAT(told(log), ElementsAre("40 restart it was queued again"));
  for (int n = 0; n < 1000; ++n) log.take_restart(8, 100 + n, {});
  EXPECT_THAT(told(log), SizeIs(EventLog::kMost));
  EXPECT_EQ(told(log).back(), "1099 restart it was queued again");
  const auto before = told(log);
  for (int n = 0; n < 1000; ++n) log.take_restart(8, 100 + n, {});
  EXPECT_EQ(told(log), before) << "they are told again at each look";
}

TEST(Events, WhatJobsTellPushesNoErrorAway) {
  EventLog log;
  const Json alerts = Json::parse(R"([{"rule":"device error","device":"a","since_s":50,"text":"error 79"}])");
  for (int n = 1; n < 1000; ++n) log.take({alerts, run(100 + n, n, n, 0.5), 0});
  EXPECT_THAT(told(log), SizeIs(EventLog::kMost));
  EXPECT_EQ(told(log).front(), "50 error device error: error 79");
}

TEST(Events, OfManyAlertsNoneBeginsTwice) {
  EventLog log;
  const auto alert = [](const std::string& rule, int since_s) {
    return Json{{"rule", rule}, {"device", "a"}, {"since_s", since_s}};
  };
  for (int n = 1; n < 1000; ++n) log.take({Json::array({alert("a first", 5), alert("throttled", n)}), kNothing, 0});
  const auto texts = told(log);
  EXPECT_LE(
      std::ranges::count_if(texts, [](const std::string& one) { return one.find("a first") != std::string::npos; }), 1);
}

TEST(Events, WhatARecordingTellsStaysAsItIs) {
  EventLog log;
  const Json told = Json::parse(R"([{"time_s":5.0,"kind":"error","devices":["a"],"job":3,"text":"no memory"}])");
  log.take_told(told);
  log.take_told(Json::parse(R"([7, {"time_s":"x"}, {"kind":"error"}])"));
  EXPECT_EQ(to_line(log.until(10)), to_line(told));
}

TEST(Events, NonsenseIsLeftOut) {
  EventLog log;
  for (const char* runs : {"7", "[7]", R"([{"job":"x","run":{}}])", R"([{"job":4,"run":7}])",
                           R"([{"job":4,"run":{"step":"x","parts":[7,{"device":7}],"checkpoint_step":"y"}}])"})
    log.take({kNothing, Json::parse(runs), 0});
  EXPECT_THAT(told(log), SizeIs(0));
}

}  // namespace
}  // namespace remuda::snapshot
