#include "cli/train/profile_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

Json report_with_profile() {
  return Json::parse(R"({"devices": [{"id": "cpu:0"}], "profile": {"first_step": 4, "steps": 2, "trace": "/a/b.json",
    "devices": [{"seconds": 0.02, "compute_s": 0.016, "wait_s": 0.004, "data_wait_s": 0.001, "operators_s": 0.012,
      "operators": [{"name": "aten::addmm", "calls": 6, "total_s": 0.010, "self_s": 0.009},
                    {"name": "aten::relu", "calls": 4, "total_s": 0.003, "self_s": 0.003}]}]}})");
}

TEST(ProfileText, IsATableForEachRankAndTheFileToOpen) {
  EXPECT_EQ(profile_text(report_with_profile()),
            "profile of the steps 4 to 5\n"
            "\n"
            "rank 0, cpu:0: a step took 10.00 ms: 8.00 ms of computing, of which 0.50 ms\n"
            "waiting for samples, and 2.00 ms waiting for other ranks. CPU time of its\n"
            "operators:\n"
            "operator     calls  total ms  self ms  self %\n"
            "aten::addmm      6     10.00     9.00    75.0\n"
            "aten::relu       4      3.00     3.00    25.0\n"
            "\n"
            "The trace is /a/b.json; ui.perfetto.dev and chrome://tracing open it.\n");
}

TEST(ProfileText, SaysWhatTheTraceLacks) {
  Json report = report_with_profile();
  report["profile"]["devices"][0]["counters_left_out_of_trace"] = 12;
  EXPECT_THAT(profile_text(report), testing::HasSubstr("It lacks the last 0 operators and 12 values of counters"));
}

TEST(ProfileText, HasTheTimesOfADeviceThatComputesOnItsOwn) {
  Json report = report_with_profile();
  Json& rank = report["profile"]["devices"][0];
  rank["device_s"] = 0.05;
  rank["operators"][0].update({{"device_s", 0.045}, {"device_self_s", 0.04}});
  rank["operators"][1].update({{"device_s", 0.01}, {"device_self_s", 0.01}});
  EXPECT_THAT(profile_text(report),
              testing::HasSubstr("waiting for other ranks. CPU time and device\n"
                                 "time of its operators:\n"
                                 "operator     calls  total ms  self ms  device ms  its self  self %\n"
                                 "aten::addmm      6     10.00     9.00      45.00     40.00    80.0\n"
                                 "aten::relu       4      3.00     3.00      10.00     10.00    20.0\n"));
}

TEST(ProfileText, SaysWhenTheRunWasTooShort) {
  Json none = report_with_profile();
  none["profile"]["steps"] = 0;
  EXPECT_THAT(profile_text(none), testing::HasSubstr("the run ended within its first three steps"));
}

TEST(ProfileText, IsEmptyWithoutAProfileAndStandsWhatIsMissing) {
  EXPECT_EQ(profile_text(Json::object()), "");
  EXPECT_EQ(profile_text({{"profile", nullptr}}), "");
  EXPECT_THAT(profile_text(Json::parse(R"({"devices": [{"id": "a"}], "profile": {"steps": 1, "devices": [null]}})")),
              testing::HasSubstr("rank 0, a: a step took 0.00 ms"));
}

}  // namespace
}  // namespace remuda::cli
