// Programs whose caller has closed stdin, stdout or stderr.
#include <gmock/gmock.h>

#include "tests/job_fixture.h"

namespace remuda::tests {
namespace {

using testing::StartsWith;

class ClosedStreams : public JobTest {
 protected:
  Finished shell(const std::string& script) const { return run({"/bin/sh", "-c", script}, environment()); }
  std::string remuda(const std::vector<std::string>& arguments) const {
    std::string text;
    for (const std::string& word : line(arguments)) text += shell_word(word) + " ";
    return text;
  }
};

TEST_F(ClosedStreams, AreNotTakenByFilesThatItOpens) {
  const Finished list = shell(remuda({"list"}) + "<&- >&- 2>&-");
  EXPECT_EQ(list.exit.status, 0) << list;
  const Finished ps = shell(remuda({"ps"}) + "<&- >&- 2>&- && " + remuda({"ps"}));
  EXPECT_EQ(ps.out, "Nobody holds a device\n") << "nothing was written into the pool: " << ps;
  const Finished error = shell(remuda({"why", "77"}) + "<&- >&- 2>&-; echo $?; " + remuda({"ps"}));
  EXPECT_EQ(error.out, "2\nNobody holds a device\n") << error;
}

TEST_F(ClosedStreams, AreOpenInAJob) {
  const std::string job =
      "echo into nothing; echo too >&2; readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 >\"$OUT/links\"";
  const Finished finished =
      shell(remuda({"run", "-n", "2", "--log", folder_.path("log"), "--", "/bin/sh", "-c", job}) + "<&- >&- 2>&-");
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_THAT(folder_.read("links"), StartsWith("/dev/null\n"));
  EXPECT_EQ(folder_.read("log"), "into nothing\ntoo\n");
}

TEST_F(ClosedStreams, StayAsTheyAreWhereTheyAreOpen) {
  EXPECT_THAT(shell(remuda({"list"}) + "<&- 2>&-").out, StartsWith("DEVICE "));
  EXPECT_THAT(shell(remuda({"why", "77"}) + "<&- >&-").err, StartsWith("remuda: there is no job 77"));
}

TEST_F(ClosedStreams, AFullDiskBehindStdoutIsSaid) {
  for (const char* flag : {"--json", "--cpu-devices=1"}) {  // much output and little
    const Finished list = shell(std::string(REMUDA_PROGRAM " list ") + flag + " >/dev/full");
    EXPECT_EQ(list.exit.status, 1) << list;
    EXPECT_THAT(list.err,
                testing::AllOf(StartsWith("remuda: cannot write"), testing::HasSubstr("No space left on device\n")));
  }
}

}  // namespace
}  // namespace remuda::tests
