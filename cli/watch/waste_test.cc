#include "cli/watch/waste.h"

#include <gmock/gmock.h>

namespace remuda::cli {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

monitor::LeaseUse use(const char* user, int64_t job, double held_s, double busy_s) {
  return {.job = job,
          .device = "card",
          .user = user,
          .since_s = 100,
          .held_s = held_s,
          .busy_s = busy_s,
          .busy_known_s = held_s};
}

TEST(Waste, HasWhoHeldMostForNothingFirst) {
  const std::vector uses = {use("ana", 1, 3600, 3600), use("bob", 2, 7200, 0), use("ana", 3, 3600, 1800),
                            use("ana", 1, 3600, 3600)};
  const auto by_user = waste_of(uses, WasteBy::user);
  ASSERT_THAT(by_user, SizeIs(2));
  EXPECT_EQ(by_user[0].user, "bob");
  EXPECT_EQ(by_user[0].idle_s(), 7200);
  EXPECT_EQ(by_user[1].jobs, 2) << "two devices of one job are one job";
  EXPECT_EQ(by_user[1].idle_s(), 1800);
  const auto by_job = waste_of(uses, WasteBy::job);
  ASSERT_THAT(by_job, SizeIs(3));
  EXPECT_EQ(by_job[1].job, 3);
}

TEST(Waste, CountsHalfADeviceForAnHourAsHalfAnHour) {
  monitor::LeaseUse half = use("ana", 1, 7200, 3600);
  half.share = 0.5;
  half.energy_joules = 100;
  const auto rows = waste_of(std::vector{half}, WasteBy::user);
  EXPECT_EQ(rows[0].sum.held_s, 3600);
  EXPECT_EQ(rows[0].idle_s(), 1800);
  EXPECT_EQ(rows[0].sum.energy_joules, 100);
}

TEST(Waste, KeepsJobsOfPoolsThatNumberAnewApart) {
  monitor::LeaseUse later = use("ana", 1, 60, 0);
  later.since_s = 5000;
  const std::vector uses = {use("ana", 1, 3600, 0), use("ana", 1, 3600, 0), later};
  const auto rows = waste_of(uses, WasteBy::job);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].sum.held_s, 7200) << "two devices of one job";
  EXPECT_EQ(rows[1].sum.held_s, 60);
  EXPECT_EQ(waste_of(uses, WasteBy::user)[0].jobs, 2);
}

TEST(Waste, CallsNothingIdleOfWhichNothingIsKnown) {
  monitor::LeaseUse blind = use("ana", 1, 3600, 0);
  blind.busy_known_s = 0;
  const auto rows = waste_of(std::vector{blind}, WasteBy::user);
  EXPECT_EQ(rows[0].idle_s(), 0);
  const std::string text = waste_text(rows, WasteBy::user, "", 100);
  EXPECT_THAT(text, HasSubstr("ana      1   1.0  -     -        -           0.0      1.0  -"));
  EXPECT_EQ(waste_json(rows, "")["waste"][0]["idle_s"], 0);
}

TEST(Waste, HasItsPriceWhereThereIsATariff) {
  policy::Policy policy;
  policy.currency = "EUR";
  policy.tariffs = {{.model = "H*", .hour = 2}};
  monitor::LeaseUse priced = use("ana", 1, 7200, 3600);
  priced.model = "H100";
  const auto rows = waste_of(std::vector{priced, use("bob", 2, 3600, 0)}, WasteBy::user, policy);
  const std::string text = waste_text(rows, WasteBy::user, policy.currency, 100);
  EXPECT_THAT(text, HasSubstr("EUR   WASTED"));
  EXPECT_THAT(text, HasSubstr("4.00  2.00"));
  EXPECT_THAT(text, HasSubstr("-    -     -"));
  const Json json = waste_json(rows, policy.currency)["waste"];
  EXPECT_EQ(json[0].value("cost", 0.0) + json[1].value("cost", 0.0), 4);
}

TEST(Waste, IsOfPodsApart) {
  monitor::LeaseUse pod = use("", -7, 7200, 3600);
  pod.pod = "ml/train-0";
  pod.energy_joules = 3.6e6, pod.energy_known_s = 7200;
  monitor::LeaseUse nameless = use("", -8, 3600, 3600);
  nameless.pod = "0d9c-uid";
  const std::vector uses = {use("ana", 1, 3600, 0), pod, nameless};
  EXPECT_THAT(waste_of(uses, WasteBy::user), SizeIs(1));
  EXPECT_THAT(waste_of(uses, WasteBy::job), SizeIs(1));
  const auto rows = waste_of(uses, WasteBy::pod);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].idle_s(), 3600);
  const std::string text = waste_text(rows, WasteBy::pod, "", 100);
  EXPECT_THAT(text, HasSubstr("NAMESPACE  POD"));
  EXPECT_THAT(text, HasSubstr("ml         train-0    2.0   50%  -        -           1.0      0.0  1.00"));
  EXPECT_THAT(text, HasSubstr("-          0d9c-uid   1.0  100%"));
  const Json json = waste_json(rows, "")["waste"];
  EXPECT_EQ(json[0]["pod"], "ml/train-0");
  EXPECT_EQ(json[0]["held_s"], 7200);
  EXPECT_FALSE(json[0].contains("user") || json[0].contains("job") || json[0].contains("jobs"));
  EXPECT_THAT(waste_text({}, WasteBy::pod, "", 100), HasSubstr("No pod was watched"));
}

TEST(Waste, SaysWhatToDoWhereNobodyWatched) {
  EXPECT_EQ(waste_text({}, WasteBy::user, "", 100),
            "Nobody was watched while holding a device; `remuda watch` keeps that\n");
}

}  // namespace
}  // namespace remuda::cli
