#include "pool/logs.h"

#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"

namespace remuda::pool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PoolState state_with(int64_t next_job, const std::vector<int64_t>& open) {
  PoolState state;
  state.next_job = next_job;
  for (const int64_t id : open) state.jobs.push_back({.id = id});
  return state;
}

TEST(PoolLogs, StayHoweverManyJobsOthersSubmit) {
  EXPECT_THAT(logs_to_remove({{5, 1}, {9'999, 1}}, state_with(1'000'000, {}), 1000), ElementsAre());
}

TEST(PoolLogs, GoFromTheOldestOnWhenTheyAreTooMany) {
  std::vector<PoolLog> logs;
  for (size_t i = 0; i < kMostLogs + 3; ++i) logs.push_back({2 * static_cast<int64_t>(i) + 10, 0});
  EXPECT_THAT(logs_to_remove(logs, state_with(1'000'000, {}), 1000), ElementsAre(10, 12, 14));
  EXPECT_THAT(logs_to_remove(logs, state_with(1'000'000, {12}), 1000), ElementsAre(10, 14)) << "12 runs still";
}

TEST(PoolLogs, GoFromTheOldestOnWhenTheyAreTooLarge) {
  const std::vector<PoolLog> logs{{1, 10}, {2, 50}, {3, 60}, {4, 30}};
  EXPECT_THAT(logs_to_remove(logs, state_with(5, {}), 150), ElementsAre());
  EXPECT_THAT(logs_to_remove(logs, state_with(5, {}), 100), ElementsAre(1));
  EXPECT_THAT(logs_to_remove(logs, state_with(5, {}), 90), ElementsAre(1, 2));
  EXPECT_THAT(logs_to_remove(logs, state_with(5, {2}), 90), ElementsAre(1)) << "2 runs still";
  EXPECT_THAT(logs_to_remove(logs, state_with(5, {}), 1), ElementsAre(1, 2, 3)) << "the newest stays";
}

class PoolLogFiles : public testing::Test {
 protected:
  std::string refusal(int64_t job) const {
    const auto log = open_pool_log(folder_, job);
    return log ? "" : log.error().message;
  }

  const ScratchFolder scratch_;
  const std::string folder_ = scratch_.path();
};

TEST_F(PoolLogFiles, ArePrivateAndAppendedTo) {
  for (int i = 0; i < 2; ++i) {
    const auto log = open_pool_log(folder_, 7);
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_TRUE(write_all(log->get(), "x", "the log"));
  }
  struct stat info{};
  ASSERT_EQ(::stat(pool_log_path(folder_, 7).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  EXPECT_EQ(info.st_size, 2);
  ASSERT_EQ(::stat((folder_ + "/logs").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & S_ISVTX, static_cast<unsigned>(S_ISVTX)) << "nobody removes the logs of others";
}

TEST_F(PoolLogFiles, AreNotWrittenWhereSomethingElseStands) {
  ASSERT_EQ(refusal(1), "");
  std::filesystem::create_symlink(pool_log_path(folder_, 1), pool_log_path(folder_, 2));
  std::filesystem::create_hard_link(pool_log_path(folder_, 1), pool_log_path(folder_, 3));
  ASSERT_EQ(::mkfifo(pool_log_path(folder_, 4).c_str(), 0600), 0);
  std::filesystem::create_directory(pool_log_path(folder_, 5));
  for (int64_t job = 2; job <= 5; ++job) EXPECT_THAT(refusal(job), HasSubstr("cannot write")) << job;
}

TEST_F(PoolLogFiles, LoseTheirBeginningWhereTheyGrowTooLarge) {
  const auto log = open_pool_log(folder_, 7);
  ASSERT_TRUE(log) << log.error().message;
  std::string lines;
  for (int i = 100; i < 200; ++i) lines += fmt::format("line {}\n", i);  // 9 bytes each
  ASSERT_TRUE(write_all(log->get(), lines, "the log"));
  ASSERT_TRUE(cut_log(log->get(), 900, 30));
  EXPECT_EQ(scratch_.read("logs/7.log"), lines) << "900 bytes are not more than 900";
  ASSERT_TRUE(cut_log(log->get(), 899, 30));
  ASSERT_TRUE(write_all(log->get(), "line 200\n", "the log"));
  EXPECT_EQ(
      scratch_.read("logs/7.log"),
      "remuda: the log became too large; its first 873 bytes were removed\nline 197\nline 198\nline 199\nline 200\n");
}

TEST_F(PoolLogFiles, OfOneLongLineAreCutToNothing) {
  const auto log = open_pool_log(folder_, 7);
  ASSERT_TRUE(log) << log.error().message;
  ASSERT_TRUE(write_all(log->get(), std::string(1000, 'x'), "the log"));
  ASSERT_TRUE(cut_log(log->get(), 100, 30));
  EXPECT_EQ(scratch_.read("logs/7.log"), "remuda: the log became too large; its first 1000 bytes were removed\n");
}

/// The large one has no blocks.
TEST_F(PoolLogFiles, AreSwept) {
  for (const int64_t job : {1, 2, 15'000}) ASSERT_EQ(refusal(job), "");
  ASSERT_EQ(::truncate(pool_log_path(folder_, 2).c_str(), kMostLogBytes), 0);
  const std::string other = folder_ + "/logs/1.txt";
  ASSERT_TRUE(Fd(::creat(other.c_str(), 0600)));
  sweep_logs(folder_, state_with(20'000, {}));
  EXPECT_FALSE(std::filesystem::exists(pool_log_path(folder_, 1)));
  EXPECT_TRUE(std::filesystem::exists(pool_log_path(folder_, 2)));
  EXPECT_TRUE(std::filesystem::exists(pool_log_path(folder_, 15'000)));
  EXPECT_TRUE(std::filesystem::exists(other));
}

}  // namespace
}  // namespace remuda::pool
