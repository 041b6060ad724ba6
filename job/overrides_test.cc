#include <gmock/gmock.h>

#include "job/testing/job.h"

namespace remuda::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// The job after settings; an empty one, and a failed test, on error.
TrainJob set(const std::string& text, std::vector<std::string> settings) {
  const auto parsed = parse(text, std::move(settings));
  if (parsed) return parsed->job;
  ADD_FAILURE() << parsed.error().message;
  return {};
}

TEST(Set, TakesTomlValues) {
  const TrainJob job =
      set(kMlpJob, {"train.epochs=3", "train.learning_rate=1e-3", "model.hidden=[8, 9]", "train.optimizer=\"adamw\""});
  EXPECT_EQ(job.train.epochs, 3);
  EXPECT_EQ(job.train.learning_rate, 1e-3);
  EXPECT_THAT(job.model.hidden, ElementsAre(8, 9));
  EXPECT_EQ(job.train.optimizer, Optimizer::adamw);
}

TEST(Set, TakesPlainText) {
  EXPECT_EQ(set(kMlpJob, {"balance.policy=even"}).balance.policy, balance::BalancePolicy::even);
  EXPECT_EQ(set(kMlpJob, {"data.train.images=/a b/c=d\"e\\f"}).data.train.images, "/a b/c=d\"e\\f");
  EXPECT_EQ(set(kMlpJob, {"data.train.images=/a\nlabels=1"}).data.train.images, "/a\nlabels=1");
}

TEST(Set, LeavesOutFilesToWriteWhereNoneMayBe) {
  const std::string text =
      kMlpJob + "[output]\nweights = \"w.safetensors\"\nprofile = 3\ntrace = \"t\"\ntensorboard = \"b\"\n";
  const auto parsed =
      parse_job(text, "/jobs/job.toml", {.settings = {"output.weights=v.safetensors"}, .writes_files = false});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(outputs_of(parsed->job).empty());
  EXPECT_EQ(parsed->job.output.tensorboard, "");
  EXPECT_EQ(parsed->job.output.profile, 3);
  EXPECT_EQ(set(text, {}).output.tensorboard, "/jobs/b");
  EXPECT_EQ(outputs_of(set(text, {})).size(), 2u);
}

TEST(Set, TheLastOneWins) { EXPECT_EQ(set(kMlpJob, {"train.epochs=3", "train.epochs=4"}).train.epochs, 4); }

TEST(Set, MakesTheTablesItNeeds) {
  const TrainJob job = set(kMlpJob, {"data.test.images=ti", "data.test.labels=tl"});
  EXPECT_EQ(job.data.test, (DataFiles{"/jobs/ti", "/jobs/tl", ""}));
}

TEST(Set, TakesWholeTablesAndTheShortForm) {
  EXPECT_EQ(set(kMlpJob, {"train={global_batch = 4}"}).train.global_batch, 4);
  EXPECT_EQ(set(kGptJob, {"data.train=other"}).data.train.tokens, "/jobs/other");
  EXPECT_EQ(set(kGptJob, {"data.train.tokens=other"}).data.train.tokens, "/jobs/other");
}

TEST(Set, RefusesWhatIsNoSetting) {
  EXPECT_EQ(error_of(kMlpJob, {"train.epochs"}), "--set train.epochs: it must be KEY=VALUE, as in train.epochs=3");
  EXPECT_EQ(error_of(kMlpJob, {"=3"}), "--set =3: it must be KEY=VALUE, as in train.epochs=3");
  EXPECT_EQ(error_of(kMlpJob, {""}), "--set : it must be KEY=VALUE, as in train.epochs=3");
}

TEST(Set, RefusesWhatIsNoUtf8) {
  for (const char* setting : {"output.weights=d\xff/w.safetensors", "output.weights=\"d\xff/w.safetensors\""})
    EXPECT_THAT(error_of(kMlpJob, {setting}), StartsWith("--set output.weights: it must be UTF-8, and is "));
  EXPECT_EQ(set(kMlpJob, {"output.weights=/d\xc3\xa9/w.safetensors"}).output.weights, "/d\xc3\xa9/w.safetensors");
}

TEST(Set, RefusesUnknownKeysWithTheNearestKnownOne) {
  EXPECT_EQ(error_of(kMlpJob, {"train.epoch=3"}),
            "--set train.epoch: unknown key train.epoch; did you mean train.epochs?");
  EXPECT_EQ(error_of(kMlpJob, {"epochs=3"}), "--set epochs: unknown key epochs; did you mean train.epochs?");
  EXPECT_EQ(error_of(kMlpJob, {"tran.epochs=3"}),
            "--set tran.epochs: unknown key tran.epochs; did you mean train.epochs?");
  EXPECT_EQ(error_of(kMlpJob, {"train.epochs.more=3"}), "--set train.epochs.more: unknown key train.epochs.more");
  EXPECT_THAT(error_of(kMlpJob, {"zebra=3"}), Not(HasSubstr("did you mean")));
}

