#include "cli/jobs/request_flags.h"

#include <algorithm>
#include <gmock/gmock.h>

namespace remuda::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<place::Request> request_of(std::vector<std::string> line) {
  CLI::App app("A sample");
  RequestFlags flags;
  add_request_options(app, flags);
  std::ranges::reverse(line);
  app.parse(line);
  return make_request(flags);
}

TEST(RequestFlags, WithoutAnyOneDeviceWillDo) {
  const place::Request request = request_of({}).value();
  EXPECT_EQ(request.count, 1);
  EXPECT_EQ(request.memory_bytes, 0);
  EXPECT_EQ(request.share, 1);
  EXPECT_EQ(request.link, place::LinkNeed::any);
  EXPECT_FALSE(request.any_model || request.cpu || request.capability || request.where);
}

TEST(RequestFlags, AsWordsAreReadAsTheSame) {
  const std::vector<std::string> all{
      "--gpus=2",   "--mem=24GiB", "--model=A100*",     "--cap=bf16", "--link=any", "--any-model",     "--device=0",
      "--device=1", "--share=30%", "--where=index > 0", "--cpu",      "--cpus=4",   "--host-mem=16GiB"};
  for (const std::vector<std::string>& words : {all, {"--same-model"}, {}}) {
    CLI::App app("A sample");
    RequestFlags flags;
    add_request_options(app, flags);
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    EXPECT_EQ(words_of(flags), words);
  }
}

TEST(RequestFlags, AllAreRead) {
  const place::Request request =
      request_of({"-n",        "2",      "--mem",  "24GiB",       "--model",    "A100*", "--cap",
                  "BF16",      "--link", "nvlink", "--any-model", "--share",    "30%",   "--where",
                  "index > 0", "--cpu",  "--cpus", "4",           "--host-mem", "16GiB"})
          .value();
  EXPECT_EQ(request.count, 2);
  EXPECT_EQ(request.memory_bytes, int64_t{24} << 30);
  EXPECT_EQ(request.model, "A100*");
  EXPECT_EQ(request.capability.value().text(), "bf16");
  EXPECT_EQ(request.link, place::LinkNeed::nvlink);
  EXPECT_DOUBLE_EQ(request.share, 0.3);
  EXPECT_EQ(request.where.value().text(), "index > 0");
  EXPECT_TRUE(request.any_model);
  EXPECT_TRUE(request.cpu);
  EXPECT_EQ(request.cores, 4);
  EXPECT_EQ(request.host_memory_bytes, int64_t{16} << 30);
}

TEST(RequestFlags, NamedDevicesAreCounted) {
  const place::Request request = request_of({"--device", "0,gpu:2", "--device", "GPU-1234"}).value();
  EXPECT_EQ(request.count, 3);
  EXPECT_THAT(request.devices, ElementsAre("0", "gpu:2", "GPU-1234"));
  EXPECT_EQ(request_of({"-n", "1", "--device", "0,1"}).value().count, 1);
}

TEST(RequestFlags, AnErrorNamesTheFlag) {
  const auto error = [](const std::vector<std::string>& line) {
    const auto request = request_of(line);
    EXPECT_FALSE(request);
    return request ? "" : request.error().message;
  };
  EXPECT_EQ(error({"--mem", "lots"}), "--mem: 'lots' is no amount of memory; write 24GiB");
  EXPECT_EQ(error({"--host-mem", "64"}), "--host-mem: '64' has no unit; write 64GiB or 64MiB");
  EXPECT_EQ(error({"--share", "0"}), "--share: '0' is no part of a device; write 30% or 0.3");
  EXPECT_THAT(error({"--cap", "fp7"}), HasSubstr("--cap: 'fp7' is no capability"));
  EXPECT_THAT(error({"--where", "index >"}), HasSubstr("--where: the condition is wrong at character 8"));
  EXPECT_EQ(error({"-n", "3", "--device", "0"}), "3 devices are wanted and 1 named");
}

TEST(RequestFlags, MemoryHasAUnit) {
  for (const char* bare : {"24", "0", "25769803776", "1.5"}) {
    const auto request = request_of({"--mem", bare});
    ASSERT_FALSE(request) << bare;
    EXPECT_EQ(request.error().message,
              std::string("--mem: '") + bare + "' has no unit; write " + bare + "GiB or " + bare + "MiB");
  }
  EXPECT_EQ(request_of({"--mem", "24g"}).value().memory_bytes, 24'000'000'000);
  EXPECT_EQ(request_of({"--mem", "24b"}).value().memory_bytes, 24);
}

TEST(RequestFlags, WhatTheParserItselfRefuses) {
  EXPECT_THROW(request_of({"-n", "0"}), CLI::ParseError);
  EXPECT_THROW(request_of({"--link", "carrier-pigeon"}), CLI::ParseError);
  EXPECT_THROW(request_of({"--same-model", "--any-model"}), CLI::ParseError);
}

}  // namespace
}  // namespace remuda::cli
