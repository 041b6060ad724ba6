#include "monitor/attention.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include "base/file.h"
#include "base/testing/scratch_folder.h"
#include "monitor/notifier.h"

namespace remuda::monitor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kNow_s = 1'800'000'000;

Alert alert(const std::string& id, const std::string& rule = "throttled", const std::string& device = "GPU-1") {
  return {.id = id, .rule = rule, .device = device, .label = "gpu:0", .since_s = kNow_s};
}

std::vector<std::string> said(Notifier& notifier, const std::vector<Alert>& active, double wall_s = kNow_s) {
  std::vector<std::string> said;
  for (const Alert& one : notifier.take(active, wall_s)) said.push_back((one.ended_s > 0 ? "-" : "+") + one.id);
  return said;
}

TEST(Marked, SaysWhoLooksAfterAnAlertAndWhatIsSilent) {
  Attention attention;
  attention.acknowledged = {{.alert = "a1", .by = "ana", .at_s = 0}};
  attention.silences = {{.rule = "throttled", .device = "gpu:0", .by = "bob", .until_s = kNow_s + 60},
                        {.rule = "device error", .device = "", .by = "bob", .until_s = kNow_s - 1}};
  const auto one = [&](const Alert& of) { return marked({of}, attention, kNow_s)[0]; };
  EXPECT_EQ(one(alert("a1")).acknowledged_by, "ana");
  EXPECT_EQ(one(alert("a2")).acknowledged_by, "");
  EXPECT_EQ(one(alert("a1")).silenced_until_s, kNow_s + 60) << "by what people call the device";
  EXPECT_EQ(one(alert("a1", "narrow link")).silenced_until_s, 0) << "another rule";
  EXPECT_EQ(one(alert("a1", "device error")).silenced_until_s, 0) << "it is over";
  attention.silences = {{.rule = "throttled", .device = "", .by = "bob", .until_s = kNow_s + 60}};
  EXPECT_GT(one(alert("a1", "throttled", "GPU-2")).silenced_until_s, 0) << "all devices";
}

TEST(AttentionFile, IsThereForTheNext) {
  const ScratchFolder folder;
  EXPECT_EQ(*read_attention(folder.path()), Attention{});
  ASSERT_TRUE(change_attention(folder.path(), [](Attention& all) { all.acknowledged = {{"a1", "ana", kNow_s}}; }));
  ASSERT_TRUE(
      change_attention(folder.path(), [](Attention& all) { all.silences = {{"throttled", "", "bob", kNow_s}}; }));
  const auto all = read_attention(folder.path());
  ASSERT_TRUE(all);
  EXPECT_EQ(all->acknowledged.size() + all->silences.size(), 2U);
  folder.write("attention.json", "[]");
  EXPECT_THAT(read_attention(folder.path()).error().message, HasSubstr("attention.json"));
}

TEST(AttentionFile, NobodyWaitsForEverForOneWhoWasStoppedWhileChangingIt) {
  const ScratchFolder folder;
  const auto change = [](Attention& all) { all.acknowledged = {{"a1", "ana", kNow_s}}; };
  ASSERT_TRUE(change_attention(folder.path(), change));
  const Fd stopped(::open(folder.path("attention.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(stopped.get(), LOCK_EX), 0);
  const auto changed = change_attention(folder.path(), change, 0.1);
  ASSERT_FALSE(changed);
  EXPECT_THAT(changed.error().message, HasSubstr("attention.lock for too long"));
}

TEST(AlertsFile, IsReadAsItWasWritten) {
  const ScratchFolder folder;
  EXPECT_EQ(read_alerts(folder.path())->time_s, 0);
  ASSERT_TRUE(write_alerts(folder.path(), {alert("a1"), alert("a2")}, kNow_s));
  const auto written = read_alerts(folder.path());
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->time_s, kNow_s);
  EXPECT_THAT(written->alerts, ElementsAre(alert("a1"), alert("a2")));
  folder.write("alerts.json", "{\"time_s\": \"now\"}");
  EXPECT_FALSE(read_alerts(folder.path()));
}

TEST(Notifier, SaysEachOnceAndWhenItIsOver) {
  Notifier notifier;
  EXPECT_THAT(said(notifier, {alert("a"), alert("b")}), ElementsAre("+a", "+b"));
  EXPECT_THAT(said(notifier, {alert("a"), alert("b")}), IsEmpty());
  EXPECT_THAT(said(notifier, {alert("b")}), ElementsAre("-a"));
  EXPECT_THAT(said(notifier, {alert("a")}), ElementsAre("+a", "-b")) << "what comes again is said again";
}

TEST(Notifier, SaysWhatIsSilencedOnceThatIsOver) {
  Notifier notifier;
  Alert silent = alert("a");
  silent.silenced_until_s = kNow_s + 60;
  EXPECT_THAT(said(notifier, {silent}), IsEmpty());
  EXPECT_THAT(said(notifier, {}), IsEmpty()) << "nobody has heard of it";
  EXPECT_THAT(said(notifier, {silent}), IsEmpty());
  EXPECT_THAT(said(notifier, {alert("a")}, kNow_s + 61), ElementsAre("+a"));
  EXPECT_THAT(said(notifier, {silent}, kNow_s), IsEmpty());
  EXPECT_THAT(said(notifier, {}, kNow_s), IsEmpty()) << "its end is silenced, too";
}

TEST(Notifier, SaysNoBeginningOfWhatSomebodyLooksAfter) {
  Notifier notifier;
  Alert known = alert("a");
  known.acknowledged_by = "ana";
  EXPECT_THAT(said(notifier, {known}), IsEmpty());
  EXPECT_THAT(said(notifier, {alert("b")}), ElementsAre("+b"));
  Alert b = alert("b");
  b.acknowledged_by = "ana";
  EXPECT_THAT(said(notifier, {b}), IsEmpty());
  EXPECT_THAT(said(notifier, {}), ElementsAre("-b")) << "who was told of it hears of its end";
}

}  // namespace
}  // namespace remuda::monitor
