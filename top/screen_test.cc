#include "top/screen.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/env.h"
#include "base/file.h"
#include "base/testing/machine_file.h"
#include "top/items.h"
#include "top/testing/demo_picture.h"

namespace remuda::top {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string text_of(const Frame& frame) {
  std::string text;
  for (const Cells& row : frame.rows) text += top::text_of(row) + "\n";
  return text;
}

/// Compares with a file of testdata; REMUDA_UPDATE_GOLDEN=1 writes it instead.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(TOP_FRAMES) + "/" + name + ".txt";
  if (env::get(env::update_golden) == "1") {
    ASSERT_TRUE(PendingFile::create(path).value().commit(text));
    return;
  }
  const auto kept = read_text(path, 1 << 20);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(*kept, text) << "REMUDA_UPDATE_GOLDEN=1 rewrites " << path;
}

Picture picture_of_machine(std::string_view name) {
  std::vector<snapshot::Recording> recordings;
  recordings.push_back(snapshot::read_recording(machine_file(name)).value());
  return picture_of(std::move(recordings));
}

TEST(TopScreen, TheDemoInSeveralSizes) {
  const Picture picture = demo_picture();
  expect_golden("demo-80x24", text_of(frame_of(picture, {}, {24, 80}, Charset::utf8)));
  expect_golden("demo-80x24-ascii", text_of(frame_of(picture, {}, {24, 80}, Charset::ascii)));
  expect_golden("demo-120x40", text_of(frame_of(picture, {}, {40, 120}, Charset::utf8)));
  expect_golden("demo-200x50", text_of(frame_of(picture, {}, {50, 200}, Charset::utf8)));
  expect_golden("demo-40x12", text_of(frame_of(picture, {}, {12, 40}, Charset::utf8)));
  expect_golden("demo-20x6", text_of(frame_of(picture, {}, {6, 20}, Charset::utf8)));
}

TEST(TopScreen, RecordedMachines) {
  for (const char* name : {"made-mig-a100", "nv-dgx2-16xv100-PARTIAL", "amd-rccl-8xmi300x-full",
                           "nv-2x3090-nvlink-bridge", "nv-mixed-2x5090-3x4090", "synthetic-gb200-4gpu-grace"})
    expect_golden(name, text_of(frame_of(picture_of_machine(name), {}, {24, 80}, Charset::utf8)));
}

TEST(TopScreen, WhatPipesGet) { expect_golden("demo-once", whole_text(demo_picture(), {}, 80, Charset::utf8)); }

TEST(TopScreen, DetailsAndKeys) {
  const Picture picture = demo_picture();
  const auto of = [&](const char* item) {
    return text_of(frame_of(picture, {.item = item, .mode = Mode::details}, {40, 100}, Charset::utf8));
  };
  expect_golden("details-device", of("corral/gpu:5"));
  expect_golden("details-job", of("job corral 44"));
  expect_golden("details-run", of("job corral 41"));
  expect_golden("details-alert", of("alert corral used without a lease GPU-demo-7000-0000-0000-000000000000"));
  expect_golden("details-waiting", of("waiting corral 70"));
  expect_golden("keys", text_of(frame_of(picture, {.mode = Mode::help}, {24, 80}, Charset::utf8)));
}

TEST(TopScreen, ANarrowDetailHasRoomForItsReasons) {
  const Picture picture = demo_picture();
  expect_golden("details-narrow",
                text_of(frame_of(picture, {.item = "corral/gpu:5", .mode = Mode::details}, {30, 36}, Charset::utf8)));
}

/// Two hosts, of which one is silent, and the other has readings that are missing.
TEST(TopScreen, TwoHostsAndMissingReadings) {
  const auto host = [](const char* name, double end_s) {
    Json denied{{"missing", "denied"}, {"detail", "only administrators may read it"}};
    Json device{{"id", "G"}, {"kind", "gpu"}, {"index", 0}, {"model", "Card"}, {"status", {{"busy", denied}}}};
    Json json{{"version", 1}, {"host", name}, {"time_s", end_s}, {"devices", {device}}};
    for (double time_s = end_s - 100; time_s <= end_s; time_s += 10)
      json["samples"].push_back({{"time_s", time_s}, {"devices", {{{"power_watts", 80}}}}});
    json["jobs"]["leases"] = {{{"job", 3}, {"device", "G"}, {"user", "ana"}, {"since_s", end_s - 90}}};
    return snapshot::parse_recording(to_line(json), name).value();
  };
  std::vector<snapshot::Recording> recordings;
  recordings.push_back(host("near", 5000));
  recordings.push_back(host("dead", 4900));
  expect_golden("two-hosts", text_of(frame_of(picture_of(std::move(recordings)), {}, {24, 80}, Charset::utf8)));
}

