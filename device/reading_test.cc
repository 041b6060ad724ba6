#include "device/reading.h"

#include <gtest/gtest.h>
#include <set>

namespace remuda {
namespace {

TEST(Reading, IsMissingUntilItIsRead) {
  const Reading<double> reading;
  EXPECT_FALSE(reading.has_value());
  EXPECT_FALSE(reading.was_read());
  EXPECT_EQ(reading.missing().detail, "not read");
}

TEST(Reading, OfZeroIsAValue) {
  const Reading<int> reading(0);
  ASSERT_TRUE(reading.has_value());
  EXPECT_TRUE(reading.was_read());
  EXPECT_EQ(reading.value_or(7), 0);
}

TEST(Reading, SaysWhyItIsMissing) {
  const Reading<std::string> reading(Missing{MissingReason::denied, "the driver asks for root"});
  EXPECT_EQ(reading.missing().reason, MissingReason::denied);
  EXPECT_TRUE(reading.was_read());
  EXPECT_EQ(reading.value_or("otherwise"), "otherwise");
}

TEST(MissingReason, EachHasItsOwnWordThatReadsBack) {
  std::set<std::string> words;
  for (const auto reason : {MissingReason::unsupported, MissingReason::denied, MissingReason::lost,
                            MissingReason::stale, MissingReason::no_driver}) {
    words.insert(to_string(reason));
    EXPECT_EQ(from_word<MissingReason>(to_string(reason)), reason);
  }
  EXPECT_EQ(words, (std::set<std::string>{"unsupported", "denied", "lost", "stale", "no_driver"}));
  EXPECT_FALSE(from_word<MissingReason>("asleep"));
}

}  // namespace
}  // namespace remuda
