#include "profile/recorder.h"

#include <chrono>
#include <gmock/gmock.h>
#include <thread>

namespace remuda::profile {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct HandClock final : Clock {
  double now_s() override { return now; }
  void sleep_s(double seconds) override { now += seconds; }
  double now = 100;
};

/// What a framework's callbacks do.
class Operation {
 public:
  explicit Operation(std::string_view name) : depth_(track_here()->begin(name, Kind::operation)) {}
  ~Operation() { track_here()->end(depth_); }

 private:
  size_t depth_;
};

std::vector<std::string> names_of(const std::vector<SpanRecord>& spans) {
  std::vector<std::string> names;
  for (const SpanRecord& span : spans) names.emplace_back(span.name);
  return names;
}

TEST(Recorder, KeepsSpansWithTheirTimesAndNumbers) {
  HandClock clock;
  Recorder recorder(clock);
  const Join join(&recorder, "main");
  recorder.set_recording(true);
  {
    const Span outer("wait");
    clock.now += 1;
    const Span inner("reduce", {{{"bucket", 3}, {"bytes", 4096}}});
    clock.now += 0.5;
  }
  const auto tracks = recorder.tracks();
  ASSERT_EQ(tracks.size(), 1u);
  EXPECT_EQ(tracks[0].name, "main");
  ASSERT_THAT(names_of(tracks[0].spans), ElementsAre("reduce", "wait"));
  const SpanRecord& inner = tracks[0].spans[0];
  EXPECT_EQ(inner.start_s, 101);
  EXPECT_EQ(inner.end_s, 101.5);
  EXPECT_EQ(inner.details[1].value, 4096);
  EXPECT_EQ(tracks[0].spans[1].start_s, 100);
}

std::vector<std::string> open_ranges, all_ranges;

TEST(Recorder, ReportsSpansToAnotherToolWhileTheyAreOpen) {
  open_ranges.clear();
  all_ranges.clear();
  Recorder recorder;
  recorder.report_to({.push =
                          [](const char* name) {
                            open_ranges.emplace_back(name);
                            all_ranges.emplace_back(name);
                          },
                      .pop = [] { open_ranges.pop_back(); }});
  const Join join(&recorder, "main");
  {
    const Span before("before it is recorded");
  }
  recorder.set_recording(true);
  {
    const Span outer("wait");
    {
      const Operation operation(std::string("aten::mm and more").substr(0, 8));
    }
    const Span inner("reduce");
    EXPECT_THAT(open_ranges, ElementsAre("wait", "reduce"));
    recorder.set_recording(false);
  }
  EXPECT_THAT(open_ranges, IsEmpty()) << "also of spans that recording did not outlast";
  EXPECT_THAT(all_ranges, ElementsAre("wait", "aten::mm", "reduce"));
}

TEST(Recorder, HasTimesOfTheDeviceBesideThoseOfTheThread) {
  HandClock clock;
  Recorder recorder(clock);
  const Join join(&recorder, "main");
  recorder.set_recording(true);
  for (const char* name : {"long to give", "long on the device"}) {
    const Operation operation(name);
    clock.now += name == std::string("long to give") ? 5 : 1;
  }
  EXPECT_EQ(recorder.totals().front().name, "long to give");
  recorder.add_device_time("long on the device", 8, 7);
  recorder.add_device_time("long on the device", 2, 1);
  recorder.add_device_time("long to give", 3, 3);
  const auto totals = recorder.totals();
  ASSERT_EQ(totals.front().name, "long on the device");
  EXPECT_EQ(totals.front().device_s, 10);
  EXPECT_EQ(totals.front().device_self_s, 8);
  EXPECT_EQ(totals.front().self_s, 1);
}

TEST(Recorder, KeepsTheValuesOfACounterThatDiffer) {
  HandClock clock;
  Recorder recorder(clock, 5);
  recorder.set_counter("memory", 1);
  EXPECT_THAT(recorder.counters(), IsEmpty()) << "nothing is recorded yet";
  recorder.set_recording(true);
  for (const double value : {1000.0, 100'000.0, 100'090.0, 100'200.0, 100.0, 190.0, 5000.0, 6000.0}) {
    recorder.set_counter("memory", value);
    clock.now += 1;
  }
  recorder.set_counter("other", -1);
  const auto counters = recorder.counters();
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[0].name, "memory");
  std::vector<double> values;
  for (const auto& one : counters[0].values) values.push_back(one.value);
  EXPECT_THAT(values, ElementsAre(1000, 100'000, 100'200, 100, 5000)) << "and not more than five";
  EXPECT_EQ(recorder.left_out_values(), 1U);
  EXPECT_EQ(counters[0].values[2].time_s, 103);
  EXPECT_EQ(counters[1].values.at(0).value, -1);
}

TEST(Recorder, RecordsNothingUnlessToldTo) {
  Recorder recorder;
  {
    const Join join(&recorder, "main");
    const Span off("off");
  }
  recorder.set_recording(true);
  const Span nobody("of a thread that has not joined");
  const Join alone(nullptr, "joins nobody");
  const Span nobody_either("nor this");
  EXPECT_EQ(recorder_here(), nullptr);
  EXPECT_THAT(recorder.tracks(), IsEmpty());
}

TEST(Recorder, EndsASpanThatRecordingDidNotOutlast) {
  Recorder recorder;
  const Join join(&recorder, "main");
  recorder.set_recording(true);
  {
    const Span span("long");
    recorder.set_recording(false);
    const Span late("late");
  }
  ASSERT_EQ(recorder.tracks().size(), 1u);
  EXPECT_THAT(names_of(recorder.tracks()[0].spans), ElementsAre("long"));
}

TEST(Recorder, ATimedSpanIsAsLongAsItsRecordWhateverComesAfter) {
  HandClock clock;
  Recorder recorder(clock);
  const Join join(&recorder, "main");
  recorder.set_recording(true);
  {
    TimedSpan span("wait");
    clock.now += 0.25;
    EXPECT_EQ(span.end(), 0.25);
    clock.now += 1;
    EXPECT_EQ(span.end(), 0.25);
  }
  {
    const TimedSpan never_asked("update");
  }
  const auto tracks = recorder.tracks();
  ASSERT_THAT(names_of(tracks.at(0).spans), ElementsAre("wait", "update"));
  EXPECT_EQ(tracks[0].spans[0].end_s, 100.25);
}

TEST(Recorder, ATimedSpanMeasuresWhereNothingIsRecorded) {
  TimedSpan span("wait");
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const double seconds = span.end();
  EXPECT_GE(seconds, 0.002);
  EXPECT_EQ(span.end(), seconds);
}

TEST(Recorder, GivesEachThreadATrack) {
  Recorder recorder;
  recorder.set_recording(true);
  const Join join(&recorder, "main");
  std::thread([&, joined = recorder_here()] {
    const Join other(joined, "exchange");
    const Span span("reduce");
  }).join();
  const Span mine("mine");
  ASSERT_EQ(recorder.tracks().size(), 1u) << "mine has not ended";
  EXPECT_EQ(recorder.tracks()[0].name, "exchange");
  EXPECT_EQ(track_here()->recorder().id(), recorder.id());
}

// linear 10 s, of which addmm 6 s, of which copy 1 s; a copy of 2 s alone.
TEST(Recorder, AddsUpOperationsWithAndWithoutThoseTheyCall) {
  HandClock clock;
  Recorder recorder(clock);
  const Join join(&recorder, "main");
  recorder.set_recording(true);
  {
    const Operation linear("linear");
    clock.now += 4;
    const Span hook("work between them");
    const Operation addmm("addmm");
    clock.now += 5;
    const Operation copy("copy");
    clock.now += 1;
  }
  {
    const Operation copy("copy");
    clock.now += 2;
  }
  const auto totals = recorder.totals();
  ASSERT_EQ(totals.size(), 3u);
  EXPECT_EQ(totals[0].name, "addmm");
  EXPECT_EQ(totals[0].total_s, 6);
  EXPECT_EQ(totals[0].self_s, 5);
  EXPECT_EQ(totals[1].name, "linear");
  EXPECT_EQ(totals[1].total_s, 10);
  EXPECT_EQ(totals[1].self_s, 4);
  EXPECT_EQ(totals[2].name, "copy");
  EXPECT_EQ(totals[2].calls, 2);
  EXPECT_EQ(totals[2].total_s, 3);
  EXPECT_EQ(totals[2].self_s, 3);
}

TEST(Recorder, KeepsOnlySoManyOperationsAndCountsAll) {
  Recorder recorder(steady_clock(), 2);
  const Join join(&recorder, "main");
  recorder.set_recording(true);
  for (int i = 0; i < 5; ++i) const Operation one("one");
  {
    const Span work("work");
  }
  EXPECT_THAT(names_of(recorder.tracks()[0].spans), ElementsAre("one", "one", "work"));
  EXPECT_EQ(recorder.left_out(), 3u);
  EXPECT_EQ(recorder.totals()[0].calls, 5);
}

}  // namespace
}  // namespace remuda::profile
