#include "monitor/history.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <numeric>

#include "base/testing/scratch_folder.h"

namespace remuda::monitor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr double kStart_s = 1'800'000'000;  // whole minutes

std::vector<DeviceSlot> busy(float value, const std::string& device = "a") {
  Slot slot;
  slot[Measure::busy] = value;
  return {{device, slot}};
}

class HistoryTest : public testing::Test {
 protected:
  HistoryTest() : history_(open()) {}
  History open() const {
    auto history = History::open(folder_.path());
    if (!history) throw std::runtime_error(history.error().message);
    return std::move(*history);
  }
  void fill(int seconds, int from = 0) {
    for (int i = from; i < from + seconds; ++i) ASSERT_TRUE(history_.add(kStart_s + i, busy(static_cast<float>(i))));
  }
  std::vector<float> read(double from, double to, size_t at_most = 1000) {
    const auto series = history_.read("a", kStart_s + from, kStart_s + to, at_most);
    if (!series) throw std::runtime_error(series.error().message);
    step_s_ = series->step_s;
    start_s_ = series->start_s - kStart_s;
    std::vector<float> values;
    for (const Slot& slot : series->slots) values.push_back(slot[Measure::busy]);
    return values;
  }

  ScratchFolder folder_;
  History history_;
  double step_s_ = 0, start_s_ = 0;
};

TEST_F(HistoryTest, HasEachSecondOfTheLastHour) {
  fill(5);
  EXPECT_THAT(read(1, 4), ElementsAre(1, 2, 3));
  EXPECT_EQ(step_s_, 1);
  EXPECT_EQ(start_s_, 1);
}

TEST_F(HistoryTest, CombinesNeighboursWhereFewerAreAskedFor) {
  fill(10);
  EXPECT_THAT(read(0, 10, 6), ElementsAre(1, 4, 7, 9)) << "means of three seconds";
  EXPECT_EQ(step_s_, 3);
  fill(3000, 10);
  EXPECT_LE(read(0, 3000, 7).size(), 7U);
}

TEST_F(HistoryTest, KeepsTenSecondsForADayAndAMinuteForAMonth) {
  fill(2 * 3600);
  const auto tens = read(100, 130);
  EXPECT_EQ(step_s_, 10);
  EXPECT_THAT(tens, ElementsAre(104.5F, 114.5F, 124.5F));
  ASSERT_TRUE(history_.add(kStart_s + 2 * 86400, busy(1)));
  const auto minutes = read(60, 180);
  EXPECT_EQ(step_s_, 60);
  EXPECT_THAT(minutes, ElementsAre(89.5F, 149.5F));
}

TEST_F(HistoryTest, ReadsNoMoreThanIsKeptHoweverMuchIsAskedFor) {
  fill(5);
  constexpr double kMonth_s = 30 * 86400, kHour_s = 3600;
  for (const size_t at_most : {2, 6}) {
    EXPECT_LE(read(-kStart_s, 5, at_most).size(), at_most);
    EXPECT_GE(start_s_, -3 * kMonth_s) << "not the years since 1970";
    EXPECT_LE(read(0, 7e6, at_most).size(), at_most);
    EXPECT_GE(start_s_, -3 * kHour_s) << "whatever the time to come";
  }
}

TEST_F(HistoryTest, HasAGapWhereNothingWasRead) {
  fill(2);
  fill(1, 4);
  const auto values = read(0, 5);
  ASSERT_THAT(values, SizeIs(5));
  EXPECT_TRUE(std::isnan(values[2]) && std::isnan(values[3]));
  EXPECT_EQ(values[4], 4);
}

TEST_F(HistoryTest, GoesOnAfterItsProcessWasKilled) {
  fill(90);
  ASSERT_TRUE(history_.write());
  fill(5, 90);  // these are lost
  history_ = open();
  EXPECT_THAT(read(88, 92), ElementsAre(88, 89, testing::IsNan(), testing::IsNan()));
  fill(5, 95);
  ASSERT_TRUE(history_.write());
  history_ = open();
  EXPECT_THAT(read(59, 61), ElementsAre(59, 60));
  EXPECT_THAT(read(95, 97), ElementsAre(95, 96)) << "in the chunk that was there before";
  EXPECT_THAT(read(87, 90), ElementsAre(87, 88, 89));
}

