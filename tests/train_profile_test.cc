// `remuda train --profile`: the trace of a real run of two devices, held against the format and against the run's
// report.
#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <map>
#include <set>

#include "tests/train_job_files.h"

namespace remuda::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kProfiled = 10;

/// A run long enough to have them, with steps of some milliseconds.
JobText profiled_job() {
  JobText job;
  job.model = "name = 'mlp'\nhidden = [256, 256]\n";
  job.train = "epochs = 4\nglobal_batch = 48\nlearning_rate = 0.02\nbucket_mib = 0.1\n";
  return job;
}

/// What the format (Trace Event Format, JSON Object Format) demands of a metadata, complete or counter event.
void expect_well_formed(const Json& event) {
  const auto is_number = [&](const char* key) { return event.contains(key) && event[key].is_number(); };
  const std::string phase = event.value("ph", "");
  ASSERT_TRUE(phase == "M" || phase == "X" || phase == "C") << event;
  ASSERT_TRUE(event.contains("name") && event["name"].is_string()) << event;
  ASSERT_TRUE(event.contains("pid") && event["pid"].is_number_integer()) << event;
  if (phase == "C") {
    ASSERT_TRUE(is_number("ts") && event["args"].size() == 1 && event["args"].front().is_number()) << event;
    return;
  }
  ASSERT_TRUE(event.contains("tid") && event["tid"].is_number_integer()) << event;
  if (phase == "M") {
    const std::string key = std::string(event["name"]).ends_with("_name") ? "name" : "sort_index";
    ASSERT_TRUE(event["args"].contains(key)) << event;
    return;
  }
  ASSERT_TRUE(event.contains("cat")) << event;
  ASSERT_TRUE(is_number("ts") && is_number("dur")) << event;
  ASSERT_GE(event["dur"], 0) << event;
}

/// Viewers show the spans of a thread as a tree: each is within another or beside it.
void expect_nested(std::vector<std::pair<int64_t, int64_t>> spans) {
  std::ranges::sort(
      spans, [](const auto& a, const auto& b) { return a.first != b.first ? a.first < b.first : a.second > b.second; });
  std::vector<int64_t> ends;
  for (const auto& [begin, end] : spans) {
    while (!ends.empty() && ends.back() <= begin) ends.pop_back();
    if (!ends.empty()) {
      ASSERT_LE(end, ends.back()) << "from " << begin << " ns";
    }
    ends.push_back(end);
  }
}

int64_t nanoseconds(const Json& microseconds) { return std::llround(1e3 * double(microseconds)); }

class Trace {
 public:
  explicit Trace(const std::string& text) {
    const auto parsed = parse_json(text, "the trace");
    EXPECT_TRUE(parsed) << parsed.error().message;
    if (parsed) events_ = (*parsed)["traceEvents"];
  }
  const Json& events() const { return events_; }
  /// Seconds of a rank in spans of this name on its track of steps.
  double sum_s(int rank, const std::string& name) const {
    double sum_us = 0;
    for (const Json& event : events_)
      if (event["ph"] == "X" && event["pid"] == rank + 1 && event["name"] == name && is_of_steps(event))
        sum_us += double(event["dur"]);
    return sum_us / 1e6;
  }
  /// Seconds in spans of this name that are within spans of another one.
  double sum_within_s(int rank, const std::string& name, const std::string& outer) const {
    double sum_us = 0;
    for (const Json& event : events_) {
      if (event["ph"] != "X" || event["pid"] != rank + 1 || event["name"] != name || !is_of_steps(event)) continue;
      const double begin = event["ts"], end = begin + double(event["dur"]);
      const bool is_within = std::ranges::any_of(events_, [&](const Json& other) {
        return other["ph"] == "X" && other["name"] == outer && other["tid"] == event["tid"] &&
               other["pid"] == event["pid"] && other["ts"] <= begin &&
               double(other["ts"]) + double(other["dur"]) >= end;
      });
      if (is_within) sum_us += end - begin;
    }
    return sum_us / 1e6;
  }
  /// The most that a rank had in tensors.
  double peak_bytes(int rank) const {
    double peak = 0;
    for (const Json& event : events_)
      if (event["ph"] == "C" && event["pid"] == rank + 1 && event["name"] == "bytes in tensors")
        peak = std::max(peak, double(event["args"]["value"]));
    return peak;
  }
  std::set<std::string> names(const char* phase) const {
    std::set<std::string> all;
    for (const Json& event : events_)
      if (event["ph"] == phase) all.insert(event["name"]);
    return all;
  }

