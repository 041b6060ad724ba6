#include "cli/jobs/kept_line.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>

#include "base/testing/scratch_folder.h"
#include "cli/jobs/job_command.h"
#include "cli/subcommands.h"

namespace remuda::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class KeptLines : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_STATE_HOME", state_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_STATE_HOME"); }

  static KeptLine line(std::vector<std::string> words) {
    Program program;
    add_run(program);
    std::ranges::reverse(words);
    words.emplace_back("run");
    program.app.parse(words);
    const CLI::App& run = *program.app.get_subcommand("run");
    return line_of(run, job_command(run).value());
  }
  static pool::Job job(std::vector<std::string> command) {
    pool::Job job;
    job.id = 7;
    job.command = std::move(command);
    return job;
  }
  static void keep(const KeptLine& line, int64_t job = 7) {
    EXPECT_TRUE(keeper_of(line, "/pool", false)({.job = job}));
  }

  ScratchFolder state_;
};

TEST_F(KeptLines, HaveTheFlagsOfTheJobAndNotThoseOfTheCall) {
  const KeptLine kept = line({"-n", "2", "--after", "3,4", "-d", "--machine", "x.json", "-q", "--each", "--mem",
                              "24GiB", "--", "sh", "-c", "echo '--gpus'\n"});
  EXPECT_THAT(kept.flags, testing::UnorderedElementsAre("--gpus=2", "--after=3", "--after=4", "--each", "--mem=24GiB"));
  EXPECT_THAT(kept.command, ElementsAre("sh", "-c", "echo '--gpus'\n"));
  EXPECT_EQ(kept.flag("after"), "3,4");
  EXPECT_EQ(kept.flag("each"), std::nullopt);
  EXPECT_THAT(line({"true"}).flags, IsEmpty());
}

TEST_F(KeptLines, StayHoweverManyJobsOthersHave) {
  const KeptLine kept = line({"true"});
  keep(kept);
  keep(kept, 256 * 1000);
  EXPECT_EQ(read_kept_line("/pool", job({"true"})).value(), kept);
}

TEST_F(KeptLines, ComeBackAsTheyWere) {
  const KeptLine kept = line({"--name", "a b", "--", "sh", "-c", "echo 1\n\techo \"2\" ö"});
  keep(kept);
  EXPECT_EQ(read_kept_line("/pool", job({"sh", "-c", "echo 1?\techo \"2\" ö"})).value(), kept);
}

TEST_F(KeptLines, AreOfOneJobInOnePool) {
  keep(line({"--", "true"}));
  EXPECT_TRUE(read_kept_line("/pool", job({"true"})));
  EXPECT_FALSE(read_kept_line("/another", job({"true"})));
  const auto other = read_kept_line("/pool", job({"false"}));
  ASSERT_FALSE(other) << "this is job 7 of a new pool";
  EXPECT_THAT(other.error().message, HasSubstr("was not kept"));
  EXPECT_FALSE(read_kept_line("/pool", job({})));
}

TEST_F(KeptLines, AreNotKeptWhereTheyWouldComeBackAsSomethingElse) {
  EXPECT_FALSE(keeper_of(line({"--", "ls", "\xff"}), "/pool", false)({.job = 7}));
  EXPECT_FALSE(read_kept_line("/pool", job({"ls", "?"})));
}

TEST_F(KeptLines, ThatAreDamagedAreRefused) {
  keep(line({"--", "true"}));
  for (const char* text : {"", "[]", "{}", "{\"flags\":[1],\"command\":[],\"folder\":\"\"}", "{\"flags\":3}"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(state_.path()))
      if (entry.is_regular_file()) std::ofstream(entry.path()) << text;
    EXPECT_FALSE(read_kept_line("/pool", job({"true"}))) << text;
  }
}

}  // namespace
}  // namespace remuda::cli
