#include "cli/train/train_request.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

using testing::ElementsAre;

/// The flags of a line, as `remuda train` declares them.
struct Line {
  explicit Line(std::vector<std::string> words) {
    add_request_options(app, flags.job.request);
    add_job_options(app, flags.job);
    app.add_option("--devices", flags.devices)->delimiter(',');
    app.add_option("--set", flags.settings)->allow_extra_args(false);
    flags.job.app = &app;
    flags.file = "job.toml";
    std::ranges::reverse(words);
    app.parse(words);
  }
  CLI::App app{"train"};
  TrainFlags flags;
};

std::string asks(std::vector<std::string> words, const job::PlacementSpec& file = {},
                 const std::optional<CallersLease>& lease = {}) {
  const Line line(std::move(words));
  const auto asks = asks_for_devices(line.flags, file, lease);
  return asks ? (*asks ? "yes" : "no") : asks.error().message;
}

const job::PlacementSpec kFour{.gpus = 4, .mem = "20GiB", .any_model = true};
const CallersLease kHeld{.job = 3, .devices = {"gpu:0", "gpu:2"}, .cpus = {{}, {}}};

TEST(TrainRequest, IsAnyFlagOrTheFilesTable) {
  EXPECT_EQ(asks({}), "no");
  EXPECT_EQ(asks({"-n", "1"}), "yes");
  EXPECT_EQ(asks({"--cpu"}), "yes");
  EXPECT_EQ(asks({}, kFour), "yes");
  EXPECT_EQ(asks({"--devices", "gpu:0"}, kFour), "no") << "the command line names its own";
  EXPECT_EQ(asks({"--time-limit", "1h"}, kFour), "yes");
}

TEST(TrainRequest, IsNotMadeWithinALease) {
  EXPECT_EQ(asks({}, kFour, kHeld), "no") << "that lease answers it";
  for (const char* flag : {"--cpu", "--preemptible"})
    EXPECT_EQ(asks({flag}, {}, kHeld), std::string(flag) +
                                           " asks for devices, but this runs within job 3, which holds gpu:0, gpu:2: "
                                           "leave it out, and the run uses those");
}

TEST(TrainRequest, RefusesWhatDoesNotGoTogether) {
  EXPECT_EQ(asks({"--time-limit", "1h"}),
            "--time-limit=1h is for a run that asks for its devices: add -n, or [placement] to the job");
  EXPECT_EQ(
      asks({"--devices", "gpu:0", "-n", "2"}),
      "--devices takes devices without a lease, and --gpus=2 asks for a lease: give one of them; --device says which "
      "ones a lease may have");
}

TEST(TrainRequest, OfTheLineWinsOverTheFiles) {
  const Line line({"-n", "2", "--same-model", "--link", "any"});
  const RequestFlags both =
      merged({.gpus = 4, .mem = "20GiB", .link = "nvlink", .any_model = true}, line.flags.job.request);
  EXPECT_THAT(words_of(both), ElementsAre("--gpus=2", "--mem=20GiB", "--link=any", "--same-model"));
}

TEST(TrainRequest, OfTheFileIsNamedAsThereWhereItIsWrong) {
  const Line line({});
  const auto error = [&](const job::PlacementSpec& file) { return train_request(line.flags, file).error().message; };
  EXPECT_EQ(error({.mem = "20"}), "job.toml: placement.mem: '20' has no unit; write 20GiB or 20MiB");
  EXPECT_EQ(error({.share = "2"}), "job.toml: placement.share: '2' is no part of a device; write 30% or 0.3");
  EXPECT_EQ(train_request(line.flags, kFour)->count, 4);
}

TEST(TrainRequest, IsARunWhoseCommandIsTheTraining) {
  Line line({"-n", "2", "--time-limit", "1h", "-d", "--set", "model.hidden=[8, 9]", "--set", "train.epochs=1"});
  line.flags.compare = {"balance.policy=even"};
  line.flags.json = "report file.json";
  line.flags.job.machine.file = "lab.json";
  line.flags.job.quiet = true;
  EXPECT_THAT(run_line(line.flags, {.any_model = true}, "/opt/remuda"),
              ElementsAre("remuda", "run", "--gpus=2", "--any-model", "--time-limit=1h", "--detach", "--quiet",
                          "--machine=lab.json", "--", "/opt/remuda", "train", "job.toml", "--set=model.hidden=[8, 9]",
                          "--set=train.epochs=1", "--compare=balance.policy=even", "--repeats=3",
                          "--json=report file.json", "--quiet", "--machine=lab.json"));
}

}  // namespace
}  // namespace remuda::cli
