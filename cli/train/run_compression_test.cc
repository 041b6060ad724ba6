#include "cli/train/run_compression.h"

#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

Json steps(int count, double step_s, double sent_bytes) {
  return {{"steps", count}, {"step_s", step_s}, {"sent_bytes", sent_bytes}};
}

std::string line(const Json& compression) { return compression_line({{"compression", compression}}); }
std::string text(const Json& compression) { return compression_text({{"compression", compression}}); }

TEST(RunCompression, IsNoMatterOfARunThatDoesNotAskForIt) {
  EXPECT_EQ(compression_line(Json::object()), "");
  EXPECT_EQ(compression_text(Json::object()), "");
}

TEST(RunCompression, SaysBytesAndSecondsOfAStepBesideThoseBefore) {
  Json one{
      {"kind", "1-bit"}, {"after_steps", 4}, {"before", steps(4, 1.294, 13.8e6)}, {"since", steps(9, 0.0291, 0.44e6)}};
  EXPECT_EQ(line(one), "1-bit after step 4: 429.7 KiB and 29.1 ms a step, in place of 13.2 MiB and 1.29 s");
  EXPECT_EQ(text(one), "") << "nothing was chosen";
  one.erase("before");  // it went on from a checkpoint
  EXPECT_EQ(line(one), "1-bit after step 4: 429.7 KiB and 29.1 ms a step");
}

TEST(RunCompression, SaysWhyNothingWasPacked) {
  EXPECT_EQ(line({{"kind", "1-bit"}, {"why_not", "all devices are on one host"}}), "none: all devices are on one host");
  EXPECT_EQ(line({{"kind", "1-bit"}, {"after_steps", 0}, {"before", steps(4, 1, 1024)}}),
            "none, 1.0 KiB and 1.00 s a step: the run ended in the warm-up");
  EXPECT_EQ(line({{"kind", "auto"}, {"why_not", "it was over"}, {"before", steps(2, 1, 1024)}}),
            "none, 1.0 KiB and 1.00 s a step: it was over");
  EXPECT_EQ(line({{"kind", "1-bit"}, {"after_steps", 0}}), "none: no step was made");
}

TEST(RunCompression, OfAnAutomaticChoiceHoldsWhatWasExpectedAgainstWhatCame) {
  Json chosen{{"kind", "powersgd"},
              {"chosen", "a step took 1.3 s"},
              {"chosen_after", 13},
              {"after_steps", 20},
              {"sends", "powersgd"},
              {"before", steps(20, 1.3, 2048)},
              {"since", steps(9, 0.31, 1024)},
              {"expected", {{{"sends", "none"}, {"step_s", 1.3}}, {{"sends", "powersgd"}, {"step_s", 0.25}}}}};
  EXPECT_EQ(line(chosen), "powersgd after step 20: 1.0 KiB and 0.31 s a step, in place of 2.0 KiB and 1.30 s");
  EXPECT_EQ(text(chosen),
            "What hosts send was chosen after step 13: a step took 1.3 s. So it is powersgd; such a step was "
            "expected to take 0.25 s, and took 0.31 s.");
  chosen.erase("since");
  EXPECT_EQ(text(chosen),
            "What hosts send was chosen after step 13: a step took 1.3 s. So it is powersgd, but no step was made "
            "with it.");
}

TEST(RunCompression, KnowsForWhichJobsItIs) {
  EXPECT_EQ(why_no_compression(Json::object()), "");
  EXPECT_EQ(why_no_compression({{"job", {{"elastic.ranks_lost", "0"}}}}), "");
  EXPECT_EQ(why_no_compression({{"job", {{"elastic.ranks_lost", "2"}}}}), "elastic.ranks_lost is set");
}

}  // namespace
}  // namespace remuda::cli
