#include "train/kept_balance.h"

#include <cmath>
#include <gtest/gtest.h>

namespace remuda::train {
namespace {

KeptBalance kept_example() {
  return {.recomputes = true,
          .spills = true,
          .ranks = {{.device = 0xfedcba9876543210,
                     .alone = {{.batch = 64, .seconds = INFINITY}, {.batch = 32, .seconds = 0.1}},
                     .known = {{.batch = 32, .seconds = 0.125}},
                     .need = {.known = 1, .fixed = 10, .per_sample = 2.5, .least = 5},
                     .update_s = 0.75},
                    {.device = 7}}};
}

TEST(KeptBalance, IsReadAsItWasWritten) {
  const Json json = parse_json(to_line(to_json(kept_example())), "kept").value();
  const auto parsed = parse_kept_balance(json);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(to_json(*parsed), to_json(kept_example()));
  EXPECT_TRUE(parsed->recomputes);
  EXPECT_TRUE(parsed->spills);
  EXPECT_TRUE(std::isinf(parsed->ranks[0].alone[0].seconds));
  EXPECT_EQ(parsed->ranks[0].known[0].seconds, 0.125);
  EXPECT_EQ(parsed->ranks[0].need.per_sample, 2.5);
  EXPECT_EQ(parsed->ranks[0].update_s, 0.75);
  EXPECT_EQ(parsed->ranks[1].need.known, 0) << "not measured";
}

TEST(KeptBalance, IsOfItsOwnDevicesOnly) {
  EXPECT_TRUE(kept_example().is_of({0xfedcba9876543210, 7}));
  EXPECT_FALSE(kept_example().is_of({7, 0xfedcba9876543210}));
  EXPECT_FALSE(kept_example().is_of({0xfedcba9876543210}));
  EXPECT_FALSE(kept_example().is_of({0xfedcba9876543210, 7, 7}));
}

TEST(KeptBalance, WhatNoDeviceCanHaveIsNone) {
  EXPECT_FALSE(parse_kept_balance(Json()));
  EXPECT_FALSE(parse_kept_balance(Json::array()));
  const auto with = [](const char* key, const Json& value) {
    Json json = to_json(kept_example());
    json["ranks"][0][key] = value;
    return parse_kept_balance(json).has_value();
  };
  EXPECT_TRUE(with("known", Json::array()));
  for (const Json& pair : {Json{0, 1.0}, Json{-1, 1.0}, Json{4, 0}, Json{4, -1}, Json{4}, Json{4.5, 1}, Json{4, "1"}})
    EXPECT_FALSE(with("known", Json::array({pair}))) << pair;
  EXPECT_FALSE(with("alone", "fast"));
  EXPECT_FALSE(with("device", "no number"));
  EXPECT_FALSE(with("device", 7));
  EXPECT_FALSE(with("update_s", -1));
  EXPECT_FALSE(with("update_s", "long"));
  EXPECT_FALSE(with("memory", Json::array({1, 2})));
  EXPECT_FALSE(with("memory", Json::array({1, -2, 3})));
}

TEST(KeptBalance, OfOtherDevicesNothingIsKnown) {
  const KeptBalance before{.ranks = {{.device = 7, .alone = {{8, 1.0}}}, {.device = 9, .alone = {{8, 2.0}}}}};
  const KeptBalance grown = before.with({7, 9, 11}), other = before.with({7, 10});
  ASSERT_EQ(grown.ranks.size(), 3U);
  EXPECT_EQ(grown.alone_of(1)->at(0).seconds, 2.0);
  EXPECT_EQ(grown.alone_of(2), nullptr);
  EXPECT_FALSE(grown.knows_all());
  EXPECT_EQ(other.alone_of(1), nullptr);
  EXPECT_TRUE(before.knows_all());
}

}  // namespace
}  // namespace remuda::train
