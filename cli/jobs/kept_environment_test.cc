#include "cli/jobs/kept_environment.h"

#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/testing/scratch_folder.h"
#include "cli/jobs/kept_line.h"

namespace remuda::cli {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Kind = run::Message::Kind;

class KeptEnvironments : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_STATE_HOME", state_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_STATE_HOME"); }
  std::string path() const { return *folder_of_lines("/pool") + "/7.environment.json"; }

  const ScratchFolder state_;
  const OpenJobs none_ = [] { return std::vector<int64_t>(); };
  const KeptEnvironment kept_{{"A=1", "B=two\nlines ö"}, 027};
};

TEST_F(KeptEnvironments, AreThereUntilTheirJobHasEnded) {
  int reports = 0;
  const auto report = keeping(kept_, "/pool", none_, [&](const run::Message&) { ++reports; });
  report({.kind = Kind::note});
  EXPECT_FALSE(std::filesystem::exists(path())) << "the job has no number";
  report({.kind = Kind::waiting, .job = 7});
  EXPECT_EQ(read_kept_environment("/pool", 7).value(), kept_);
  EXPECT_FALSE(read_kept_environment("/pool", 8));
  EXPECT_FALSE(read_kept_environment("/other", 7));
  struct stat info{};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U) << "there may be passwords in it";
  report({.kind = Kind::ended});
  EXPECT_TRUE(read_kept_environment("/pool", 7)) << "the process has ended, and not the job";
  report({.kind = Kind::ended, .job = 7});
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_EQ(reports, 4);
}

TEST_F(KeptEnvironments, OfJobsThatHaveEndedOtherwiseAreRemovedByALaterOne) {
  const auto report = [](const run::Message&) {};
  const OpenJobs open = [] { return std::vector<int64_t>{9, 32}; };
  for (const int64_t job : {7, 9, 33}) keeping(kept_, "/pool", open, report)({.kind = Kind::waiting, .job = job});
  EXPECT_TRUE(read_kept_environment("/pool", 7));
  keeping(kept_, "/pool", open, report)({.kind = Kind::waiting, .job = 32});
  EXPECT_FALSE(read_kept_environment("/pool", 7)) << "it has ended, and nobody could remove it";
  for (const int64_t job : {9, 32}) EXPECT_TRUE(read_kept_environment("/pool", job)) << job;
  EXPECT_TRUE(read_kept_environment("/pool", 33)) << "it may have come since";
}

TEST_F(KeptEnvironments, OfAJobThatIsTakenOverStayWhatTheyAre) {
  const auto report = [](const run::Message&) {};
  keeping(kept_, "/pool", none_, report)({.kind = Kind::waiting, .job = 7});
  const auto taken = keeping(std::nullopt, "/pool", none_, report);
  taken({.kind = Kind::waiting, .job = 7});
  EXPECT_EQ(read_kept_environment("/pool", 7).value(), kept_);
  taken({.kind = Kind::ended, .job = 7});
  EXPECT_FALSE(read_kept_environment("/pool", 7));
}

TEST_F(KeptEnvironments, AreNotWaitedForWhereAPipeLies) {
  keeping(kept_, "/pool", none_, [](const run::Message&) {})({.kind = Kind::waiting, .job = 7});
  std::filesystem::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  const auto read = read_kept_environment("/pool", 7);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("not a regular file"));
}

TEST_F(KeptEnvironments, AreThatOfTheProcess) {
  ::setenv("KEPT_TEST", "a=b c", 1);
  ::setenv("KEPT_TEST_LATIN", "\xe4", 1);
  const mode_t before = ::umask(0077);
  const KeptEnvironment own = own_environment();
  EXPECT_EQ(::umask(before), 0077U) << "it is as it was";
  EXPECT_EQ(own.mask, 0077U);
  EXPECT_THAT(own.entries, Contains("KEPT_TEST=a=b c"));
  EXPECT_THAT(own.entries, Not(Contains(HasSubstr("KEPT_TEST_LATIN"))));
  ::unsetenv("KEPT_TEST");
  ::unsetenv("KEPT_TEST_LATIN");
}

TEST_F(KeptEnvironments, ThatAreDamagedAreRefused) {
  keeping(kept_, "/pool", none_, [](const run::Message&) {})({.kind = Kind::waiting, .job = 7});
  for (const char* text : {"", "[]", "{\"environment\":[1],\"umask\":1}", "{\"environment\":[],\"umask\":4096}"}) {
    state_.write(std::filesystem::relative(path(), state_.path()).string(), text);
    EXPECT_FALSE(read_kept_environment("/pool", 7)) << text;
  }
}

}  // namespace
}  // namespace remuda::cli
