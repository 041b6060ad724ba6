#include "checkpoint/manifest.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::checkpoint {
namespace {

using testing::HasSubstr;

Manifest example() {
  return {.remuda = "0.1.0",
          .step = 120,
          .written_s = 1.5,
          .files = {{"rank-0.safetensors", kSummedBytes + 640, {0x0123456789abcdef, 7}}},
          .tensors = {{"layer.weight", weights::DType::f32, {4, 3}, false}, {"mean", weights::DType::f64, {}, true}},
          .run = {{"position", 7}}};
}

std::string refusal(const Json& json) {
  const auto parsed = parse_manifest(to_line(sealed(json)), "m.json");
  return parsed ? "" : parsed.error().message;
}

TEST(Manifest, IsReadAsItWasWritten) {
  const auto parsed = parse_manifest(to_pretty(to_json(example())), "m.json");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(*parsed, example());
  EXPECT_EQ(parsed->bytes(), kSummedBytes + 640U);
}

TEST(Manifest, OfTheVersionBeforeIsRead) {
  Manifest before = example();
  before.version = 1;
  before.files[0].sums = {0x0123456789abcdef};
  EXPECT_EQ(parse_manifest(to_line(to_json(before)), "m.json"), before);
  before.files[0].sums = {1, 2};
  EXPECT_EQ(refusal(to_json(before)), "m.json is damaged: \"xxh3\" must be 16 hexadecimal digits");
}

TEST(Manifest, OfANewerVersionIsRefusedByName) {
  Json json = to_json(example());
  json["remuda_checkpoint"] = 3;
  EXPECT_EQ(refusal(json), "m.json was written by a newer remuda (format 3, this one reads up to 2)");
  json["remuda_checkpoint"] = 0;
  EXPECT_EQ(refusal(json), "m.json is damaged: there is no format 0");
}

TEST(Manifest, OtherFilesAreNone) {
  EXPECT_EQ(refusal({{"a", 1}}), "m.json is no manifest of a checkpoint");
  EXPECT_EQ(refusal(Json::array()), "m.json is no manifest of a checkpoint");
  EXPECT_FALSE(parse_manifest("{\"remuda_checkpoint\": 1,", "m.json"));
}

TEST(Manifest, WhatIsDamagedIsNamed) {
  const auto with = [](const char* key, const Json& value) {
    Json json = to_json(example());
    json[key] = value;
    return refusal(json);
  };
  EXPECT_EQ(with("step", -1), "m.json is damaged: \"step\" must be an integer of at least 0");
  EXPECT_EQ(with("files", "none"), "m.json is damaged: \"files\" must be a list that is not too long");
  EXPECT_EQ(with("files", Json::array()), "m.json is damaged: \"files\" must be a list of at least one file");
  EXPECT_EQ(with("written_s", 1e300), "m.json is damaged: \"written_s\" must be seconds since 1970");
  EXPECT_EQ(with("run", Json::array()), "m.json is damaged: \"run\" must be an object");
  EXPECT_THAT(with("tensors", {{{"name", "a"}, {"dtype", "F32"}, {"shape", {-1}}, {"buffer", false}}}),
              HasSubstr("\"shape\" must be an integer"));
  EXPECT_THAT(with("tensors", {{{"name", "a"}, {"dtype", "F31"}, {"shape", {1}}, {"buffer", false}}}),
              HasSubstr("\"dtype\" must be a type of safetensors"));
}

// A name could point anywhere, and be read, or compared and reported.
TEST(Manifest, FilesLieInItsOwnFolder) {
  for (const char* name : {"../a", "/etc/passwd", "", ".hidden", "a/b", "a\nb", "a\x1b[2J"}) {
    Json json = to_json(example());
    json["files"][0]["name"] = name;
    EXPECT_THAT(refusal(json), HasSubstr("the name of a file in the same folder")) << name;
  }
}

TEST(Manifest, AFileHasASumForEachMebibyte) {
  const std::string sum = "0123456789abcdef";
  for (const std::string& sums : {sum, fmt::format("{0}{0}{0}", sum), sum + "0123456789abcde", sum + "0123456789ABCDEF",
                                  sum + "0123456789abcde ", fmt::format("{0}{0}0", sum), sum + "-123456789abcdef"}) {
    Json json = to_json(example());
    json["files"][0]["xxh3"] = sums;
    EXPECT_THAT(refusal(json), HasSubstr("\"xxh3\" must be 16 hexadecimal digits for each MiB")) << sums;
  }
  Json json = to_json(example());
  for (const auto& [bytes, count] :
       {std::pair{uint64_t{0}, 0}, {uint64_t{1}, 1}, {kSummedBytes, 1}, {kSummedBytes + 1, 2}})
    for (const int sums : {0, 1, 2}) {
      json["files"][0]["bytes"] = bytes;
      json["files"][0]["xxh3"] = fmt::format("{}{}", sums > 0 ? sum : "", sums > 1 ? sum : "");
      EXPECT_EQ(refusal(json).empty(), sums == count) << bytes << " bytes, " << sums << " sums";
    }
  json["files"][0]["bytes"] = uint64_t{1} << 62;
  EXPECT_THAT(refusal(json), HasSubstr("for each MiB"));
}

// Whatever it says is what a run goes on from: also a digit that is another one must be noticed.
TEST(Manifest, AFlippedBitIsNoticedWhereverItIs) {
  const std::string text = to_pretty(to_json(example()));
  const Json whole = to_json(example());
  for (size_t at = 0; at < text.size(); ++at)
    for (const char bit : {1, 2, 4, 16}) {
      std::string flipped = text;
      flipped[at] = char(flipped[at] ^ bit);
      const auto parsed = parse_manifest(flipped, "m.json");
      EXPECT_TRUE(!parsed || to_json(*parsed) == whole) << flipped;
    }
  Json unsealed = whole;
  unsealed.erase("xxh3");
  EXPECT_THAT(parse_manifest(to_line(unsealed), "m.json").error().message, HasSubstr("is damaged: its sum is not"));
  std::string moved = text;
  moved.replace(moved.find("\"position\": 7"), 13, "\"position\": 8");
  EXPECT_EQ(parse_manifest(moved, "m.json").error().message, "m.json is damaged: its sum is not that of what it says");
}

TEST(Manifest, ATensorThatCannotBeCountedIsRefused) {
  Json json = to_json(example());
  json["tensors"][0]["shape"] = {uint64_t{1} << 62, 8};
  EXPECT_THAT(refusal(json), HasSubstr("\"shape\" must be sizes that can be multiplied"));
}

}  // namespace
}  // namespace remuda::checkpoint
