#include "snapshot/replay_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "snapshot/demo.h"
#include "snapshot/hosts.h"

namespace remuda::snapshot {
namespace {

using testing::HasSubstr;

class SetClock : public Clock {
 public:
  double now_s() override { return time_s; }
  void sleep_s(double seconds) override { time_s += seconds; }
  double time_s = 500;
};

/// 100 s, a sample each 10 s; busy is the part of it that has passed.
Recording recording(const std::string& host, double end_s = 1100) {
  Json json{{"version", 1}, {"host", host}, {"time_s", end_s}};
  json["devices"] = {{{"id", "gpu"},
                      {"kind", "gpu"},
                      {"index", 0},
                      {"memory_bytes", 8},
                      {"status", {{"busy", 1.0}, {"memory_used_bytes", 4}}}}};
  for (double time_s = 1000; time_s <= end_s; time_s += 10)
    json["samples"].push_back({{"time_s", time_s}, {"devices", {{{"busy", (time_s - 1000) / 100}}}}});
  json["jobs"]["leases"] = {{{"job", 1}, {"device", "gpu"}, {"since_s", 900}, {"ended_s", 1080}},
                            {{"job", 2}, {"device", "gpu"}, {"since_s", 1085}}};
  json["jobs"]["waiting"] = {{{"id", 2}, {"submitted_s", 1050}, {"ended_s", 1085}}};
  return parse_recording(to_line(json), "test").value();
}

ReplaySource play(Clock& clock, double speed = 1) {
  std::vector<Recording> recordings;
  recordings.push_back(recording("a"));
  return {std::move(recordings), clock, {.speed = speed, .part_before = 0.75}};
}

TEST(SnapshotReplay, BeginsWithinTheRecordingAndPlaysOn) {
  SetClock clock;
  ReplaySource source = play(clock);
  Json snapshot = source.snapshot().value();
  EXPECT_EQ(snapshot["time_s"], 1070);
  EXPECT_EQ(snapshot["host"], "a");
  EXPECT_EQ(snapshot["inventory"]["devices"][0]["status"]["busy"], 0.7);
  EXPECT_EQ(snapshot["inventory"]["devices"][0]["status"]["memory_used_bytes"], 4) << "no sample says otherwise";
  EXPECT_FALSE(snapshot["inventory"].contains("samples"));
  clock.time_s += 5;
  EXPECT_EQ(source.snapshot().value()["time_s"], 1080);
}

TEST(SnapshotReplay, StaysAtTheEnd) {
  SetClock clock;
  ReplaySource source = play(clock, 10);
  clock.time_s += 1e6;
  EXPECT_EQ(source.snapshot().value()["time_s"], 1100);
}

TEST(SnapshotReplay, LeasesAndWaitingComeAndGo) {
  SetClock clock;
  ReplaySource source = play(clock);
  Json snapshot = source.snapshot().value();
  ASSERT_EQ(snapshot["jobs"]["leases"].size(), 1u);
  EXPECT_EQ(snapshot["jobs"]["leases"][0]["job"], 1);
  EXPECT_EQ(snapshot["jobs"]["waiting"].size(), 1u);
  EXPECT_EQ(snapshot["past"].size(), 0u);
  clock.time_s += 15;
  snapshot = source.snapshot().value();
  ASSERT_EQ(snapshot["jobs"]["leases"].size(), 1u);
  EXPECT_EQ(snapshot["jobs"]["leases"][0]["job"], 2);
  EXPECT_EQ(snapshot["jobs"]["waiting"].size(), 0u);
  EXPECT_EQ(snapshot["past"].size(), 1u);
}

/// A recording that knows of no leases: who uses a device is not known, and it is not free.
TEST(SnapshotReplay, ADeviceInUseIsNotFree) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  Json json{{"version", 1}, {"host", "a"}, {"time_s", 1000}};
  const auto gpu = [&](int index, Json status) {
    json["devices"].push_back({{"id", "g" + std::to_string(index)},
                               {"kind", "gpu"},
                               {"index", index},
                               {"memory_bytes", 24 * kGiB},
                               {"status", std::move(status)}});
  };
  gpu(0, {{"busy", 0.97}, {"memory_used_bytes", 21 * kGiB}});
  gpu(1, {{"busy", 0.0}, {"memory_used_bytes", 21 * kGiB}, {"processes", Json::array()}});
  gpu(2, {{"busy", 0.0}, {"memory_used_bytes", kGiB}});
  gpu(3, {{"busy", 0.0}, {"processes", {{{"pid", 7}, {"user", "ana"}}}}});
  gpu(4, Json::object());
  SetClock clock;
  std::vector<Recording> recordings;
  recordings.push_back(parse_recording(to_line(json), "test").value());
  const Seen seen = seen_in(ReplaySource(std::move(recordings), clock, {}).snapshot().value()).value();
  std::vector<State> states;
  for (const View& view : seen.hosts[0].devices) states.push_back(view.state);
  EXPECT_THAT(states, testing::ElementsAre(State::foreign, State::foreign, State::free, State::foreign, State::free));
  EXPECT_THAT(seen.hosts[0].devices[3].holders, testing::ElementsAre("ana (process 7)"));
  json["samples"] = {{{"time_s", 1010}, {"devices", Json::array()}}};
  for (int i = 0; i < 5; ++i) json["samples"][0]["devices"].push_back({{"busy", 0.0}, {"memory_used_bytes", 0}});
  recordings.clear();
  recordings.push_back(parse_recording(to_line(json), "test").value());
  ReplaySource later(std::move(recordings), clock, {});
  clock.time_s += 1e6;
  EXPECT_EQ(seen_in(later.snapshot().value()).value().hosts[0].devices[3].state, State::free)
      << "who used it at the beginning may have gone";
}

TEST(SnapshotReplay, HistoryKnowsNothingOfWhatIsToCome) {
  SetClock clock;
  ReplaySource source = play(clock);
  const History history = source.history({"", "gpu", {"busy"}, 1000, 1100, 10}).value();
  EXPECT_EQ(history.measures[0].second[7], 0.7);
  EXPECT_EQ(history.measures[0].second[8], std::nullopt);
  EXPECT_EQ(source.history({"", "gpu:0", {"busy"}, 1000, 1100, 10}).value().measures, history.measures)
      << "a device has the names that it has elsewhere";
  EXPECT_THAT(source.history({"", "none", {"busy"}, 1000, 1100, 10}).error().message, HasSubstr("there are: gpu:0"));
  EXPECT_FALSE(source.history({"b", "gpu", {"busy"}, 1000, 1100, 10}));
}

TEST(SnapshotReplay, HistoryHasWhatRunsToldOfWaiting) {
  SetClock clock;
  std::vector<Recording> recordings;
  recordings.push_back(recording("a"));
  recordings[0].runs = parse_json(R"([7, {"run": 7}, {"run": {"parts": [7, {"device": 7, "waiting": 0.5}]}},
    {"since_s": 1010, "ended_s": 1030, "run": {"parts": [{"device": "gpu", "waiting": 0.25}, {"device": "b", "waiting": 1}]}},
    {"since_s": 1020, "run": {"parts": [{"device": "gpu", "waiting": 7}, {"device": "gpu"}]}}])",
                                  "runs")
                           .value();
  ReplaySource source(std::move(recordings), clock);
  const Series waiting = source.history({"", "gpu", {"busy", "waiting"}, 1000, 1100, 10}).value().measures[1].second;
  EXPECT_EQ(waiting, (Series{std::nullopt, 0.25, 0.25, 1, 1, 1, 1, 1, std::nullopt, std::nullopt}));
}

