// The `remuda` program, run as users run it.
#include <cstdio>
#include <gmock/gmock.h>
#include <string>
#include <unistd.h>

#include "base/json.h"
#include "base/testing/scratch_folder.h"
#include "tests/program.h"

namespace remuda::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Finished shell(const std::string& line) { return run({"/bin/sh", "-c", "( " + line + " ) </dev/null"}); }

Finished remuda(const std::string& arguments) { return shell(REMUDA_PROGRAM " " + arguments); }

TEST(Program, ListShowsATable) {
  const Finished list = remuda("list");
  EXPECT_EQ(list.exit.status, 0) << list.err;
  EXPECT_THAT(list.out, StartsWith("DEVICE "));
  EXPECT_THAT(list.out, HasSubstr("\ncpu:0 "));
  EXPECT_EQ(list.err, "");
}

TEST(Program, ListPrintsTheInventoryAsJson) {
  const Finished list = remuda("list --json --cpu-devices 1");
  EXPECT_EQ(list.exit.status, 0) << list.err;
  const auto json = parse_json(list.out, "output");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ((*json)["version"], 1);
  ASSERT_EQ((*json)["devices"].size(), 1u);
  EXPECT_EQ((*json)["devices"][0]["id"], "cpu:0");
  EXPECT_EQ((*json)["devices"][0]["kind"], "cpu");
  EXPECT_FALSE((*json)["devices"][0]["cores"].empty());
}

TEST(Program, NoWordOfTheCommandLineReachesTheTerminalAsAnEscapeSequence) {
  for (const char* arguments : {"list --machine", "report", "list", ""}) {
    const Finished refused = remuda(std::string(arguments) + " \"$(printf 'a\\033[2Jb')\"");
    EXPECT_EQ(refused.exit.status, 2) << arguments;
    EXPECT_THAT(refused.err, Not(HasSubstr("\x1b"))) << arguments;
    EXPECT_THAT(refused.err, HasSubstr("a?[2Jb")) << arguments;
  }
}

TEST(Program, ImportReadsAPipeByNameAndStandardInput) {
  const std::string matrix = "printf '\\tGPU0\\tGPU1\\nGPU0\\t X \\tPIX\\nGPU1\\tPIX\\t X \\n'";
  const Finished named = shell("bash -c \"" REMUDA_PROGRAM " import <(" + matrix + ")\"");
  EXPECT_EQ(named.exit.status, 0) << named.err;
  const Finished streamed = shell(matrix + " | " REMUDA_PROGRAM " import -");
  EXPECT_EQ(streamed.exit.status, 0) << streamed.err;
  for (const Finished& imported : {named, streamed})
    EXPECT_EQ(parse_json(imported.out, "output").value()["devices"].size(), 2u) << imported.err;
}

TEST(Program, MoreCpuDevicesThanCoresAreAUsageError) {
  const Finished list = remuda("list --cpu-devices 4096");
  EXPECT_EQ(list.exit.status, 2);
  EXPECT_THAT(list.err, StartsWith("remuda: 4096 CPU devices are not possible"));
  EXPECT_THAT(list.err, HasSubstr("at most"));
  EXPECT_EQ(list.out, "");
}

TEST(Program, TopoPlansAnAllReduceOverARecordedMachine) {
  const std::string topo = "topo --machine " REMUDA_MACHINES "/nv-dgx1-v100-8gpu-4nic.json";
  const Finished text = remuda(topo + " --plan allreduce --bytes 100MiB");
  EXPECT_EQ(text.exit.status, 0) << text.err;
  EXPECT_THAT(text.out, StartsWith("all-reduce of 100.0 MiB over gpu:0-7\n"));
  const Finished json = remuda(topo + " --plan allreduce --devices gpu:0,gpu:3,gpu:5 --json");
  EXPECT_EQ(json.exit.status, 0) << json.err;
  EXPECT_EQ(parse_json(json.out, "output").value()["labels"], Json({"gpu:0", "gpu:3", "gpu:5"}));
  for (const char* wrong :
       {" --plan broadcast", " --devices gpu:0,gpu:1", " --bytes 4MiB", " --plan allreduce --bytes much",
        " --plan allreduce --devices gpu:9", " --plan allreduce --svg -", " --plan allreduce --set 0,1"}) {
    const Finished refused = remuda(topo + wrong);
    EXPECT_EQ(refused.exit.status, 2) << wrong;
    EXPECT_EQ(refused.out, "") << wrong;
    EXPECT_THAT(refused.err, StartsWith("remuda")) << wrong;
  }
}

