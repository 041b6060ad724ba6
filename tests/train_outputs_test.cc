// What a run leaves behind where not all of it can be written: the rest is there, and what is missing is said.
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <set>

#include "tests/train_job_files.h"

namespace remuda::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A shell line in a mount namespace of its own, with a disk of so many KiB as the folder `disk`. The words are $@.
Finished on_small_disk(const ScratchFolder& folder, int kib, const std::string& line,
                       const std::vector<std::string>& words) {
  std::filesystem::create_directory(folder.path("disk"));
  const std::string mount = fmt::format("cd \"$0\" && mount -t tmpfs -o size={}k tmpfs disk && ", kib);
  std::vector<std::string> all{"unshare", "--mount", "--propagation", "private",
                               "/bin/sh", "-c",      mount + line,    folder.path("")};
  all.insert(all.end(), words.begin(), words.end());
  return run(all);
}

bool can_mount() {
  return run({"unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "tmpfs", "/mnt"}).exit.ok();
}

#define REMUDA_NEEDS_MOUNTS() \
  if (!can_mount()) GTEST_SKIP() << "this process may not mount a small disk"

std::vector<std::string> one_device(const ScratchFolder& folder, const std::vector<std::string>& settings,
                                    const std::vector<std::string>& flags = {}) {
  std::vector<std::string> arguments{"--devices", "cpu:0"};
  for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return train_command(folder, arguments);
}

std::set<std::string> unwritten_of(const Json& report) {
  std::set<std::string> outputs;
  for (const Json& one : report.value("unwritten", Json::array())) outputs.insert(one.value("output", "-"));
  return outputs;
}

TEST(TrainOutputs, WhatAFullDiskHasNoRoomForIsSaidAndTheRestIsThere) {
  REMUDA_NEEDS_MOUNTS();
  const ScratchFolder folder = job_folder();
  const Finished finished = on_small_disk(
      folder, 16, "\"$@\"; status=$?; ls -R disk | grep -v events; exit $status",
      one_device(folder,
                 {"train.epochs=20", "output.weights=disk/w.safetensors", "checkpoint.folder=disk/kept",
                  "output.tensorboard=disk/board", "output.profile=2"},
                 {"--trace", "disk/trace.json", "--step-times", "disk/times", "--json", folder.path("report.json")}));
  EXPECT_EQ(finished.exit.status, 1) << finished;
  EXPECT_THAT(finished.out,
              AllOf(HasSubstr("\nloss per epoch  "), HasSubstr("\ncheckpoints     0 written, 1 could not"),
                    HasSubstr("\nweights         not written\n")));
  EXPECT_THAT(finished.out, AllOf(Not(HasSubstr("w.safetensors")), Not(HasSubstr("step-"))));
  const auto report = parse_json(folder.read("report.json"), "the report");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ((*report)["steps"], 120);
  EXPECT_EQ(unwritten_of(*report),
            (std::set<std::string>{"checkpoint", "step_times", "tensorboard", "trace", "weights"}));
  EXPECT_THAT(finished.err,
              AllOf(HasSubstr("remuda: not all that the run was to leave could be written: "),
                    HasSubstr("the weights: cannot write " + folder.path("disk/w.safetensors") +
                              ": No space left on device (9.4 KiB are needed, 0 B are free)"),
                    HasSubstr("the last checkpoint: cannot write "), HasSubstr("the step times: cannot write"),
                    HasSubstr("the trace: cannot write"), HasSubstr("\ntries the last checkpoint again in 2.0 s\n"),
                    HasSubstr("; the run has kept no checkpoint of itself\n")));
}

TEST(TrainOutputs, WeightsThatFindRoomMeanwhileAreThere) {
  REMUDA_NEEDS_MOUNTS();
  const ScratchFolder folder = job_folder();
  const Finished finished =
      on_small_disk(folder, 64,
                    "{ cat /dev/zero >disk/full 2>/dev/null; \"$@\" 2>err & until grep -q 'tries again' err || ! kill "
                    "-0 $! 2>/dev/null; do "
                    "sleep 0.02; done; rm disk/full; wait $!; status=$?; cat err >&2; ls disk; exit $status; }",
                    one_device(folder, {"output.weights=disk/w.safetensors"}));
  EXPECT_EQ(finished.exit.status, 0) << finished;
  EXPECT_THAT(finished.out, ::testing::EndsWith("w.safetensors\n"));
  EXPECT_THAT(finished.err, HasSubstr("disk/w.safetensors: No space left on device; tries again in 0.5 s\n"));
}

TEST(TrainOutputs, WithoutRoomForTheReportItsSummaryIsPrinted) {
  REMUDA_NEEDS_MOUNTS();
  const ScratchFolder folder = job_folder();
  const Finished finished =
      on_small_disk(folder, 4, "cat /dev/zero >disk/full 2>/dev/null; \"$@\"",
                    one_device(folder, {"output.weights=w.safetensors"}, {"--json", "disk/report.json"}));
  EXPECT_EQ(finished.exit.status, 1) << finished;
  EXPECT_THAT(finished.out, AllOf(HasSubstr("\nloss per epoch  "), HasSubstr("\nweights         4 tensors, ")));
  EXPECT_THAT(finished.err, HasSubstr("remuda: the report is lost: cannot write disk/report.json: No space left"));
  EXPECT_TRUE(folder.has("w.safetensors"));
}

TEST(TrainOutputs, AFolderThatWentAwayIsNamedAlsoWhereTheRunWasStopped) {
  JobText endless;
  endless.train = "epochs = 1000000\nglobal_batch = 48\n";
  const ScratchFolder folder = job_folder(endless);
  std::filesystem::create_directory(folder.path("out"));
  RunningProgram program(
      one_device(folder, {"output.weights=out/w.safetensors"}, {"--json", folder.path("report.json")}));
  EXPECT_TRUE(eventually([&] { return program.err().find("epoch 2/") != std::string::npos; }, 60)) << program.err();
  std::filesystem::remove_all(folder.path("out"));
  program.signal(SIGINT);
  const Finished finished = program.finish(30);
  EXPECT_EQ(finished.exit.status, 1) << finished;
  EXPECT_THAT(finished.err, HasSubstr("there is no folder " + folder.path("out")));
  const auto report = parse_json(folder.read("report.json"), "the report");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ((*report)["stopped"], true);
  EXPECT_EQ(unwritten_of(*report), std::set<std::string>{"weights"});
}

}  // namespace
}  // namespace remuda::tests