 private:
  bool is_of_steps(const Json& span) const {
    for (const Json& event : events_)
      if (event["name"] == "thread_name" && event["tid"] == span["tid"]) return event["args"]["name"] == "steps";
    return false;
  }
  Json events_ = Json::array();
};

TEST(TrainProfile, TraceIsWellFormedAndItsTracksAddUpToTheReport) {
  REMUDA_NEEDS_TWO_CORES();
  const ScratchFolder folder = job_folder(profiled_job());
  const Json report = train_report(folder, {"--profile", std::to_string(kProfiled), "--trace", folder.path("t.json"),
                                            "--set", "data.workers=1", "--set", "balance.policy=even"});
  ASSERT_TRUE(report.contains("profile"));
  EXPECT_EQ(report["profile"]["steps"], kProfiled);
  EXPECT_EQ(report["profile"]["trace"], folder.path("t.json"));
  const Trace trace(folder.read("t.json"));
  std::map<std::pair<int, int>, std::vector<std::pair<int64_t, int64_t>>> spans;
  for (const Json& event : trace.events()) {
    expect_well_formed(event);
    if (event["ph"] != "X") continue;
    const int64_t begin = nanoseconds(event["ts"]);
    spans[{event["pid"], event["tid"]}].emplace_back(begin, begin + nanoseconds(event["dur"]));
  }
  for (const auto& [thread, its_spans] : spans) expect_nested(its_spans);
  for (const char* name : {"step", "data wait", "make samples", "forward", "backward", "copy", "reduce_scatter",
                           "verdict", "wait", "update", "gather", "aten::addmm"})
    EXPECT_TRUE(trace.names("X").contains(name)) << name;

  for (int rank = 0; rank < 2; ++rank) {
    const Json& engine = report["profile"]["devices"][size_t(rank)];
    const auto near = [&](double sum_s, const char* key) {
      EXPECT_NEAR(sum_s, engine[key], 0.02 * double(engine[key]) + 1e-4) << "rank " << rank << ", " << key;
    };
    near(trace.sum_s(rank, "step"), "seconds");
    near(trace.sum_s(rank, "wait"), "wait_s");
    near(trace.sum_s(rank, "data wait"), "data_wait_s");
    near(trace.sum_s(rank, "data wait") + trace.sum_s(rank, "forward and backward") -
             trace.sum_within_s(rank, "wait", "forward and backward") + trace.sum_s(rank, "update"),
         "compute_s");
    EXPECT_GT(engine["compute_s"], 1e-3);
    const Json& memory = report["devices"][size_t(rank)]["memory"]["peak_by_kind"]["measured"];
    const double of_communicator = double(memory["parameters"]) + double(memory["gradients"]);
    const double peak = double(report["devices"][size_t(rank)]["memory"]["peak_bytes"]) - of_communicator;
    EXPECT_NEAR(trace.peak_bytes(rank), peak, 0.02 * peak) << "rank " << rank;
  }
}

TEST(TrainProfile, PrintsTheOperatorsOfEachRankAndWritesBesideTheCaller) {
  REMUDA_NEEDS_TWO_CORES();
  const ScratchFolder folder = job_folder(profiled_job());
  const Finished finished = run({"/bin/sh", "-c", "cd " + folder.path("") + " && exec \"$@\"", "sh", REMUDA_PROGRAM,
                                 "train", "job.toml", "--profile", "2"});
  ASSERT_EQ(finished.exit.status, 0) << finished;
  EXPECT_THAT(finished.out,
              AllOf(HasSubstr("profile of the steps 4 to 5\n"), HasSubstr("\nrank 0, cpu:0: a step took "),
                    HasSubstr("\nrank 1, cpu:1: a step took "), HasSubstr("\naten::addmm ")));
  EXPECT_TRUE(folder.has("job.trace.json"));
}

TEST(TrainProfile, RefusesWhatCannotBeBeforeTheRun) {
  const ScratchFolder folder = job_folder(profiled_job());
  const auto refusal = [&](const std::vector<std::string>& words) {
    const Finished finished = run(train_command(folder, words));
    EXPECT_EQ(finished.exit.status, 2) << finished;
    return finished.err;
  };
  EXPECT_THAT(refusal({"--trace", "t.json"}), HasSubstr("output.trace is only for jobs with output.profile"));
  EXPECT_THAT(refusal({"--profile", "0"}), HasSubstr("--profile"));
  EXPECT_THAT(refusal({"--profile", "2", "--trace", folder.path("none/t.json")}), HasSubstr("none"));
  EXPECT_THAT(refusal({"--profile", "2", "--trace", folder.path("job.toml")}),
              HasSubstr("would replace what the run reads"));
}

}  // namespace
}  // namespace remuda::tests