TEST(Set, NamesItselfInErrors) {
  EXPECT_EQ(error_of(kMlpJob, {"train.epochs=many"}),
            "--set train.epochs: train.epochs is 'many'; it must be an integer from 1 to 2147483647");
  EXPECT_EQ(error_of(kMlpJob, {"train={epoch = 3}"}),
            "--set train: unknown key train.epoch; did you mean train.epochs?");
}

TEST(Set, SendsDevicesToTheirFlag) {
  EXPECT_EQ(error_of(kMlpJob, {"device.slowdown=2"}),
            "--set device.slowdown: devices are not set this way; use --devices");
}

TEST(Set, OfAPolicyDropsTheFilesShares) {
  const std::string fixed = kMlpJob + "[balance]\npolicy = \"fixed\"\nshares = [3, 1]\n";
  const TrainJob job = set(fixed, {"balance.policy=even"});
  EXPECT_EQ(job.balance.policy, balance::BalancePolicy::even);
  EXPECT_TRUE(job.balance.shares.empty());
  EXPECT_THAT(error_of(fixed, {"balance.policy=even", "balance.shares=[1]"}), HasSubstr("--set balance.shares"));
}

TEST(Set, OfAnOptimizerDropsTheFilesMomentum) {
  EXPECT_EQ(set(kMlpJob + "momentum = 0.5\n", {"train.optimizer=adamw"}).train.momentum, TrainSpec{}.momentum);
}

TEST(Set, OfAModelDropsTheFilesKeysForTheFormerOne) {
  const std::string resnet = "model = { name = \"resnet\", norm = \"batch\", width = 8 }\n" + kMlpJob.substr(21);
  EXPECT_EQ(set(resnet, {"model.name=mlp"}).model, ModelSpec{.name = "mlp"});
  EXPECT_EQ(set(resnet, {"model.path=/m.pt"}).model, ModelSpec{.path = "/m.pt"});
  const std::string script = "model = { path = \"m.pt\", loss = \"mse\" }\n" + kMlpJob.substr(21);
  EXPECT_EQ(set(script, {"model.name=resnet"}).model, ModelSpec{.name = "resnet"});
  EXPECT_EQ(error_of(resnet, {"model.name=mlp", "model.path=m.pt"}),
            "--set model.path: give model.name or model.path, not both");
}

TEST(Set, OfADataFormatDropsTheFilesOfTheFormerOne) {
  const TrainJob job = set(kGptJob + "[data.test]\ntokens = \"x\"\n",
                           {"data.format=idx", "model.name=mlp", "data.train.images=i", "data.train.labels=l"});
  EXPECT_EQ(job.data.train, (DataFiles{"/jobs/i", "/jobs/l", ""}));
  EXPECT_EQ(job.data.test, std::nullopt);
}

TEST(Devices, OfTheCommandLineReplaceTheFiles) {
  const auto parsed = parse(kMlpJob + "[[device]]\nuse = \"cpu:7\"\n", {}, {{"cpu:0", 1}, {"cpu:1", 2.5}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_THAT(parsed->job.devices, ElementsAre(DeviceSpec{"cpu:0", 1}, DeviceSpec{"cpu:1", 2.5}));
}

TEST(Devices, OfTheCommandLineComeInPlaceOfThoseAskedFor) {
  const std::string asking = kMlpJob + "[placement]\ngpus = 2\ndevice = [\"gpu:0\", \"gpu:1\"]\nany_model = true\n";
  const TrainJob job = set(asking, {"placement.mem=20GiB"});
  EXPECT_EQ(job.placement, (PlacementSpec{.gpus = 2, .mem = "20GiB", .device = {"gpu:0", "gpu:1"}, .any_model = true}));
  const auto chosen = parse(asking, {}, {{"cpu:0", 1}});
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(chosen->job.placement, PlacementSpec{});
  EXPECT_TRUE(parse_job(chosen->text, "worker")) << "it does not ask any more";
}

TEST(Devices, OfTheFileAreNamedOrAskedFor) {
  EXPECT_EQ(error_of(kMlpJob + "[placement]\ncpu = true\n[[device]]\nuse = \"cpu:0\"\n"),
            "job.toml:7: [placement] asks for devices, and [[device]] names some: give one of them");
}

TEST(Devices, OfTheCommandLineAreCheckedToo) {
  EXPECT_EQ(error_of(kMlpJob, {}, {{"cpu:0", 0.5}}),
            "--devices: device.slowdown is 0.5; it must be a number of at least 1");
  EXPECT_EQ(error_of(kMlpJob, {}, {{"", 1}}), "--devices: device.use is ''; it must be a device id such as \"cpu:0\"");
}

}  // namespace
}  // namespace remuda::job
