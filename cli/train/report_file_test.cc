#include "cli/train/report_file.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/testing/scratch_folder.h"

namespace remuda::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kSoon_s = 0.001;

TEST(ReportFile, WithoutAPathIsNone) {
  auto file = ReportFile::create("");
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->write({{"steps", 3}}));
}

TEST(ReportFile, IsRefusedBeforeTheRunWhereItCannotBeWritten) {
  const ScratchFolder folder;
  EXPECT_FALSE(ReportFile::create(folder.path("nowhere/report.json")));
}

TEST(ReportFile, OfAFolderThatWasMadeAgainIsThere) {
  const ScratchFolder folder;
  fs::create_directory(folder.path("out"));
  auto file = ReportFile::create(folder.path("out/report.json"));
  ASSERT_TRUE(file);
  fs::remove_all(folder.path("out"));
  fs::create_directory(folder.path("out"));
  ::testing::internal::CaptureStderr();
  const auto written = file->write({{"steps", 3}}, kSoon_s);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::MatchesRegex("cannot write [^\n]*report.json: [^\n]*; tries again in 0.0 s\n"));
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(folder.read("out/report.json"), to_pretty({{"steps", 3}}));
}

TEST(ReportFile, ThatMayNotGrowIsLostAndEndsNothing) {
  const ScratchFolder folder;
  auto file = ReportFile::create(folder.path("report.json"));
  ASSERT_TRUE(file);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = file->write({{"text", std::string(1000, 'x')}}, kSoon_s);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, ::testing::HasSubstr("report.json: File too large (1017 B are needed)"));
}

TEST(ReportFile, ThatIsLostIsSaid) {
  const ScratchFolder folder;
  fs::create_directory(folder.path("out"));
  auto file = ReportFile::create(folder.path("out/report.json"));
  ASSERT_TRUE(file);
  fs::remove_all(folder.path("out"));
  ::testing::internal::CaptureStderr();
  const auto written = file->write({{"steps", 3}}, kSoon_s);
  ::testing::internal::GetCapturedStderr();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::failed);
  EXPECT_THAT(written.error().message, ::testing::StartsWith("the report is lost: cannot write "));
}

}  // namespace
}  // namespace remuda::cli