TEST(SnapshotReplay, SeveralHostsStandBesideTheFirst) {
  SetClock clock;
  std::vector<Recording> recordings;
  recordings.push_back(recording("dead", 1030));
  recordings.push_back(recording("b"));
  ReplaySource source(std::move(recordings), clock);
  const Json snapshot = source.snapshot().value();
  EXPECT_EQ(snapshot["time_s"], 1070) << "of the newest sample of all";
  EXPECT_EQ(snapshot["seen_s"], 1030);
  EXPECT_EQ(snapshot["others"][0]["seen_s"], 1070);
  ASSERT_EQ(snapshot["others"].size(), 1u);
  EXPECT_EQ(snapshot["others"][0]["host"], "b");
  EXPECT_TRUE(source.history({"b", "gpu", {"busy"}, 1000, 1100, 10}));
}

TEST(SnapshotReplay, ARecordingOfOneMomentIsShownAsItIs) {
  SetClock clock;
  std::vector<Recording> recordings;
  recordings.push_back(
      parse_recording(R"({"version":1,"host":"a","time_s":7,"devices":[{"id":"x","kind":"gpu","index":0}]})", "test")
          .value());
  ReplaySource source(std::move(recordings), clock);
  const Json snapshot = source.snapshot().value();
  EXPECT_EQ(snapshot["time_s"], 7);
  EXPECT_EQ(to_line(snapshot["jobs"]), R"({"leases":[],"waiting":[]})");
}

