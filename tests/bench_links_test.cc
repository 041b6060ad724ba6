// `remuda bench links` on this machine's cores: every figure exists, is kept, and is shown afterwards.
#include <csignal>
#include <gmock/gmock.h>
#include <thread>

#include "base/json.h"
#include "tests/program.h"
#include "tests/train_job_files.h"

namespace remuda::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

process::Environment kept_in(const ScratchFolder& folder) { return {{"XDG_STATE_HOME", folder.path("state")}}; }

std::vector<std::string> bench_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{REMUDA_PROGRAM, "bench", "links"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Json json_of(const Finished& finished) {
  EXPECT_TRUE(finished.exit.ok()) << finished;
  const auto json = parse_json(finished.out, "output");
  EXPECT_TRUE(json) << finished;
  return json.value_or(Json());
}

void expect_device_figures(const Json& device) {
  for (const char* key : {"host_to_device_gbps", "device_to_host_gbps", "latency_us"})
    EXPECT_GT(device.value(key, 0.0), 0) << key << " of " << device;
  std::vector<std::string> precisions;
  for (const auto& gemm : device["gemm"]) {
    EXPECT_GT(gemm["tflops"], 0) << gemm;
    precisions.push_back(gemm["precision"]);
  }
  EXPECT_THAT(precisions, ::testing::IsSupersetOf({"float64", "float32"}));
}

TEST(BenchLinks, MeasuresEveryDeviceAndPairAndKeepsTheFigures) {
  REMUDA_NEEDS_TWO_CORES();
  const ScratchFolder folder;
  const Json json =
      json_of(run(bench_command({"--devices", "cpu:0,cpu:1", "--seconds", "0.1", "--json"}), kept_in(folder)));
  ASSERT_EQ(json["measured_devices"].size(), 2u);
  for (const auto& device : json["measured_devices"]) expect_device_figures(device);
  ASSERT_EQ(json["measured_links"].size(), 1u);
  EXPECT_GT(json["measured_links"][0]["gbps"], 0);
  EXPECT_GT(json["measured_links"][0]["latency_us"], 0);
  EXPECT_EQ(json["limits"].size(), 3u);
  EXPECT_THAT(json["unmeasured"], IsEmpty());
  EXPECT_EQ(json["file"], folder.path("state/remuda/measured.json"));

  const Json list = json_of(run({REMUDA_PROGRAM, "list", "--json", "--cpu-devices", "2"}, kept_in(folder)));
  EXPECT_EQ(list["measured_devices"], json["measured_devices"]);
  EXPECT_EQ(list["measured_links"], json["measured_links"]);
  const Json whole = json_of(run({REMUDA_PROGRAM, "list", "--json", "--cpu-devices", "1"}, kept_in(folder)));
  EXPECT_FALSE(whole.contains("measured_devices")) << "a cpu:0 of other cores";
}

TEST(BenchLinks, OfOneDevicePrintsItsTable) {
  const ScratchFolder folder;
  const Finished finished =
      run(bench_command({"--cpu-devices", "1", "--devices", "cpu:0", "--seconds", "0.1"}), kept_in(folder));
  ASSERT_TRUE(finished.exit.ok()) << finished;
  EXPECT_THAT(finished.out, HasSubstr("\ncpu:0 "));
  EXPECT_THAT(finished.out, HasSubstr(" GB/s memory copy "));
  EXPECT_THAT(finished.out, HasSubstr("Kept in " + folder.path("state/remuda/measured.json")));
}

TEST(BenchLinks, StoppedKeepsNothing) {
  const ScratchFolder folder;
  RunningProgram program(bench_command({"--seconds", "3600"}), kept_in(folder));
  ASSERT_TRUE(eventually([&] { return program.err().find("measuring ") != std::string::npos; }, 60)) << program.err();
  const auto ranks = children_of(program.pid());
  program.signal(SIGINT);
  const Finished finished = program.finish(15);
  EXPECT_EQ(finished.exit.status, 128 + SIGINT) << finished;
  EXPECT_THAT(finished.err, HasSubstr("nothing was kept"));
  EXPECT_EQ(finished.out, "");
  EXPECT_TRUE(all_gone(ranks));
  EXPECT_FALSE(folder.has("state/remuda/measured.json"));
}

TEST(BenchLinks, GarbageInThePlaceOfItsFileIsSaidBeforeAnythingStarts) {
  const ScratchFolder folder;
  ASSERT_TRUE(run({"mkdir", "-p", folder.path("state/remuda")}).exit.ok());
  folder.write("state/remuda/measured.json", "nonsense");
  const Finished finished = run(bench_command({"--seconds", "3600"}), kept_in(folder));
  EXPECT_EQ(finished.exit.status, 2) << finished;
  EXPECT_THAT(finished.err, HasSubstr("measured.json does not hold what"));
  EXPECT_EQ(folder.read("state/remuda/measured.json"), "nonsense");
}

TEST(BenchLinks, ARecordedMachineCannotBeMeasured) {
  const ScratchFolder folder;
  const Finished finished = run(bench_command({"--machine", "any.json"}), kept_in(folder));
  EXPECT_EQ(finished.exit.status, 2) << finished;
  EXPECT_THAT(finished.err, HasSubstr("measuring needs the machine itself"));
}

TEST(BenchLinks, DevicesThatAreNotThereAreRefused) {
  const ScratchFolder folder;
  const Finished finished = run(bench_command({"--devices", "gpu:999"}), kept_in(folder));
  EXPECT_EQ(finished.exit.status, 2) << finished;
  EXPECT_THAT(finished.err, HasSubstr("gpu:999"));
}

TEST(Bench, WithoutANameListsWhatThereIs) {
  const Finished finished = run({REMUDA_PROGRAM, "bench"});
  EXPECT_TRUE(finished.exit.ok()) << finished;
  EXPECT_THAT(finished.out, HasSubstr("  links  "));
  const Finished wrong = run({REMUDA_PROGRAM, "bench", "lnks"});
  EXPECT_EQ(wrong.exit.status, 2) << wrong;
}

}  // namespace
}  // namespace remuda::tests
