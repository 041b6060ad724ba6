#include "cli/watch/alert_reports.h"

#include <chrono>
#include <gmock/gmock.h>
#include <thread>

#include "base/testing/scratch_folder.h"

namespace remuda::cli {
namespace {

TEST(AlertReports, ACommandHearsOfFoldersWhoseNamesAreNoText) {
  const ScratchFolder folder;
  const std::string out = folder.path("out");
  AlertReports reports({.on_alert = "echo \"$REMUDA_ALERT\" >" + out + ".new; mv " + out + ".new " + out}, "test",
                       false);
  const std::vector<monitor::Alert> active{{.id = "a1", .rule = "disk almost full", .device = "/data/\xff"}};
  for (int i = 0; i < 2000 && !folder.has("out"); ++i) {
    reports.take(active, 0, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_THAT(folder.read("out"), testing::HasSubstr("\"device\":\"/data/\uFFFD\""));
}

}  // namespace
}  // namespace remuda::cli