TEST(TopScreen, WhatIsChosenIsMarkedAndInSight) {
  const Picture picture = demo_picture();
  for (const Item& item : items_of(*picture.seen, {})) {
    const Choice choice{.item = item.key};
    const Frame frame = frame_of(picture, choice, {14, 80}, Charset::utf8);
    size_t marked = 0;
    for (const Cells& row : frame.rows) marked += row.front().is_chosen ? 1 : 0;
    EXPECT_GE(marked, 1u) << item.key;
  }
}

TEST(TopScreen, TheListStaysWhereItIsWhileWhatIsChosenIsInSight) {
  const Picture picture = demo_picture();
  Choice choice{.item = "waiting corral 70"};
  choice.first_line = frame_of(picture, choice, {20, 80}, Charset::utf8).first_line;
  EXPECT_GT(choice.first_line, 0u);
  choice.item = "job corral 52";
  EXPECT_EQ(frame_of(picture, choice, {20, 80}, Charset::utf8).first_line, choice.first_line);
}

TEST(TopScreen, TheFirstIsShownWithTheHeader) {
  const Picture picture = demo_picture();
  Choice choice{.item = items_of(*picture.seen, {}).front().key, .first_line = 5};
  EXPECT_EQ(frame_of(picture, choice, {16, 80}, Charset::utf8).first_line, 0U);
}

TEST(TopScreen, APartOfADeviceIsSaidToBeOne) {
  Picture picture = demo_picture();
  for (snapshot::View& view : picture.seen->hosts[0].devices)
    for (snapshot::Lease& lease : view.leases) lease.share = 0.25;
  const Choice choice{.item = "corral/gpu:0", .mode = Mode::details};
  EXPECT_THAT(whole_text(picture, choice, 200, Charset::utf8), HasSubstr(", 25 % of it"));
}

TEST(TopScreen, QuestionsAndAnswersStandBelow) {
  const Picture picture = demo_picture();
  const auto foot = [&](const Choice& choice) {
    return top::text_of(frame_of(picture, choice, {24, 80}, Charset::utf8).rows.back());
  };
  EXPECT_THAT(foot({.mode = Mode::confirm, .job = 44, .job_text = "ben's fit (job 44)"}),
              testing::StartsWith("Cancel ben's fit (job 44)? y: yes, any other key: no"));
  EXPECT_THAT(foot({.message = "job 44 is not yours"}), testing::StartsWith("job 44 is not yours"));
  EXPECT_THAT(foot({.filter = "ana", .mode = Mode::filter}), testing::StartsWith("only what has: ana_"));
}

TEST(TopScreen, AJobsCostIsThatOfAllItsDevicesAsFarAsItIsKnown) {
  Picture picture = demo_picture();
  const auto details = [&] {
    return text_of(frame_of(picture, {.item = "job corral 41", .mode = Mode::details}, {40, 100}, Charset::utf8));
  };
  EXPECT_THAT(details(), Not(HasSubstr("cost so far")));
  auto& leases = picture.seen->hosts[0].leases;
  for (snapshot::Lease& lease : leases)
    if (lease.job == 41) lease.use.cost = 1.5, lease.use.currency = "EUR";
  EXPECT_THAT(details(), HasSubstr("cost so far           3.00 EUR"));
  std::ranges::find(leases, 41, &snapshot::Lease::job)->use.cost.reset();
  EXPECT_THAT(details(), HasSubstr("cost so far           at least 1.50 EUR"));
}

TEST(TopScreen, AnAlertThatSomebodyLooksAfterIsQuiet) {
  Picture picture = demo_picture();
  for (snapshot::Alert& alert : picture.seen->hosts[0].alerts) alert.acknowledged_by = "ana";
  const std::string text = whole_text(picture, {}, 200, Charset::utf8);
  EXPECT_THAT(text, HasSubstr("; no alerts."));
  EXPECT_THAT(text, HasSubstr("  gpu:7: used without a lease"));
  EXPECT_THAT(text, HasSubstr("; acknowledged by ana"));
}

