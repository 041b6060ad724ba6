#include "doctor/question.h"

#include <csignal>
#include <fstream>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"

namespace remuda::doctor {
namespace {

using ::testing::HasSubstr;

constexpr double kLong_s = 60;
constexpr double kShort_s = 0.05;

/// Whether a process still runs: a dead one that its new parent has not reaped yet does not.
bool runs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string stat(std::istreambuf_iterator<char>(file), {});
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.compare(name_end + 1, 2, " Z") != 0;
}

TEST(Question, HandsBackTheAnswer) {
  auto question = Question::ask("it", [] { return "two\nlines"; }, kLong_s, steady_clock());
  ASSERT_TRUE(question);
  EXPECT_EQ(question->answer().value(), "two\nlines");
}

TEST(Question, AnswersMayBeLongerThanAPipe) {
  std::string text(1 << 20, 'x');
  auto question = Question::ask("it", [&] { return text; }, kLong_s, steady_clock());
  ASSERT_TRUE(question);
  EXPECT_EQ(question->answer().value(), text);
}

TEST(Question, TimeIsUpWhileItHangs) {
  auto question = Question::ask(
      "it",
      [] {
        while (true) ::pause();
        return "";
      },
      kShort_s, steady_clock());
  ASSERT_TRUE(question);
  const auto answer = question->answer();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "it did not answer within 0.05 s");
}

TEST(Question, ACrashIsNoAnswer) {
  auto question = Question::ask(
      "it",
      [] {
        ::raise(SIGKILL);
        return "";
      },
      kLong_s, steady_clock());
  ASSERT_TRUE(question);
  EXPECT_THAT(question->answer().error().message, HasSubstr("it ended without an answer"));
}

/// A program named python3 in a folder of its own.
class HangingProgram : public ::testing::Test {
 protected:
  HangingProgram() {
    folder_.write("python3", "#!/bin/sh\necho $$ > " + pid_file() + ".new && mv " + pid_file() + ".new " + pid_file() +
                                 "\nsleep 1000\n");
    ::chmod(program().c_str(), 0700);
  }

  std::string program() const { return folder_.path("python3"); }
  std::string pid_file() const { return folder_.path("pid"); }
  /// Waits for the program to have started.
  pid_t pid() const {
    pid_t pid = 0;
    for (int i = 0; i < 1000 && !(std::ifstream(pid_file()) >> pid); ++i) steady_clock().sleep_s(0.01);
    return pid;
  }

  ScratchFolder folder_;
};

TEST_F(HangingProgram, LeavesNoProcess) {
  pid_t child = 0, grandchild = 0;
  {
    auto question =
        Question::ask("python3", [&] { return output_of({program()}).value_or(""); }, kShort_s, steady_clock());
    ASSERT_TRUE(question);
    child = question->pid();
    grandchild = pid();
    ASSERT_GT(grandchild, 0);
    EXPECT_TRUE(runs(grandchild));
    EXPECT_THAT(question->answer().error().message, HasSubstr("python3 did not answer within 0.05 s"));
  }
  EXPECT_FALSE(runs(child));
  for (int i = 0; i < 1000 && runs(grandchild); ++i) steady_clock().sleep_s(0.01);
  EXPECT_FALSE(runs(grandchild));
}

TEST(OutputOf, GivesWhatAProgramPrints) {
  EXPECT_EQ(output_of({"/bin/sh", "-c", "echo out; echo complaint >&2"}).value(), "out\n");
}

TEST(OutputOf, FailuresAreSentences) {
  EXPECT_THAT(output_of({"/no/such/program"}).error().message, HasSubstr("/no/such/program cannot be run"));
  EXPECT_THAT(output_of({"/bin/false"}).error().message, HasSubstr("/bin/false ended with an error"));
}

}  // namespace
}  // namespace remuda::doctor
