#include <gtest/gtest.h>

#include "job/testing/job.h"

namespace remuda::job {
namespace {

const std::string kTwoDevices =
    "[[device]]\n"
    "use = \"cpu:0\"\n"
    "[[device]]\n"
    "use = \"cpu:1\"\n";

TEST(Rules, AJobHasOneModel) {
  EXPECT_EQ(error_of("[train]\nglobal_batch = 1\n"),
            "job.toml: a job needs model.name (mlp, resnet or gpt) or model.path");
  EXPECT_EQ(error_of("[model]\nname = \"mlp\"\npath = \"m.pt\"\n"),
            "job.toml:3: give model.name or model.path, not both");
}

TEST(Rules, KeysOfAnotherModelAreRefused) {
  EXPECT_EQ(error_of("[model]\nname = \"resnet\"\nheads = 2\n"),
            "job.toml:3: model.heads is for model.name \"gpt\", but this job has model.name = \"resnet\"");
  EXPECT_EQ(error_of("[model]\nname = \"mlp\"\nwidth = 2\n"),
            "job.toml:3: model.width is for model.name \"resnet\" or \"gpt\", but this job has model.name = \"mlp\"");
  EXPECT_EQ(error_of("[model]\npath = \"m.pt\"\nhidden = [2]\n"),
            "job.toml:3: model.hidden is for model.name \"mlp\", but this job has model.path");
  EXPECT_EQ(error_of("[model]\nname = \"mlp\"\nloss = \"mse\"\n"),
            "job.toml:3: model.loss is only for jobs with model.path");
}

TEST(Rules, KeysOfAnotherDataFormatAreRefused) {
  EXPECT_EQ(error_of(kMlpJob, {"data.context=3"}),
            "--set data.context: data.context is for data.format \"tokens\", but this job has data.format = \"idx\"");
  EXPECT_EQ(error_of("[model]\nname = \"mlp\"\n[data]\ntrain = \"t\"\n"),
            "job.toml:4: data.train.tokens is for data.format \"tokens\", but this job has data.format = \"idx\"");
}

TEST(Rules, AtLeastOneDeviceTakesSamples) {
  const std::string state = "[[device]]\nuse = \"cpu:2\"\nrole = \"state\"\n";
  EXPECT_EQ(error_of(kMlpJob + kTwoDevices + state), "no error");
  EXPECT_EQ(parse(kMlpJob + kTwoDevices + state)->job.devices.at(2).role, balance::Role::state);
  const std::string nobody =
      "no device of this job takes samples: at least one needs role = \"compute\", which it has unless given";
  EXPECT_EQ(error_of(kMlpJob + state), "job.toml:8: " + nobody);
  EXPECT_EQ(error_of(kMlpJob + "[[device]]\nuse = \"cpu:0\"\nrole = \"auto\"\n"), "no error");
  EXPECT_EQ(error_of(kMlpJob, {}, {{.use = "cpu:2", .role = balance::Role::preprocess}}), "--devices: " + nobody);
  EXPECT_EQ(error_of(kMlpJob + "[[device]]\nuse = \"cpu:0\"\nrole = \"server\"\n"),
            "job.toml:9: device.role is 'server'; it must be one of compute, preprocess, state, auto");
}

TEST(Rules, OnlyDevicesThatTakeSamplesNeedOne) {
  const std::string others =
      "[[device]]\nuse = \"cpu:2\"\nrole = \"state\"\n[[device]]\nuse = \"cpu:3\"\nrole = \"preprocess\"\n";
  EXPECT_EQ(error_of(kMlpJob + kTwoDevices + others, {"train.global_batch=2"}), "no error");
  EXPECT_EQ(error_of(kMlpJob + kTwoDevices + others, {"train.global_batch=1"}),
            "--set train.global_batch: train.global_batch is 1, but each of the 2 devices needs at least one sample");
}

TEST(Rules, RolesDoNotGoTogetherWithWhatGivesDevicesTheirParts) {
  const auto error_with = [](const std::string& role, std::vector<std::string> settings) {
    return error_of(kMlpJob + kTwoDevices + "role = \"" + role + "\"\n", std::move(settings));
  };
  const auto refused = [](const std::string& role) {
    return "job.toml:11: role = \"" + role + "\" does not go together with ";
  };
  for (const std::string role : {"state", "preprocess"}) {
    EXPECT_EQ(error_with(role, {"balance.policy=fixed", "balance.shares=[1, 1]"}),
              refused(role) + "balance.policy = \"fixed\", which gives each device samples");
    EXPECT_EQ(error_with(role, {"balance.state_shares=[1, 1]"}),
              refused(role) + "balance.state_shares, which gives each device a part of the state");
    EXPECT_EQ(error_with(role, {"balance.policy=even"}), "no error");
  }
  EXPECT_EQ(error_with("state", {"memory.optimizer=host"}),
            refused("state") + "memory.optimizer = \"host\", which keeps each device's state in memory of its host");
  for (const char* compression : {"train.compression=1-bit", "train.compression=auto"})
    EXPECT_EQ(error_with("state", {"train.optimizer=adamw", compression}),
              refused("state") +
                  "train.compression, which keeps all of the optimizer's state on each device: leave that "
                  "key out, or give the device the role compute");
  EXPECT_EQ(error_with("preprocess", {"memory.optimizer=host"}), "no error");
}

TEST(Rules, MomentumIsForSgd) {
  EXPECT_EQ(error_of(kMlpJob + "momentum = 0.5\noptimizer = \"adamw\"\n"),
            "job.toml:7: train.momentum is for train.optimizer \"sgd\", but this job has train.optimizer = \"adamw\"");
}

TEST(Rules, OneBitIsForAdamWWithoutWhatItCannotKnow) {
  const std::vector<std::string> compressed{"train.optimizer=adamw", "train.compression=1-bit"};
  const auto error_with = [&](const std::string& setting) {
    std::vector<std::string> settings = compressed;
    settings.push_back(setting);
    return error_of(kMlpJob, settings);
  };
  EXPECT_EQ(error_with("train.compression_after=3"), "no error");
  EXPECT_EQ(error_with("train.clip_norm=1"),
            "--set train.compression: train.compression = \"1-bit\" does not go together with train.clip_norm: nobody "
            "knows the norm "
            "of the gradient that hosts do not send");
  EXPECT_EQ(error_with("train.average=0.9"),
            "--set train.compression: train.compression = \"1-bit\" does not go together with train.average");
  EXPECT_EQ(error_with("memory.optimizer=host"),
            "--set train.compression: train.compression = \"1-bit\" does not go together with memory.optimizer = "
            "\"host\": its state "
            "is there anyway");
  EXPECT_EQ(
      error_with("elastic.ranks_lost=1"),
      "--set train.compression: train.compression = \"1-bit\" does not go together with elastic.ranks_lost: a lost "
      "host would take with it what it owes");
  EXPECT_EQ(
      error_of(kMlpJob, {"train.compression=1-bit"}),
      "--set train.compression: train.compression = \"1-bit\" does not go together with train.optimizer = \"sgd\": "
      "it is a stage of Adam; \"powersgd\" goes together with both");
  EXPECT_EQ(
      error_of(kMlpJob, {"train.optimizer=adamw", "train.compression_after=3"}),
      "--set train.compression_after: train.compression_after is for train.compression \"1-bit\" or \"powersgd\" or "
      "\"auto\", but this job has train.compression = \"none\"");
}

TEST(Rules, PowerSgdGoesTogetherWithAllButWhatLosesAHost) {
  const auto error_with = [](std::vector<std::string> settings) {
    settings.insert(settings.begin(), "train.compression=powersgd");
    return error_of(kMlpJob, settings);
  };
  EXPECT_EQ(error_with({"train.compression_rank=8", "train.compression_after=3", "train.clip_norm=1",
                        "train.average=0.9", "memory.optimizer=host"}),
            "no error");
  EXPECT_EQ(error_with({"train.optimizer=adamw"}), "no error");
  EXPECT_EQ(error_with({"elastic.ranks_lost=1"}),
            "--set train.compression: train.compression = \"powersgd\" does not go together with elastic.ranks_lost: a "
            "lost host would take with it what it owes");
  EXPECT_EQ(
      error_of(kMlpJob, {"train.optimizer=adamw", "train.compression=1-bit", "train.compression_rank=3"}),
      "--set train.compression_rank: train.compression_rank is for train.compression \"powersgd\" or \"auto\", but "
      "this job has train.compression = \"1-bit\"");
}

/// It chooses among what the job goes together with.
TEST(Rules, AutomaticCompressionGoesTogetherWithAll) {
  EXPECT_EQ(error_of(kMlpJob, {"train.compression=auto", "train.clip_norm=1", "train.average=0.9",
                               "memory.optimizer=host", "elastic.ranks_lost=1"}),
            "no error");
}

TEST(Rules, ADoorSaysWhatItDoesNotGoTogetherWith) {
  const auto error_with = [](std::vector<std::string> settings) {
    settings.insert(settings.begin(), "elastic.join=:29600");
    return error_of(kGptJob, settings);
  };
  const std::string refusal = "--set elastic.join: elastic.join does not go together with ";
  EXPECT_EQ(error_with({}), "no error");
  EXPECT_EQ(error_with({"elastic.ranks_lost=1", "elastic.join=node1:29600"}), "no error");
  EXPECT_EQ(error_with({"balance.policy=fixed", "balance.shares=[1]"}),
            refusal + "balance.policy = \"fixed\", which has no weight for one more device");
  EXPECT_EQ(error_with({"balance.state_shares=[1]"}),
            refusal + "balance.state_shares, which have no weight for one more device");
  EXPECT_EQ(error_with({"memory.parameters=sharded"}),
            refusal + "memory.parameters = \"sharded\": what a device holds of the blocks cannot change in a run");
  EXPECT_EQ(error_of(kMlpJob, {"train.optimizer=adamw", "train.compression=1-bit", "elastic.join=:29600"}),
            "--set train.compression: train.compression = \"1-bit\" does not go together with elastic.join: what the "
            "others owe, a device that joins does not");
  const auto with_role =
      parse(kMlpJob, {"elastic.join=:29600"}, {{"cpu:0"}, {"cpu:1", 1, false, balance::Role::state}});
  ASSERT_FALSE(with_role);
  EXPECT_EQ(with_role.error().message,
            refusal + "the role of a device other than to compute: what it gains is known of the devices at the start");
}

TEST(Rules, ADoorIsAtOneAddress) {
  EXPECT_EQ(error_of(kMlpJob, {"elastic.join=node1"}),
            "--set elastic.join: elastic.join is \"node1\"; it must be :PORT or HOST:PORT");
  EXPECT_EQ(error_of(kMlpJob, {"elastic.join=0.0.0.0:29600"}),
            "--set elastic.join: elastic.join must name the one address of this host at which the others reach it");
}

TEST(Rules, ShardedParametersSayWhatTheyDoNotGoTogetherWith) {
  const auto error_with = [](std::vector<std::string> settings) {
    settings.insert(settings.begin(), "memory.parameters=sharded");
    return error_of(kGptJob, settings);
  };
  const std::string refused = "--set memory.parameters: memory.parameters = \"sharded\" does not go together with ";
  EXPECT_EQ(error_with({}), "no error");
  EXPECT_EQ(error_with({"memory.optimizer=host", "memory.accumulate=2", "memory.recompute=blocks", "train.clip_norm=1",
                        "train.average=0.9", "train.precision=auto"}),
            "no error");
  EXPECT_EQ(error_with({"memory.recompute=auto"}),
            refused + "memory.recompute = \"auto\", which tries first what fits without; say \"blocks\" or \"none\"");
  for (const std::string recompute : {"none", "blocks"})
    EXPECT_EQ(error_with({"train.precision=bf16", "memory.recompute=" + recompute,
                          recompute == "none" ? "memory.accumulate=1" : "memory.recompute_blocks=1"}),
              refused +
                  "a train.precision of 16 bits unless memory.recompute is \"blocks\", for all of them: the blocks' "
                  "parameters in 16 bits would stay for the backward pass");
  EXPECT_EQ(error_with({"train.gradients=bf16"}),
            refused + "train.gradients = \"bf16\": a block's gradients are added up as they are");
  EXPECT_EQ(error_with({"train.optimizer=adamw", "train.compression=1-bit"}),
            refused + "train.compression, which needs all parameters on each device: leave one of the two out");
  EXPECT_EQ(error_with({"output.sample=9", "model.vocabulary=122"}),
            refused + "output.sample, which one device generates with the whole model");
  EXPECT_EQ(
      error_of(kMlpJob, {"memory.parameters=sharded", "model.path=m.pt", "output.weights=w.pt"}),
      refused + "output.weights as TorchScript, which is written from the whole model; name a *.safetensors file");
}

TEST(Rules, AWrongKindIsToldBeforeWhatBelongsToIt) {
  EXPECT_EQ(error_of("[model]\nname = \"resnett\"\nnorm = \"group\"\n"),
            "job.toml:2: model.name is 'resnett'; it must be one of mlp, resnet, gpt");
}

TEST(Rules, OnlyAModelFromTorchScriptCanBeWrittenAsSuch) {
  EXPECT_EQ(error_of(kMlpJob, {"output.weights=w.pt"}),
            "--set output.weights: output.weights must end in .safetensors, as only a model given by model.path can be "
            "written as TorchScript");
  EXPECT_EQ(error_of(kMlpJob, {"output.weights=w.safetensors"}), "no error");
  EXPECT_EQ(error_of(kMlpJob, {"output.weights=w.pt", "model.path=m.pt"}), "no error");
}

TEST(Rules, ASampleIsText) {
  EXPECT_EQ(error_of(kMlpJob, {"output.sample=9"}),
            "--set output.sample: output.sample is for model.name \"gpt\", but this job has model.name = \"mlp\"");
  EXPECT_EQ(
      error_of(kGptJob, {"output.sample=9", "model.vocabulary=257"}),
      "--set output.sample: output.sample is for models of bytes, but model.vocabulary is 257; it must be at most 256");
  EXPECT_EQ(error_of(kGptJob, {"output.sample=9", "model.vocabulary=122", "output.prompt=xyz"}),
            "--set output.prompt: output.prompt has byte 122; model.vocabulary is 122");
  EXPECT_EQ(error_of(kGptJob, {"output.sample=9", "model.vocabulary=10"}),
            "job.toml: output.prompt has byte 10; model.vocabulary is 10")
      << "a new line, where no prompt is given";
  EXPECT_EQ(error_of(kGptJob, {"model.vocabulary=257", "output.prompt=xyz"}), "no error") << "no sample is asked for";
}

TEST(Rules, GptNeedsTokensAndAVocabulary) {
  EXPECT_EQ(error_of(kMlpJob, {"model.name=gpt", "model.vocabulary=2"}),
            "job.toml: model gpt needs data.format = \"tokens\"");
  EXPECT_EQ(error_of(kGptJob, {"model={name = \"gpt\"}"}),
            "job.toml: model.vocabulary is missing; it must be an integer from 1 to 2147483647 (number of different "
            "tokens)");
}

TEST(Rules, ImageModelsNeedIdx) {
  for (const std::string name : {"mlp", "resnet"})
    EXPECT_EQ(error_of(kGptJob, {"model.name=" + name}),
              "job.toml:5: model " + name + " needs data.format = \"images\", \"idx\" or \"cifar\"");
}

TEST(Rules, HeadsDivideTheWidth) {
  EXPECT_EQ(error_of(kGptJob, {"model.width=10"}),
            "--set model.width: model.width must be a multiple of model.heads, but they are 10 and 4");
  EXPECT_EQ(error_of(kGptJob, {"model.heads=3"}),
            "job.toml: model.width must be a multiple of model.heads, but they are 16 and 3");
}

TEST(Rules, ADeviceIsNamedOnceUnlessRanksShareIt) {
  const std::string shared = "[[device]]\nuse = \"cpu:0\"\nshared = true\n",
                    more =
                        "; for several ranks on it, write "
                        "shared = true in each [[device]] that names it";
  EXPECT_EQ(error_of(kMlpJob + kTwoDevices + "[[device]]\nuse = \"cpu:0\"\n"),
            "job.toml:12: device cpu:0 is named twice" + more);
  EXPECT_EQ(error_of(kMlpJob + kTwoDevices + shared), "job.toml:12: device cpu:0 is named twice" + more);
  EXPECT_EQ(error_of(kMlpJob + shared + kTwoDevices), "job.toml:11: device cpu:0 is named twice" + more);
  EXPECT_EQ(error_of(kMlpJob + shared + "slowdown = 2\n" + shared + shared), "no error");
  EXPECT_EQ(error_of(kMlpJob, {}, {{"cpu:1"}, {"cpu:1", 2, true}}), "--devices: device cpu:1 is named twice" + more);
  EXPECT_EQ(error_of(kMlpJob, {}, {{"cpu:1", 1, true}, {"cpu:1", 2, true}}), "no error");
}

TEST(Rules, TheBatchHasASampleForEachDevice) {
  EXPECT_EQ(error_of(kMlpJob + kTwoDevices, {"train.global_batch=1"}),
            "--set train.global_batch: train.global_batch is 1, but each of the 2 devices needs at least one sample");
  EXPECT_EQ(error_of(kMlpJob + kTwoDevices, {"train.global_batch=2"}), "no error");
  EXPECT_EQ(error_of(kMlpJob, {"train.global_batch=1"}), "no error");
}

TEST(Rules, MicroBatchesDivideTheBatch) {
  const std::string in_units = kMlpJob + "micro_batch = 8\n[balance]\nunit = \"microbatches\"\n";
  EXPECT_EQ(error_of(in_units + kTwoDevices), "no error");
  EXPECT_EQ(error_of(in_units, {"train.global_batch=20"}),
            "job.toml:7: train.global_batch must be a multiple of train.micro_batch, but they are 20 and 8");
  EXPECT_EQ(
      error_of(in_units + kTwoDevices, {"train.micro_batch=32"}),
      "job.toml:6: train.global_batch is 32, but each of the 2 devices needs at least one micro-batch of 32 samples");
  EXPECT_EQ(error_of(kMlpJob, {"train.micro_batch=8"}),
            "--set train.micro_batch: train.micro_batch is for balance.unit \"microbatches\", but this job has "
            "balance.unit = \"samples\"");
  EXPECT_EQ(error_of(kMlpJob, {"balance.unit=microbatches"}),
            "job.toml: train.micro_batch is missing; it must be an integer from 1 to 16777216 (samples that go through "
            "the model at a time, on every device)");
  EXPECT_EQ(
      error_of(in_units, {"memory.accumulate=2"}),
      "--set memory.accumulate: memory.accumulate is for balance.unit \"samples\", but this job has balance.unit = "
      "\"microbatches\"");
  EXPECT_EQ(error_of(in_units, {"balance.unit=samples"}), "no error")
      << "the file's micro-batch was for the other unit";
}

TEST(Rules, BatchNormOfAllDevicesIsForTheBuiltInOne) {
  const std::string resnet =
      "[model]\nname = \"resnet\"\n[data]\ntrain = { images = \"i\", labels = \"l\" }\n"
      "[train]\nglobal_batch = 32\n";
  const std::string refused =
      "--set train.batch_norm: train.batch_norm = \"synchronized\" is for model.norm = \"batch\" of the built-in "
      "resnet; "
      "that of a TorchScript model stays each device's own, of equal batches with balance.unit = \"microbatches\"";
  const std::string setting = "train.batch_norm=synchronized";
  EXPECT_EQ(error_of(resnet, {setting, "model.norm=batch"}), "no error");
  EXPECT_EQ(error_of(resnet, {setting}), refused) << "group norm";
  EXPECT_EQ(error_of(kMlpJob, {setting}), refused);
  EXPECT_EQ(error_of(resnet, {setting, "model.path=m.pt"}), refused);
}

TEST(Rules, WhatIsTheFastestAtTheTimeIsNotDeterministic) {
  EXPECT_EQ(error_of(kMlpJob, {"train.deterministic=on"}), "no error");
  EXPECT_EQ(
      error_of(kMlpJob, {"train.deterministic=on", "train.autotune=on"}),
      "--set train.deterministic: train.deterministic = \"on\" does not go together with train.autotune = \"on\", "
      "which takes the algorithm that is the fastest at the time");
}

TEST(Rules, SharesAreForFixedOnly) {
  EXPECT_EQ(error_of(kMlpJob + "[balance]\nshares = [1, 1]\n"),
            "job.toml:8: balance.shares is for balance.policy \"fixed\", but this job has balance.policy = \"auto\"");
  EXPECT_EQ(error_of(kMlpJob + "[balance]\npolicy = \"fixed\"\n"),
            "job.toml: balance.shares is missing; it must be a list of numbers above 0 (one weight per device)");
}

TEST(Rules, ThereIsOneSharePerDevice) {
  const std::string fixed = kMlpJob + "[balance]\npolicy = \"fixed\"\nshares = [3, 1]\n";
  EXPECT_EQ(error_of(fixed + kTwoDevices), "no error");
  EXPECT_EQ(error_of(fixed), "no error");
  EXPECT_EQ(error_of(fixed, {}, {{"cpu:0"}}),
            "job.toml:9: balance.shares must have one weight per device, but has 2 for 1 device");
  EXPECT_EQ(error_of(fixed + kTwoDevices, {"balance.shares=[1]"}),
            "--set balance.shares: balance.shares must have one weight per device, but has 1 for 2 devices");
  EXPECT_TRUE(parse_job(fixed + kTwoDevices, "job.toml", {.settings = {"balance.shares=[1]"}, .devices_follow = true}));
  EXPECT_EQ(error_of(fixed, {"balance.shares=[]"}),
            "--set balance.shares: balance.shares must have a weight for each device");
}

}  // namespace
}  // namespace remuda::job