TEST(TopScreen, TroubleIsSaidAndWhatWasSeenStays) {
  Picture picture = demo_picture();
  picture.trouble = "the machine does not answer";
  const std::string text = text_of(frame_of(picture, {}, {24, 80}, Charset::utf8));
  EXPECT_THAT(text, HasSubstr("the machine does not answer; what you see is of 12:45:00"));
  EXPECT_THAT(text, HasSubstr("gpu:0"));
  Picture nothing;
  EXPECT_THAT(text_of(frame_of(nothing, {}, {24, 80}, Charset::utf8)), HasSubstr("Reading the machine"));
  nothing.trouble = "the agent does not answer";
  EXPECT_THAT(text_of(frame_of(nothing, {}, {24, 80}, Charset::utf8)), HasSubstr("the agent does not answer"));
}

/// Says what a snapshot of a recording has, with what an agent that is silent leaves of it.
class SilentAgent final : public snapshot::Source {
 public:
  explicit SilentAgent(Json agent) : agent_(std::move(agent)) {}
  Result<Json> snapshot() override {
    Json snapshot = parse_json(snapshot_text(), "a snapshot").value();
    snapshot["agent"] = agent_;
    return snapshot;
  }
  Result<snapshot::History> history(const snapshot::HistoryQuery& query) override {
    return snapshot::unknown_history(query);
  }

 private:
  static std::string snapshot_text() {
    return R"({"version": 1, "time_s": 1000, "seen_s": 1000, "host": "a", "source": "live", "inventory": {"version": 1,
      "host": "a", "devices": [{"id": "G", "kind": "gpu", "index": 0, "status": {"busy": 0.5}}]}})";
  }
  const Json agent_;
};

TEST(TopScreen, AnAgentThatIsSilentIsSaidWithTheAgeOfWhatItHadTold) {
  SilentAgent told(Json{{"error", "no"}, {"known_s", 980}}), never(Json{{"error", "no"}});
  const auto text_of_source = [](snapshot::Source& source) {
    return text_of(frame_of(next_picture(source, Range::hour, {}), {}, {16, 100}, Charset::ascii));
  };
  EXPECT_THAT(text_of_source(told), HasSubstr("the agent of a has not answered for 20 s: leases and queue as of "));
  EXPECT_THAT(text_of_source(told), HasSubstr("1 free"));
  EXPECT_THAT(text_of_source(never), HasSubstr("nothing is known of leases and queue"));
  EXPECT_THAT(text_of_source(never), HasSubstr("1 holder unknown; the queue is not known"));
}

RC_GTEST_PROP(TopScreen, AnyNamesInAnySizeFillTheScreenAndNoMore, (const std::string& name, const std::string& other)) {
  static const Picture kDemo = demo_picture();
  Picture picture = kDemo;
  snapshot::Host& host = picture.seen->hosts[0];
  host.name = name;
  for (snapshot::View& view : host.devices) {
    view.model = view.device.model = other;
    view.holders = {name, other};
    view.drained = other;
  }
  for (snapshot::Lease& lease : host.leases) lease.user = name, lease.name = other, lease.holder = name;
  for (snapshot::Waiting& job : host.waiting) job.user = name, job.why = other;
  for (snapshot::Alert& alert : host.alerts) alert.text = name, alert.command = other;
  picture.trouble = other;
  const Size size{*rc::gen::inRange<size_t>(1, 60), *rc::gen::inRange<size_t>(1, 160)};
  const Charset charset = *rc::gen::element(Charset::ascii, Charset::utf8);
  const auto items = items_of(*picture.seen, {});
  Choice choice{.item = (*rc::gen::elementOf(items)).key, .first_line = *rc::gen::inRange<size_t>(0, 99)};
  choice.mode = *rc::gen::element(Mode::list, Mode::details, Mode::help, Mode::confirm, Mode::filter);
  const Frame frame = frame_of(picture, choice, size, charset);
  RC_ASSERT(frame.rows.size() == size.rows);
  for (const Cells& row : frame.rows) {
    RC_ASSERT(row.size() == size.columns);
    for (const Cell& cell : row)
      for (const char byte : cell.text)
        RC_ASSERT(static_cast<unsigned char>(byte) >= 0x20 && byte != 0x7f &&
                  (charset == Charset::utf8 || static_cast<unsigned char>(byte) < 0x80));
  }
}

}  // namespace
}  // namespace remuda::top