TEST(SnapshotReplay, SaysWhatBecomesOfThoseThatWaitAsOfALivePool) {
  SetClock clock;
  std::vector<Recording> recordings;
  recordings.push_back(parse_recording(R"({"version":1,"host":"a","time_s":1000,
    "devices":[{"id":"x","kind":"gpu","index":0,"memory_bytes":8589934592},{"id":"y","kind":"gpu","index":1,"memory_bytes":8589934592}],
    "jobs":{"leases":[{"job":1,"device":"x","user":"ana","since_s":400,"until_s":2000}],
            "waiting":[{"id":2,"user":"ben","submitted_s":900,"request":{"count":2}},
                       {"id":3,"user":"cho","submitted_s":950,"request":{"count":1,"devices":["x"]},"starts_s":1500},
                       {"id":4,"user":"cho","submitted_s":950,"request":{"count":"many"}}, 7]}})",
                                       "test")
                           .value());
  ReplaySource source(std::move(recordings), clock);
  const Json jobs = source.snapshot().value()["jobs"];
  EXPECT_EQ(jobs["waiting"][0]["starts_s"], 2000);
  EXPECT_EQ(jobs["waiting"][0]["starts_on"], (Json{"x", "y"}));
  EXPECT_EQ(jobs["waiting"][0]["would_start"][0]["change"], "with -n 1");
  EXPECT_EQ(jobs["waiting"][1]["starts_s"], 1500) << "the recording says so itself";
  EXPECT_EQ(jobs["fairness"]["users"].size(), 3u);
  EXPECT_EQ(jobs["fairness"]["users"][2]["user"], "ana");
  EXPECT_EQ(jobs["fairness"]["users"][2]["part"], 1);
}

TEST(SnapshotReplay, TellsWhatHasHappenedSoFar) {
  SetClock clock;
  std::vector<Recording> recordings;
  recordings.push_back(recording("a"));
  recordings[0].alerts = Json::parse(R"([{"rule":"throttled","device":"gpu","since_s":1020,"ended_s":1040},
    {"rule":"held and idle","device":"gpu","since_s":1090}])");
  recordings[0].runs = Json::parse(R"([{"job":1,"since_s":1060,"run":{"step":9,"checkpoint_step":5}},
    {"job":1,"since_s":1050,"run":{"step":4}}])");
  ReplaySource source(std::move(recordings), clock);
  const Json snapshot = source.snapshot().value();
  ASSERT_EQ(snapshot["events"].size(), 2u) << "an alert that is over, a checkpoint, and nothing that is to come";
  EXPECT_EQ(snapshot["events"][0]["kind"], "throttled");
  EXPECT_EQ(snapshot["events"][1]["time_s"], 1060);
  EXPECT_EQ(snapshot["events_since_s"], 1000);
}

TEST(SnapshotReplay, ScoresSetsOfItsDevices) {
  SetClock clock;
  ReplaySource source = play(clock);
  EXPECT_EQ(source.set_score({"a", {"gpu:0"}}).value()["devices"], Json{"gpu"});
  EXPECT_FALSE(source.set_score({"b", {"gpu:0"}}));
}

TEST(SnapshotReplay, WhatIsNoRecordingIsRefusedByName) {
  const auto parsed = parse_recording("{\"version\":", "some.json");
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message, HasSubstr("some.json"));
  EXPECT_FALSE(read_recording("/dev/zero"));
}

TEST(SnapshotReplay, TheDemoShowsEightGpusAndTheirUsers) {
  SetClock clock;
  std::vector<Recording> recordings;
  recordings.push_back(parse_recording(demo_recording(), "demo").value());
  ReplaySource source(std::move(recordings), clock, {.speed = 10, .part_before = 0.75});
  const Json snapshot = source.snapshot().value();
  EXPECT_EQ(snapshot["inventory"]["devices"].size(), 10u);
  EXPECT_GT(snapshot["jobs"]["leases"].size(), 5u);
  EXPECT_GT(snapshot["past"].size(), 2u);
  EXPECT_EQ(snapshot["jobs"]["waiting"].size(), 2u);
}

}  // namespace
}  // namespace remuda::snapshot
