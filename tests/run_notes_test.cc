// What `remuda run` notes about the environment that it was called in.
#include <algorithm>
#include <gmock/gmock.h>
#include <iterator>

#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

class RunNotes : public JobTest {
 protected:
  Finished run_with(const std::vector<std::string>& flags, process::Environment more) const {
    process::Environment environment = this->environment();
    std::ranges::move(more, std::back_inserter(environment));
    std::vector<std::string> arguments{"run"};
    std::ranges::copy(flags, std::back_inserter(arguments));
    arguments.insert(arguments.end(), {"--", "true"});
    return tests::run(line(arguments), environment);
  }
};

TEST_F(RunNotes, SayThatAVariableChoosesNoDevices) {
  const process::Environment chosen{{"CUDA_VISIBLE_DEVICES", "6,7"}};
  EXPECT_THAT(run_with({"-n", "2"}, chosen).err,
              HasSubstr("remuda: CUDA_VISIBLE_DEVICES=6,7 is ignored; use --device 6,7"));
  EXPECT_THAT(run_with({"--device", "6,7"}, chosen).err, Not(HasSubstr("is ignored")));
  EXPECT_THAT(run_with({"-n", "2", "--quiet"}, chosen).err, Not(HasSubstr("is ignored")));
  EXPECT_THAT(run_with({}, {{"CUDA_VISIBLE_DEVICES", "6,7"}, {"REMUDA_JOB", "7"}}).err, Not(HasSubstr("is ignored")))
      << "the job's own";
}

/// Slurm's word for no GPU, and the number that CUDA takes for none.
TEST_F(RunNotes, ProposeNoDeviceWhereAVariableNamesNone) {
  for (const char* none : {"NoDevFiles", "-1", "none", "NoDevFiles,0"})
    for (const char* variable : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
      const std::string err = run_with({"-n", "2"}, {{variable, none}}).err;
      EXPECT_THAT(err, HasSubstr(fmt::format("remuda: {}={}, which names no device, is ignored", variable, none)));
      EXPECT_THAT(err, Not(HasSubstr("--device")));
    }
  EXPECT_THAT(run_with({"-n", "2"}, {{"CUDA_VISIBLE_DEVICES", "6,-1,7"}}).err, HasSubstr("use --device 6\n"));
}

TEST_F(RunNotes, SayWithinAJobThatThatJobKeepsItsDevices) {
  std::string again;
  for (const std::string& word : line({"run", "--no-wait"})) again += shell_word(word) + " ";
  const Finished finished =
      ask({"run", "-n", "2", "--", "/bin/sh", "-c", again + "-- echo inner; " + again + "--quiet -- true"});
  EXPECT_EQ(finished.out, "inner\n") << finished;
  EXPECT_EQ(finished.err,
            "remuda: this is within job 1, which keeps its devices: to use those, start the command itself\n");
}

}  // namespace
}  // namespace remuda::tests
