#include "route/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "base/file.h"
#include "route/testing/networks.h"

namespace remuda::route {
namespace {

TEST(PlanJson, SaysWhatTheTextSaysAndAllRounds) {
  const Plan plan = plan_all_reduce(two_level({3, 3}, 400, 10, 5)).value();
  const Json json = to_json(plan, 100 * kMiB);
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["collective"], "allreduce");
  EXPECT_EQ(json["bytes"], 100 * kMiB);
  EXPECT_EQ(json["labels"], Json({"gpu:0", "gpu:1", "gpu:2", "gpu:3", "gpu:4", "gpu:5"}));
  EXPECT_EQ(json["best"]["algorithm"], "islands");
  EXPECT_EQ(json["best"]["order"], Json({"GPU-0", "GPU-1", "GPU-2", "GPU-3", "GPU-4", "GPU-5"}));
  EXPECT_EQ(json["best"]["island_sizes"], Json({3, 3}));
  EXPECT_EQ(json["best"]["exact"], true);
  EXPECT_EQ(json["best"]["seconds"], plan.best(100 * kMiB).cost.seconds(100 * kMiB));
  EXPECT_EQ(json["best"]["limit"]["name"], "uplink 0");
  EXPECT_EQ(json["sizes"][0]["from_bytes"], 0);
  EXPECT_EQ(json["algorithms"][0]["algorithm"], "islands");
  EXPECT_EQ(json["index_ring_seconds"], plan.index_ring->seconds(100 * kMiB));
  EXPECT_GT(json["least_seconds"], 0);
  const Json& transfer = json["best"]["rounds"][0]["transfers"][0];
  for (const Json& link : transfer["links"]) EXPECT_LT(link, json["links"].size());
  EXPECT_EQ(transfer["adds"], true);
  EXPECT_EQ(transfer["path"], "NV1");
}

/// All keys of an object and of what is in it.
void collect_keys(const Json& json, std::set<std::string>& keys) {
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) keys.insert(key);
    if (value.is_structured()) collect_keys(value, keys);
  }
}

TEST(PlanJson, EveryKeyAndAlgorithmIsDocumented) {
  const std::string page = read_text(REMUDA_DOCS "/plan.md").value();
  std::set<std::string> keys;
  collect_keys(to_json(plan_all_reduce(two_level({3, 3}, 400, 10, 5)).value(), 100 * kMiB), keys);
  EXPECT_GT(keys.size(), 20U);
  for (const std::string& key : keys) EXPECT_THAT(page, testing::ContainsRegex("[`.]" + key + "(\\[\\])?`")) << key;
  for (const auto& [algorithm, word] : Words<Algorithm>::table) EXPECT_THAT(page, testing::HasSubstr(word));
}

TEST(PlanJson, WhatCannotBeIsNull) {
  Network network = full_mesh(4, 10);
  network.routes[0][1].gbps = network.routes[1][0].gbps = 0;
  const Json json = to_json(plan_all_reduce(network).value(), kMiB);
  EXPECT_TRUE(json["index_ring_seconds"].is_null());
  EXPECT_FALSE(json["best"].contains("island_sizes"));
}

}  // namespace
}  // namespace remuda::route
