#include <filesystem>
#include <gmock/gmock.h>

#include "job/testing/job.h"

namespace remuda::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// kMlpJob with one more line in [train], which is line 7.
std::string with_line(const std::string& line) { return kMlpJob + line + "\n"; }

TEST(ParseJob, TheSmallestJobHasTheDefaults) {
  const auto parsed = parse(kMlpJob);
  ASSERT_TRUE(parsed) << parsed.error().message;
  TrainJob job;
  job.model.name = "mlp";
  job.data.train = {"/jobs/i", "/jobs/l", ""};
  job.train.global_batch = 32;
  EXPECT_EQ(parsed->job, job);
}

TEST(ParseJob, RefusesPathsThatAreNoUtf8) {
  const std::string folder = "/jobs/d\xff/";
  const auto relative = parse_job(kMlpJob, folder + "job.toml", {});
  ASSERT_FALSE(relative) << "ranks would read another path";
  EXPECT_EQ(relative.error().kind, ErrorKind::usage);
  EXPECT_EQ(relative.error().message, folder + "job.toml:4: data.train.images is " + folder + "i; it must be UTF-8");
  const JobOverrides absolute{.settings = {"data.train.images=/i", "data.train.labels=/l"}};
  EXPECT_TRUE(parse_job(kMlpJob, folder + "job.toml", absolute)) << "where the file itself lies does not matter";
}

TEST(ParseJob, ReadsEveryKeyOfAnImageJob) {
  const auto parsed = parse(R"(
    [model]
    name = "resnet"
    width = 8
    depth = 2
    norm = "batch"
    [data]
    format = "idx"
    train = { images = "a", labels = "b" }
    test = { images = "c", labels = "/abs/d" }
    [train]
    epochs = 3
    max_steps = 10
    global_batch = 64
    optimizer = "sgd"
    learning_rate = 0.5
    momentum = 0
    weight_decay = 1e-4
    seed = 9223372036854775807
    check_every = 7
    bucket_mib = 0.5
    [balance]
    policy = "fixed"
    shares = [3, 1.5]
    [[device]]
    use = "cpu:0"
    [[device]]
    use = "cpu:1"
    slowdown = 2
  )");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const TrainJob job{.model = {.name = "resnet", .width = 8, .depth = 2, .norm = Norm::batch},
                     .data = {.format = DataFormat::idx,
                              .train = {"/jobs/a", "/jobs/b", ""},
                              .test = DataFiles{"/jobs/c", "/abs/d", ""}},
                     .train = {.epochs = 3,
                               .max_steps = 10,
                               .global_batch = 64,
                               .optimizer = Optimizer::sgd,
                               .learning_rate = 0.5,
                               .momentum = 0,
                               .weight_decay = 1e-4,
                               .seed = 9223372036854775807u,
                               .check_every = 7,
                               .bucket_mib = 0.5},
                     .balance = {balance::BalancePolicy::fixed, {3, 1.5}},
                     .devices = {{"cpu:0", 1}, {"cpu:1", 2}}};
  EXPECT_EQ(parsed->job, job);
}

TEST(ParseJob, ReadsEveryKeyOfATokenJob) {
  const auto parsed = parse(R"(
    model = { name = "gpt", width = 32, depth = 2, heads = 8, vocabulary = 50257 }
    data = { format = "tokens", train = { tokens = "a" }, test = "b", context = 64, padding = 0 }
    train = { global_batch = 8, optimizer = "adamw" }
  )");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const TrainJob job{.model = {.name = "gpt", .width = 32, .depth = 2, .heads = 8, .vocabulary = 50257},
                     .data = {.format = DataFormat::tokens,
                              .train = {"", "", "/jobs/a"},
                              .test = DataFiles{"", "", "/jobs/b"},
                              .context = 64,
                              .padding = 0},
                     .train = {.global_batch = 8, .optimizer = Optimizer::adamw}};
  EXPECT_EQ(parsed->job, job);
}

TEST(ParseJob, ReadsATorchScriptModelWithALoss) {
  const auto parsed = parse(R"(
    model = { path = "net.pt", loss = "mse" }
    data.train = { images = "i", labels = "l" }
    train.global_batch = 8
  )");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->job.model.path, "/jobs/net.pt");
  EXPECT_EQ(parsed->job.model.loss, Loss::mse);
}

