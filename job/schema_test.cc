#include "job/schema.h"

#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <set>

#include "job/document.h"

namespace remuda::job {
namespace {

using ::testing::ElementsAre;

TEST(Schema, NamesEachKeyOnceAndExplainsIt) {
  std::set<std::string> names;
  for (const Key& key : job_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_FALSE(key.meaning.empty()) << key.name;
    EXPECT_FALSE(is_table_name(key.name)) << key.name;
  }
}

TEST(Schema, ConditionsNameKeysAndWordsThatExist) {
  for (const Key& key : job_keys()) {
    if (!key.when) continue;
    const Key* kind = find_key(key.when->key);
    ASSERT_NE(kind, nullptr) << key.name;
    if (key.when->words.empty()) continue;
    const auto& known = std::get<ChoiceField>(kind->field).words;
    for (const auto& word : key.when->words) EXPECT_THAT(known, ::testing::Contains(word)) << key.name;
  }
}

TEST(Schema, EveryDefaultIsAllowed) {
  for (const Key& key : job_keys()) {
    TrainJob job;
    job.devices.emplace_back();
    const std::string text = stored(key.field, job);
    if (key.need != Need::optional || text.empty()) continue;  // empty: it has none
    const bool is_word = std::holds_alternative<ChoiceField>(key.field);
    const auto table = parse_toml("value = " + (is_word ? '"' + text + '"' : text), "default");
    ASSERT_TRUE(table) << key.name;
    EXPECT_TRUE(store(key.field, *table->get("value"), job)) << key.name << " = " << text;
  }
}

TEST(Schema, EveryWordOfAChoiceReadsBackAsItself) {
  for (const Key& key : job_keys()) {
    const auto* choice = std::get_if<ChoiceField>(&key.field);
    if (!choice) continue;
    for (size_t i = 0; i < choice->words.size(); ++i) {
      TrainJob job;
      job.devices.emplace_back();
      choice->set(job, i);
      EXPECT_EQ(choice->get(job), choice->words[i]) << key.name;
    }
  }
}

TEST(Schema, EveryKeyHasItsOwnPlaceInTheJob) {
  const auto table = parse_toml("i = 3\nf = 0.5\ns = \"x\"\nl = [7, 8]\nt = [\"x\"]\nb = true", "values");
  ASSERT_TRUE(table);
  std::vector<TrainJob> changed;
  for (const Key& key : job_keys()) {
    TrainJob job;
    job.devices.emplace_back();
    if (const auto* choice = std::get_if<ChoiceField>(&key.field))
      choice->set(job, choice->get(job) == choice->words.back() ? 0 : choice->words.size() - 1);
    else
      for (const auto& [name, value] : *table) store(key.field, value, job);
    EXPECT_EQ(std::ranges::count(changed, job), 0) << key.name;
    changed.push_back(job);
  }
}

TEST(Schema, KnowsTables) {
  for (const char* table : {"model", "data", "data.train", "data.test", "train", "output", "balance", "device"})
    EXPECT_TRUE(is_table_name(table)) << table;
  for (const char* other : {"", "trai", "train.epochs", "data.tests"}) EXPECT_FALSE(is_table_name(other)) << other;
}

TEST(Range, HasEndsThatBelongOrNot) {
  EXPECT_TRUE((Range{1, 2}.contains(1)));
  EXPECT_TRUE((Range{1, 2}.contains(2)));
  EXPECT_FALSE((Range{1, 2}.contains(2.001)));
  EXPECT_FALSE((Range{.low = 0, .above_low = true}.contains(0)));
  EXPECT_TRUE((Range{.low = 0, .above_low = true}.contains(1e-300)));
  EXPECT_FALSE((Range{.low = 0, .high = 1, .below_high = true}.contains(1)));
}

TEST(Range, HoldsFiniteNumbersOnly) {
  EXPECT_FALSE((Range{0}.contains(kNoLimit)));
  EXPECT_FALSE((Range{0}.contains(std::numeric_limits<double>::quiet_NaN())));
}

TEST(Expectation, ReadsAsASentence) {
  EXPECT_EQ(expectation(find_key("train.epochs")->field), "an integer from 1 to 2147483647");
  EXPECT_EQ(expectation(find_key("train.learning_rate")->field), "a number above 0");
  EXPECT_EQ(expectation(find_key("train.momentum")->field), "a number of at least 0 and below 1");
  EXPECT_EQ(expectation(find_key("train.bucket_mib")->field), "a number above 0 and at most 4096");
  EXPECT_EQ(expectation(find_key("model.norm")->field), "one of group, batch");
  EXPECT_EQ(expectation(find_key("balance.shares")->field), "a list of numbers above 0");
}

}  // namespace
}  // namespace remuda::job
