#include "cli/usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "cli/jobs/job_command.h"

namespace remuda::cli {
namespace {

/// A program like remuda: `list` has flags, `train` an argument as well.
struct ProgramSample {
  ProgramSample() {
    app.require_subcommand(0, 1);
    CLI::App* list = app.add_subcommand("list", "");
    list->add_flag("--json", json);
    list->add_option("--cpu-devices", cpu_devices)->check(CLI::Range(1, 64));
    app.add_subcommand("train", "")->add_option("FILE", file)->required();
    CLI::App* run = app.add_subcommand("run", "");
    add_job_command(*run, "COMMAND", "");
    run->add_option("-n,--gpus", gpus)->check(CLI::Range(1, 64));
    run->add_option("--link", link)->check(CLI::IsMember({"any", "p2p"}));
  }

  /// The error of this line; empty when there is none.
  std::string wrong(const std::string& line) {
    try {
      app.parse(line);
    } catch (const CLI::ParseError& error) {
      return usage_text(app, error);
    }
    return "";
  }

  CLI::App app{"A sample", "remuda"};
  bool json = false;
  int cpu_devices = 0, gpus = 0;
  std::string file, link;
};

std::string wrong(const std::string& line) { return ProgramSample().wrong(line); }

std::string in_remuda(const std::string& sentence) { return "remuda: " + sentence + "\nSee remuda --help.\n"; }
std::string in_list(const std::string& sentence) { return "remuda list: " + sentence + "\nSee remuda list --help.\n"; }
std::string in_train(const std::string& sentence) {
  return "remuda train: " + sentence + "\nSee remuda train --help.\n";
}

TEST(UsageText, NamesAnUnknownSubcommand) {
  EXPECT_EQ(wrong("lst"), in_remuda("unknown subcommand lst; did you mean list?"));
  EXPECT_EQ(wrong("trian --json"), in_remuda("unknown subcommand trian; did you mean train?"));
  EXPECT_EQ(wrong("kubernetes"), in_remuda("unknown subcommand kubernetes"));
}

TEST(UsageText, NamesAnUnknownFlag) {
  EXPECT_EQ(wrong("--hlp"), in_remuda("unknown flag --hlp; did you mean --help?"));
  EXPECT_EQ(wrong("list --jsn"), in_list("unknown flag --jsn; did you mean --json?"));
  EXPECT_EQ(wrong("list --cpu-device=3"), in_list("unknown flag --cpu-device; did you mean --cpu-devices?"));
  EXPECT_EQ(wrong("list -x"), in_list("unknown flag -x"));
}

TEST(UsageText, NamesTheFlagThatIsWrongBeforeACommand) {
  const auto in_run = [](const std::string& sentence) { return testing::StartsWith("remuda run: " + sentence); };
  EXPECT_THAT(wrong("run -n 0 -- true"), in_run("--gpus: Value 0 not in range"));
  EXPECT_THAT(wrong("run -n x -- true"), in_run("--gpus: Value x not in range"));
  EXPECT_THAT(wrong("run --link foo -- sh -c x"), in_run("--link: foo not in {any,p2p}"));
  EXPECT_THAT(wrong("run --link foo sh -c x"), in_run("--link: foo not in {any,p2p}"));
  EXPECT_THAT(wrong("run -n 0 --lnk any -- true"), in_run("unknown flag --lnk; did you mean --link?"));
}

TEST(UsageText, PrefersTheUnknownFlagToWhatIsMissing) {
  EXPECT_EQ(wrong("train --quit"), in_train("unknown flag --quit"));
}

TEST(UsageText, NamesAnArgumentTooMany) {
  EXPECT_EQ(wrong("list everything"), in_list("unexpected argument everything"));
  EXPECT_EQ(wrong("train a b"), in_train("unexpected argument b"));
}

TEST(UsageText, NamesTheSubcommandOfOtherErrors) {
  EXPECT_EQ(wrong("train"), in_train("FILE is required"));
  EXPECT_EQ(wrong("list --cpu-devices 0").find("remuda list: --cpu-devices: "), 0u);
  EXPECT_EQ(wrong("list --cpu-devices").find("remuda list: --cpu-devices: "), 0u);
}

TEST(UsageText, NamesWhatIsNoNumber) {
  CLI::App app("A sample", "remuda");
  std::vector<int> jobs;
  app.add_subcommand("why", "")->add_option("JOB", jobs);
  try {
    app.parse("why x");
    FAIL() << "taken for a number";
  } catch (const CLI::ParseError& error) {
    EXPECT_EQ(usage_text(app, error), "remuda why: JOB = x is no number\nSee remuda why --help.\n");
  }
}

TEST(UsageText, KeepsEscapeSequencesFromTheTerminal) {
  EXPECT_EQ(wrong("list a\x1b[2Jb"), in_list("unexpected argument a?[2Jb"));
}

TEST(UsageText, IsNotNeededForARightLine) {
  EXPECT_EQ(wrong(""), "");
  EXPECT_EQ(wrong("list --json"), "");
  EXPECT_EQ(wrong("train file"), "");
}

}  // namespace
}  // namespace remuda::cli
