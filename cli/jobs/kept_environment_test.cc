#include "cli/jobs/kept_environment.h"

#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/testing/scratch_folder.h"
#include "cli/jobs/kept_line.h"

namespace remuda::cli {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using Kind = run::Message::Kind;

class KeptEnvironments : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_STATE_HOME", state_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_STATE_HOME"); }
  std::string path() const { return *folder_of_lines("/pool") + "/7.environment.json"; }

  const ScratchFolder state_;
  const OpenJobs none_ = [] { return std::vector<int64_t>(); };
  const KeptEnvironment kept_{{"A=1", "B=two\nlines ö"}, 027, {{1024, 4096}, {RLIM_INFINITY, RLIM_INFINITY}}};
};

TEST_F(KeptEnvironments, AreThereUntilTheirJobHasEnded) {
  const auto keep = keeper_of(kept_, "/pool", none_);
  EXPECT_FALSE(keep({.kind = Kind::note}));
  EXPECT_FALSE(std::filesystem::exists(path())) << "the job has no number";
  EXPECT_TRUE(keep({.kind = Kind::waiting, .job = 7}));
  EXPECT_EQ(read_kept_environment("/pool", 7).value(), kept_);
  EXPECT_FALSE(read_kept_environment("/pool", 8));
  EXPECT_FALSE(read_kept_environment("/other", 7));
  struct stat info{};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U) << "there may be passwords in it";
  keep({.kind = Kind::ended});
  EXPECT_TRUE(read_kept_environment("/pool", 7)) << "the process has ended, and not the job";
  EXPECT_FALSE(keep({.kind = Kind::ended, .job = 7}));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(KeptEnvironments, ThatCannotBeKeptWholeAreNotSaidToBe) {
  KeptEnvironment part = kept_;
  part.is_whole = false;
  EXPECT_FALSE(keeper_of(part, "/pool", none_)({.kind = Kind::waiting, .job = 7}));
  EXPECT_TRUE(read_kept_environment("/pool", 7)) << "all the same, for when its process is lost";
  ::setenv("XDG_STATE_HOME", "/dev/null", 1);
  EXPECT_FALSE(keeper_of(kept_, "/pool", none_)({.kind = Kind::waiting, .job = 8}));
}

TEST_F(KeptEnvironments, OfJobsThatHaveEndedOtherwiseAreRemovedByALaterOne) {
  const OpenJobs open = [] { return std::vector<int64_t>{9, 32}; };
  for (const int64_t job : {7, 9, 33}) keeper_of(kept_, "/pool", open)({.kind = Kind::waiting, .job = job});
  EXPECT_TRUE(read_kept_environment("/pool", 7));
  keeper_of(kept_, "/pool", open)({.kind = Kind::waiting, .job = 32});
  EXPECT_FALSE(read_kept_environment("/pool", 7)) << "it has ended, and nobody could remove it";
  for (const int64_t job : {9, 32}) EXPECT_TRUE(read_kept_environment("/pool", job)) << job;
  EXPECT_TRUE(read_kept_environment("/pool", 33)) << "it may have come since";
}

TEST_F(KeptEnvironments, OfJobsThatAreCancelledBeforeTheyHaveAProcessAreRemoved) {
  for (const int64_t job : {7, 8, 9}) keeper_of(kept_, "/pool", none_)({.kind = Kind::waiting, .job = job});
  const auto open = [] { return Result<std::vector<int64_t>>(std::vector<int64_t>{8}); };
  forget_environments("/pool", {7, 8, 10}, [] { return Result<std::vector<int64_t>>(failed("no pool")); });
  EXPECT_TRUE(read_kept_environment("/pool", 7)) << "nobody knows";
  forget_environments("/pool", {7, 8, 10}, open);
  EXPECT_FALSE(read_kept_environment("/pool", 7));
  EXPECT_TRUE(read_kept_environment("/pool", 8)) << "its end is still to be told, and its process needs it";
  EXPECT_TRUE(read_kept_environment("/pool", 9)) << "it was not cancelled";
}

TEST_F(KeptEnvironments, OfAJobThatIsTakenOverStayWhatTheyAre) {
  keeper_of(kept_, "/pool", none_)({.kind = Kind::waiting, .job = 7});
  const auto taken = keeper_of(std::nullopt, "/pool", none_);
  taken({.kind = Kind::waiting, .job = 7});
  EXPECT_EQ(read_kept_environment("/pool", 7).value(), kept_);
  taken({.kind = Kind::ended, .job = 7});
  EXPECT_FALSE(read_kept_environment("/pool", 7));
}

TEST_F(KeptEnvironments, AreNotWaitedForWhereAPipeLies) {
  keeper_of(kept_, "/pool", none_)({.kind = Kind::waiting, .job = 7});
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
  EXPECT_FALSE(own.is_whole);
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_THAT(own.limits, SizeIs(RLIM_NLIMITS));
  EXPECT_EQ(own.limits[RLIMIT_NOFILE], std::pair(files.rlim_cur, files.rlim_max));
  ::unsetenv("KEPT_TEST");
  ::unsetenv("KEPT_TEST_LATIN");
}

/// In a child, which keeps what it takes on.
TEST_F(KeptEnvironments, AreTakenOnAsFarAsPermitted) {
  KeptEnvironment kept = own_environment();
  kept.mask = 077;
  kept.limits[RLIMIT_NOFILE] = {64, 128};
  const auto takes_on = [&] {
    take_on(kept);
    const KeptEnvironment own = own_environment();
    ::_exit(own.mask == 077 && own.limits == kept.limits ? 0 : 1);
  };
  EXPECT_EXIT(takes_on(), testing::ExitedWithCode(0), "");
}

TEST_F(KeptEnvironments, ThatAreDamagedAreRefused) {
  keeper_of(kept_, "/pool", none_)({.kind = Kind::waiting, .job = 7});
  for (const char* text : {"", "[]", "{\"environment\":[1],\"umask\":1}", "{\"environment\":[],\"umask\":4096}",
                           "{\"environment\":[],\"umask\":18,\"limits\":[[1]]}"}) {
    state_.write(std::filesystem::relative(path(), state_.path()).string(), text);
    EXPECT_FALSE(read_kept_environment("/pool", 7)) << text;
  }
}

}  // namespace
}  // namespace remuda::cli