TEST(ParseJob, AnMlpMayHaveNoHiddenLayer) {
  const auto parsed = parse(kMlpJob, {"model.hidden=[]"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(parsed->job.model.hidden.empty());
}

TEST(ParseJob, PathsAreRelativeToTheFoldersOfTheJobFile) {
  const auto up = parse_job(kMlpJob, "/jobs/here/../there/job.toml", {.settings = {"data.train.images=../x"}});
  ASSERT_TRUE(up);
  EXPECT_EQ(up->job.data.train.images, "/jobs/x");
  const auto bare = parse_job(kMlpJob, "job.toml");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->job.data.train.images, (std::filesystem::current_path() / "i").string());
}

TEST(ParseJob, NamesTheLineOfATomlError) {
  EXPECT_THAT(error_of("[model]\nname =\n"), StartsWith("job.toml:2: in the key-value pair"));
  EXPECT_THAT(error_of("[model\n"), StartsWith("job.toml:1: "));
  EXPECT_THAT(error_of(with_line("global_batch = 3")), StartsWith("job.toml:7: "));
  EXPECT_THAT(error_of(with_line("optimizer = sgd")), HasSubstr("text stands in quotes"));
  EXPECT_THAT(error_of("a = \"\xff\""), StartsWith("job.toml:1: "));
}

TEST(ParseJob, ATomlErrorIsOneLine) {
  for (const char* text : {"a\n", "= 1", "[[a]", "a = [1,\n2", "a = \"\n\"", "a = 1\na = 2", "a.b = 1\na = 2"})
    EXPECT_EQ(error_of(text).find('\n'), std::string::npos) << error_of(text);
}

TEST(ParseJob, UnknownKeysGetTheNearestKnownOne) {
  EXPECT_EQ(error_of(with_line("epoch = 3")), "job.toml:7: unknown key train.epoch; did you mean train.epochs?");
  EXPECT_EQ(error_of("[trian]\nepochs = 3\n"), "job.toml:1: unknown key trian; did you mean train?");
  EXPECT_EQ(error_of("epochs = 3\n"), "job.toml:1: unknown key epochs; did you mean train.epochs?");
  EXPECT_EQ(error_of(with_line("width = 3")), "job.toml:7: unknown key train.width; did you mean model.width?");
  EXPECT_EQ(error_of("[data.train]\nimage = 3\n"),
            "job.toml:2: unknown key data.train.image; did you mean data.train.images?");
  EXPECT_EQ(error_of(kMlpJob + "[[device]]\nuse = \"cpu:0\"\nslowdon = 2\n"),
            "job.toml:9: unknown key device.slowdon; did you mean device.slowdown?");
}

TEST(ParseJob, KeysLikeNothingKnownGetNoGuess) {
  EXPECT_EQ(error_of(with_line("xylophone = 3")), "job.toml:7: unknown key train.xylophone");
  EXPECT_EQ(error_of("[kubernetes]\n"), "job.toml:1: unknown key kubernetes");
}

TEST(ParseJob, AnErrorIsOneLineWhateverItQuotes) {
  EXPECT_EQ(error_of("\"a\\nb\" = 1\n"), "job.toml:1: unknown key a?b");
  EXPECT_EQ(error_of(kMlpJob, {"a\nb=1"}), "--set a?b: unknown key a?b");
}

struct WrongValue {
  const char* line;
  const char* message;
};

class WrongValues : public ::testing::TestWithParam<WrongValue> {};

TEST_P(WrongValues, SaysWhatWouldBeRight) {
  EXPECT_EQ(error_of(with_line(GetParam().line)), std::string("job.toml:7: ") + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    ParseJob, WrongValues,
    ::testing::Values(
        WrongValue{"epochs = \"3\"", "train.epochs is '3'; it must be an integer from 1 to 2147483647"},
        WrongValue{"epochs = 3.0", "train.epochs is 3.0; it must be an integer from 1 to 2147483647"},
        WrongValue{"epochs = 0", "train.epochs is 0; it must be an integer from 1 to 2147483647"},
        WrongValue{"epochs = 2147483648", "train.epochs is 2147483648; it must be an integer from 1 to 2147483647"},
        WrongValue{"epochs = true", "train.epochs is true; it must be an integer from 1 to 2147483647"},
        WrongValue{"epochs = { a = 1 }", "train.epochs is a table; it must be an integer from 1 to 2147483647"},
        WrongValue{"max_steps = -1", "train.max_steps is -1; it must be an integer from 0 to 2147483647"},
        WrongValue{"learning_rate = 0", "train.learning_rate is 0; it must be a number above 0"},
        WrongValue{"learning_rate = nan", "train.learning_rate is nan; it must be a number above 0"},
        WrongValue{"learning_rate = inf", "train.learning_rate is inf; it must be a number above 0"},
        WrongValue{"momentum = 1", "train.momentum is 1; it must be a number of at least 0 and below 1"},
        WrongValue{"weight_decay = -0.1", "train.weight_decay is -0.1; it must be a number of at least 0"},
        WrongValue{"seed = -1", "train.seed is -1; it must be an integer of at least 0"},
        WrongValue{"seed = 1979-05-27", "train.seed is 1979-05-27; it must be an integer of at least 0"},
        WrongValue{"check_every = 0", "train.check_every is 0; it must be an integer from 1 to 2147483647"},
        WrongValue{"bucket_mib = 0", "train.bucket_mib is 0; it must be a number above 0 and at most 4096"},
        WrongValue{"optimizer = \"adam\"", "train.optimizer is 'adam'; it must be one of sgd, adamw"},
        WrongValue{"optimizer = 1", "train.optimizer is 1; it must be one of sgd, adamw"},
        WrongValue{"balance = 1", "unknown key train.balance; did you mean balance?"}));

TEST(ParseJob, RefusesWrongLists) {
  EXPECT_EQ(error_of(kMlpJob, {"model.hidden=256"}),
            "--set model.hidden: model.hidden is 256; it must be a list of integers from 1 to 1048576");
  EXPECT_EQ(error_of(kMlpJob, {"model.hidden=[1, 0]"}),
            "--set model.hidden: model.hidden is [ 1, 0 ]; it must be a list of integers from 1 to 1048576");
  EXPECT_EQ(error_of(kMlpJob + "[balance]\npolicy = \"fixed\"\nshares = [1, 0]\n"),
            "job.toml:9: balance.shares is [ 1, 0 ]; it must be a list of numbers above 0");
}

TEST(ParseJob, CutsLongValuesInErrors) {
  EXPECT_EQ(error_of(with_line("optimizer = \"" + std::string(1000, 'x') + "\"")),
            "job.toml:7: train.optimizer is a long text; it must be one of sgd, adamw");
}

TEST(ParseJob, RefusesValuesInPlaceOfTables) {
  EXPECT_EQ(error_of("train = 3\n"), "job.toml:1: train is 3; it must be a table");
  EXPECT_EQ(error_of("[data]\ntrain = 3\n"), "job.toml:2: data.train is 3; it must be a table");
  EXPECT_EQ(error_of(kMlpJob + "[device]\nuse = \"cpu:0\"\n"), "job.toml:7: devices must be written as [[device]]");
  EXPECT_EQ(error_of("device = [\"cpu:0\"]\n" + kMlpJob),
            "job.toml:1: a device must be a table, written as [[device]]");
}

TEST(ParseJob, NamesWhatIsMissing) {
  EXPECT_EQ(error_of("[model]\nname = \"mlp\"\n[data]\ntrain = { images = \"i\", labels = \"l\" }\n"),
            "job.toml: train.global_batch is missing; it must be an integer from 1 to 16777216 (samples per step, over "
            "all devices)");
  EXPECT_EQ(error_of("[model]\nname = \"mlp\"\n[data]\ntrain = { images = \"i\" }\n"),
            "job.toml: data.train.labels is missing; it must be a path (its labels)");
  EXPECT_EQ(error_of("[model]\nname = \"mlp\"\n"),
            "job.toml: data.train.images is missing; it must be a path (IDX file to train on)");
  EXPECT_EQ(error_of(kMlpJob, {"data.test={images = \"i\"}"}),
            "job.toml: data.test.labels is missing; it must be a path (its labels)");
  EXPECT_EQ(error_of(kMlpJob + "[[device]]\nslowdown = 2\n"),
            "job.toml:7: device.use is missing; it must be a device id such as \"cpu:0\" (a device; all CPU devices "
            "without [[device]] and [placement])");
  EXPECT_EQ(error_of(kMlpJob, {"data.train.images="}),
            "--set data.train.images: data.train.images is ''; it must be a path");
}

TEST(ParseJob, NamesTheLineOfAWrongDevice) {
  EXPECT_EQ(error_of(kMlpJob + "[[device]]\nuse = \"cpu:0\"\nslowdown = 0.5\n"),
            "job.toml:9: device.slowdown is 0.5; it must be a number of at least 1");
  EXPECT_EQ(error_of(kMlpJob + "[[device]]\nuse = 0\n"),
            "job.toml:8: device.use is 0; it must be a device id such as \"cpu:0\"");
}

}  // namespace
}  // namespace remuda::job