TEST(Program, ToldNothingOrHelpItExplainsItself) {
  for (const char* arguments : {"", "--help", "-h"}) {
    const Finished help = remuda(arguments);
    EXPECT_EQ(help.exit.status, 0) << arguments;
    EXPECT_THAT(help.out, HasSubstr("train")) << arguments;
    EXPECT_THAT(help.out, HasSubstr("Examples:")) << arguments;
  }
  const Finished list = remuda("list --help");
  EXPECT_EQ(list.exit.status, 0);
  EXPECT_THAT(list.out, HasSubstr("--cpu-devices"));
}

TEST(Program, TellsItsVersion) {
  const Finished version = remuda("--version");
  EXPECT_EQ(version.exit.status, 0);
  EXPECT_THAT(version.out, ::testing::MatchesRegex("remuda [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Program, UsageErrorsAreOneSentenceAndStatus2) {
  const std::pair<const char*, const char*> cases[] = {
      {"lst", "remuda: unknown subcommand lst; did you mean list?\n"},
      {"--verson", "remuda: unknown flag --verson; did you mean --version?\n"},
      {"list --jsn", "remuda list: unknown flag --jsn; did you mean --json?\n"},
      {"list gpu:0 extra", "remuda list: unexpected argument extra\n"},
      {"train", "remuda train: give the job's FILE, or --init FOLDER to have one written\n"},
      {"train job.toml --init data", "remuda train: --init writes a new job file, and FILE is one: give one of them\n"},
      {"completion tcsh", "remuda completion: SHELL: tcsh not in {bash,zsh,fish}\n"},
      {"list --cpu-devices 0", "remuda list: --cpu-devices: "},
      {"list --cpu-devices many", "remuda list: "}};
  for (const auto& [arguments, sentence] : cases) {
    const Finished finished = remuda(arguments);
    EXPECT_EQ(finished.exit.status, 2) << arguments;
    EXPECT_THAT(finished.err, StartsWith(sentence));
    EXPECT_THAT(finished.err, HasSubstr("--help."));
    EXPECT_EQ(finished.out, "");
  }
}

TEST(Program, AlertsOfAFolderThatIsNotThereAreAUsageError) {
  const Finished finished = remuda("alerts --folder /nonexistent/history");
  EXPECT_EQ(finished.exit.status, 2);
  EXPECT_EQ(finished.err, "remuda: --folder: there is no folder /nonexistent/history\n");
}

TEST(Program, BashTakesItsCompletion) {
  const Finished checked = shell(REMUDA_PROGRAM " completion bash | bash -n");
  EXPECT_EQ(checked.exit.status, 0) << checked.err;
  const Finished used =
      shell("bash -c 'source <(" REMUDA_PROGRAM
            " completion bash); COMP_WORDS=(remuda list --cp); COMP_CWORD=2; _remuda; "
            "echo \"${COMPREPLY[*]}\"; COMP_WORDS=(remuda tra); COMP_CWORD=1; _remuda; echo \"${COMPREPLY[*]}\"'");
  EXPECT_EQ(used.out, "--cpu-devices\ntrain\n") << used.err;
}

TEST(Program, EachShellHasACompletion) {
  for (const char* name : {"bash", "zsh", "fish"}) {
    const Finished script = remuda(std::string("completion ") + name);
    EXPECT_EQ(script.exit.status, 0) << script.err;
    EXPECT_THAT(script.out, HasSubstr("cpu-devices")) << name;
  }
}

}  // namespace
}  // namespace remuda::tests