TEST_F(HistoryTest, AReaderFollowsTheProcessThatKeepsIt) {
  fill(1);
  ASSERT_TRUE(history_.write());
  History reader = open();
  ASSERT_TRUE(reader.read("a", kStart_s, kStart_s + 1, 10));
  fill(200, 1);
  ASSERT_TRUE(history_.write());
  const auto series = reader.read("a", kStart_s + 190, kStart_s + 192, 10);
  ASSERT_TRUE(series);
  ASSERT_THAT(series->slots, SizeIs(2));
  EXPECT_EQ(series->slots[1][Measure::busy], 191);
}

TEST_F(HistoryTest, RemovesWhatIsOlderThanItsLevelKeeps) {
  fill(60);
  ASSERT_TRUE(history_.write());
  ASSERT_TRUE(history_.add(kStart_s + 31 * 86400, busy(1)));
  ASSERT_TRUE(history_.write());
  history_ = open();
  for (const float value : read(0, 60)) EXPECT_TRUE(std::isnan(value));
}

TEST_F(HistoryTest, TakesAClockThatIsSetBack) {
  fill(100);
  ASSERT_TRUE(history_.add(kStart_s + 10, busy(500)));
  EXPECT_THAT(read(9, 11), ElementsAre(9, 500));
  ASSERT_TRUE(history_.add(kStart_s + 100, busy(100)));
  EXPECT_THAT(read(99, 101), ElementsAre(99, 100));
}

TEST_F(HistoryTest, ForgetsWhatAClockThatWasFarAheadHasLeft) {
  fill(10);
  ASSERT_TRUE(history_.add(kStart_s + 60 * 86400, busy(1)));
  ASSERT_TRUE(history_.write());
  fill(10, 10);
  ASSERT_TRUE(history_.write());
  History reader = open();
  const auto series = reader.read("a", kStart_s + 12, kStart_s + 14, 10);
  ASSERT_TRUE(series);
  ASSERT_THAT(series->slots, SizeIs(2)) << "now is not in 60 days";
  EXPECT_EQ(series->slots[1][Measure::busy], 13);
}

TEST_F(HistoryTest, KeepsDevicesApart) {
  ASSERT_TRUE(history_.add(kStart_s, busy(1, "a")));
  ASSERT_TRUE(history_.add(kStart_s, busy(2, "b")));
  EXPECT_THAT(read(0, 1), ElementsAre(1));
  EXPECT_THAT(history_.devices().value(), ElementsAre("a", "b"));
  EXPECT_THAT(history_.read("nobody", kStart_s, kStart_s + 1, 10)->slots, SizeIs(0));
}

TEST_F(HistoryTest, LeavesOutDevicesBeyondTheMost) {
  for (size_t i = 0; i < History::kMostDevices + 2; ++i)
    ASSERT_TRUE(history_.add(kStart_s, busy(1, "device " + std::to_string(i))));
  EXPECT_THAT(history_.devices().value(), SizeIs(History::kMostDevices));
}

TEST_F(HistoryTest, IsForItsUserAlone) {
  fill(1);
  ASSERT_TRUE(history_.write());
  for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_EQ(file.status().permissions() & std::filesystem::perms(077), std::filesystem::perms::none) << file;
  std::filesystem::permissions(folder_.path("history.db"), std::filesystem::perms(0644));
  history_ = open();
  EXPECT_EQ(std::filesystem::status(folder_.path("history.db")).permissions(), std::filesystem::perms(0600));
}

TEST_F(HistoryTest, RefusesFilesThatAreNone) {
  ScratchFolder folder;
  folder.write("history.db", "no database at all");
  EXPECT_THAT(History::open(folder.path()).error().message, HasSubstr("history.db is damaged"));
  folder.write("history.db", "");
  EXPECT_THAT(History::open(folder.path()).error().message, HasSubstr("is no history: move it away to begin anew"));
}

TEST_F(HistoryTest, ReadsChunksOfProgramsThatKnowMoreOrFewerMeasures) {
  fill(1);
  ASSERT_TRUE(history_.write());
  auto database = sqlite::Database::open(folder_.path("history.db"));
  for (const char* bytes : {"", "zeroblob(17)", "zeroblob(240)", "zeroblob(60 * 4 * 30)"}) {
    const std::string blob = *bytes ? bytes : "x''";
    ASSERT_TRUE((*database)->execute(("UPDATE chunk SET slots = " + blob).c_str()));
    history_ = open();
    const auto values = read(0, 1);
    ASSERT_THAT(values, SizeIs(1)) << blob;
    EXPECT_TRUE(std::isnan(values[0]) || values[0] == 0) << blob;
  }
}

}  // namespace
}  // namespace remuda::monitor
