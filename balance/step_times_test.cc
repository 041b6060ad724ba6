#include "balance/step_times.h"

#include <gmock/gmock.h>
#include <string>

namespace remuda::balance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const StepTimesHead kHead{.global_batch = 96,
                          .devices = {{"cpu:0", 1, {{96, 0.5}, {48, 0.2512345678}}}, {"cpu:1", 3, {{96, 1.5}}}}};
const TimedStep kStep{7, {72, 24}, {0.3751, 0.3762345678}, {0.001, 0}};

TEST(StepTimes, IsALineOfJsonForTheHeadAndForEachStep) {
  EXPECT_EQ(step_times_line(kHead),
            R"({"step_times":1,"global_batch":96,"devices":[)"
            R"({"id":"cpu:0","slowdown":1.0,"alone":[{"batch":96,"seconds":0.5},{"batch":48,"seconds":0.251235}]},)"
            R"({"id":"cpu:1","slowdown":3.0,"alone":[{"batch":96,"seconds":1.5}]}]})");
  EXPECT_EQ(step_times_line(kStep),
            R"({"step":7,"shares":[72,24],"compute_s":[0.3751,0.376235],"wait_s":[0.001,0.0]})");
}

TEST(StepTimes, IsReadBackAsItWasWritten) {
  const std::string text = step_times_line(kHead) + "\n" + step_times_line(kStep) + "\n";
  const auto times = parse_step_times(text, "times");
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_EQ(step_times_line(times->head), step_times_line(kHead));
  ASSERT_EQ(times->steps.size(), 1u);
  EXPECT_EQ(step_times_line(times->steps[0]), step_times_line(kStep));
}

TEST(StepTimes, KeepsTheStepsBeforeALineThatIsCutOff) {
  const std::string text = step_times_line(kHead) + "\n" + step_times_line(kStep) + "\n" + R"({"step":8,"sha)";
  const auto times = parse_step_times(text, "times");
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_EQ(times->steps.size(), 1u);
}

TEST(StepTimes, RefusesWhatAreNoStepTimesAndNamesTheLine) {
  const std::string head = step_times_line(kHead) + "\n";
  const auto message = [](const std::string& text) {
    const auto times = parse_step_times(text, "FILE");
    return times ? "it was read" : times.error().message;
  };
  EXPECT_EQ(message(""), "FILE holds no steps");
  EXPECT_EQ(message(head), "FILE holds no steps");
  EXPECT_THAT(message("{}\n"), HasSubstr("FILE, line 1: "));
  EXPECT_THAT(message("[1]\n"), HasSubstr("FILE, line 1: "));
  EXPECT_THAT(message(R"({"step_times":2,"global_batch":9,"devices":[{"id":"a","slowdown":1,"alone":[]}]})"
                      "\n"),
              HasSubstr("FILE, line 1: these step times are not of format 1"));
  EXPECT_THAT(message(head + R"({"step":1,"shares":[96],"compute_s":[1],"wait_s":[0]})" + "\n"),
              HasSubstr("FILE, line 2: a step has one number per device, and there are 2"));
  EXPECT_THAT(message(head + R"({"step":1,"shares":[-1,97],"compute_s":[1,1],"wait_s":[0,0]})" + "\n"),
              HasSubstr("FILE, line 2: a number is negative"));
  EXPECT_THAT(message(head + R"({"step":1,"shares":"all","compute_s":[1,1],"wait_s":[0,0]})" + "\n"),
              HasSubstr("FILE, line 2: "));
}

}  // namespace
}  // namespace remuda::balance
