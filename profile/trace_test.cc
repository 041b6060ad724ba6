#include "profile/trace.h"

#include <gmock/gmock.h>

namespace remuda::profile {
namespace {

const std::vector<TrackRecord> kTracks{
    {"steps", {{"add \"1\"", Kind::operation, 10.0000005, 10.0000015, {}}, {"wait", Kind::work, 10, 10.25, {}}}},
    {"exchange", {{"reduce_scatter", Kind::work, 10.1, 10.2, {{{"bucket", 3}, {"bytes", 4096}}}}}}};

Json parsed(const std::string& text) {
  auto json = parse_json(text, "the trace");
  EXPECT_TRUE(json) << json.error().message << "\n" << text;
  return json ? *json : Json();
}

TEST(Trace, HasAProcessForEachRankAndAThreadForEachTrack) {
  const Json trace = parsed(trace_head({{"steps", 2}}) + trace_events({0, "rank 0, cpu:0", 10}, kTracks, {}, false) +
                            trace_events({1, "rank 1, cpu:1", 10}, kTracks, {}, true) + trace_end());
  EXPECT_EQ(trace["displayTimeUnit"], "ms");
  EXPECT_EQ(trace["otherData"]["steps"], 2);
  ASSERT_EQ(trace["traceEvents"].size(), 2u * (2 + 4 + 3));
  const Json& process = trace["traceEvents"][0];
  EXPECT_EQ(process["ph"], "M");
  EXPECT_EQ(process["name"], "process_name");
  EXPECT_EQ(process["args"]["name"], "rank 0, cpu:0");
  const Json& reduce = trace["traceEvents"][8];
  EXPECT_EQ(reduce["ph"], "X");
  EXPECT_EQ(reduce["cat"], "work");
  EXPECT_EQ(reduce["name"], "reduce_scatter");
  EXPECT_EQ(reduce["args"]["bucket"], 3);
  EXPECT_EQ(reduce["args"]["bytes"], 4096);
  EXPECT_EQ(reduce["pid"], process["pid"]);
  EXPECT_NEAR(reduce["ts"], 100'000, 1e-3);
  EXPECT_NEAR(reduce["dur"], 100'000, 1e-3);
  EXPECT_NE(trace["traceEvents"][17]["pid"], reduce["pid"]);
  EXPECT_NE(trace["traceEvents"][17]["tid"], reduce["tid"]) << "viewers take threads of one number for one thread";
}

TEST(Trace, QuotesNamesAndCountsInNanoseconds) {
  const Json trace = parsed("[" + trace_events({0, "rank 0", 10}, kTracks, {}, true) + "]");
  const Json& add = trace[6];
  EXPECT_EQ(add["name"], "add \"1\"");
  EXPECT_EQ(add["cat"], "operator");
  EXPECT_EQ(add["ts"], 0.5);
  EXPECT_EQ(add["dur"], 1.0);
}

TEST(Trace, HasTheValuesOfCountersOverTime) {
  const std::vector<CounterRecord> counters{{"bytes in tensors", {{10.25, 4096}, {10.5, 3e10}}}};
  const Json trace = parsed("[" + trace_events({1, "rank 1", 10}, {}, counters, true) + "]");
  ASSERT_EQ(trace.size(), 2u + 2);
  const Json& value = trace[3];
  EXPECT_EQ(value["ph"], "C");
  EXPECT_EQ(value["name"], "bytes in tensors");
  EXPECT_EQ(value["pid"], trace[0]["pid"]);
  EXPECT_EQ(value["ts"], 500'000);
  EXPECT_EQ(value["args"]["value"], 3e10);
  EXPECT_EQ(trace[2]["args"]["value"], 4096);
}

TEST(Trace, ARankThatRecordedNothingStillHasItsName) {
  EXPECT_EQ(parsed("[" + trace_events({0, "rank 0", 0}, {}, {}, true) + "]").size(), 2u);
}

TEST(Trace, TimesBeforeItsZeroAreNegative) {
  const Json trace = parsed("[" + trace_events({0, "rank 0", 10.5}, kTracks, {}, true) + "]");
  EXPECT_EQ(trace[7]["ts"], -500'000);
}

}  // namespace
}  // namespace remuda::profile
