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
  const auto by_user = waste_of(uses, false);
  ASSERT_THAT(by_user, SizeIs(2));
  EXPECT_EQ(by_user[0].user, "bob");
  EXPECT_EQ(by_user[0].idle_s(), 7200);
  EXPECT_EQ(by_user[1].jobs, 2) << "two devices of one job are one job";
  EXPECT_EQ(by_user[1].idle_s(), 1800);
  const auto by_job = waste_of(uses, true);
  ASSERT_THAT(by_job, SizeIs(3));
  EXPECT_EQ(by_job[1].job, 3);
}

TEST(Waste, CountsHalfADeviceForAnHourAsHalfAnHour) {
  monitor::LeaseUse half = use("ana", 1, 7200, 3600);
  half.share = 0.5;
  half.energy_joules = 100;
  const auto rows = waste_of(std::vector{half}, false);
  EXPECT_EQ(rows[0].sum.held_s, 3600);
  EXPECT_EQ(rows[0].idle_s(), 1800);
  EXPECT_EQ(rows[0].sum.energy_joules, 100);
}

TEST(Waste, KeepsJobsOfPoolsThatNumberAnewApart) {
  monitor::LeaseUse later = use("ana", 1, 60, 0);
  later.since_s = 5000;
  const std::vector uses = {use("ana", 1, 3600, 0), use("ana", 1, 3600, 0), later};
  const auto rows = waste_of(uses, true);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].sum.held_s, 7200) << "two devices of one job";
  EXPECT_EQ(rows[1].sum.held_s, 60);
  EXPECT_EQ(waste_of(uses, false)[0].jobs, 2);
}

TEST(Waste, CallsNothingIdleOfWhichNothingIsKnown) {
  monitor::LeaseUse blind = use("ana", 1, 3600, 0);
  blind.busy_known_s = 0;
  const auto rows = waste_of(std::vector{blind}, false);
  EXPECT_EQ(rows[0].idle_s(), 0);
  const std::string text = waste_text(rows, false, "", 100);
  EXPECT_THAT(text, HasSubstr("ana      1   1.0  -     -        -           0.0      1.0  -"));
  EXPECT_EQ(waste_json(rows, "")["waste"][0]["idle_s"], 0);
}

TEST(Waste, HasItsPriceWhereThereIsATariff) {
  policy::Policy policy;
  policy.currency = "EUR";
  policy.tariffs = {{.model = "H*", .hour = 2}};
  monitor::LeaseUse priced = use("ana", 1, 7200, 3600);
  priced.model = "H100";
  const auto rows = waste_of(std::vector{priced, use("bob", 2, 3600, 0)}, false, policy);
  const std::string text = waste_text(rows, false, policy.currency, 100);
  EXPECT_THAT(text, HasSubstr("EUR   WASTED"));
  EXPECT_THAT(text, HasSubstr("4.00  2.00"));
  EXPECT_THAT(text, HasSubstr("-    -     -"));
  const Json json = waste_json(rows, policy.currency)["waste"];
  EXPECT_EQ(json[0].value("cost", 0.0) + json[1].value("cost", 0.0), 4);
}

TEST(Waste, SaysWhatToDoWhereNobodyWatched) {
  EXPECT_EQ(waste_text({}, false, "", 100), "Nobody was watched while holding a device; `remuda watch` keeps that\n");
}

}  // namespace
}  // namespace remuda::cli
