#include <algorithm>
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/json.h"
#include "base/testing/scratch_folder.h"
#include "cli/subcommands.h"
#include "device/inventory.h"

namespace remuda::cli {
namespace {

using testing::HasSubstr;

/// Three GPUs, the first two joined by NVLink.
Inventory machine() {
  Inventory inventory{.host = "box"};
  for (int i = 0; i < 3; ++i)
    inventory.devices.push_back({.id = "GPU-" + std::to_string(i), .kind = DeviceKind::gpu, .index = i, .model = "A"});
  inventory.links.push_back(
      {.a = "GPU-0", .b = "GPU-1", .path = Path::sys, .fabric = Fabric::nvlink, .fabric_links = 4});
  inventory.links.push_back({.a = "GPU-0", .b = "GPU-2", .path = Path::sys});
  inventory.links.push_back({.a = "GPU-1", .b = "GPU-2", .path = Path::sys});
  return inventory;
}

class PlaceCommand : public testing::Test {
 protected:
  /// `remuda place --machine FILE` with these arguments; what it prints is in out_ afterwards.
  Result<int> run(const std::vector<std::string>& arguments) {
    Program program;
    add_place(program);
    std::vector<std::string> line{"place", "--machine", file_};
    line.insert(line.end(), arguments.begin(), arguments.end());
    std::ranges::reverse(line);
    program.app.parse(line);
    testing::internal::CaptureStdout();
    Result<int> status = program.chosen();
    out_ = testing::internal::GetCapturedStdout();
    return status;
  }

  const ScratchFolder folder_;
  const std::string file_ = folder_.write("box.json", to_line(to_json(machine())));
  std::string out_;
};

TEST_F(PlaceCommand, PrintsLabels) {
  EXPECT_EQ(run({"-n", "2"}).value(), 0);
  EXPECT_EQ(out_, "gpu:0 gpu:1\n");
  EXPECT_EQ(run({}).value(), 0);
  EXPECT_EQ(out_, "gpu:2\n");
}

TEST_F(PlaceCommand, PrintsIdsAsJson) {
  EXPECT_EQ(run({"-n", "2", "--json"}).value(), 0);
  const Json json = parse_json(out_, "out").value();
  EXPECT_EQ(json["devices"], Json({"GPU-0", "GPU-1"}));
  EXPECT_EQ(json["explanation"]["ring"]["gbps"], 100);
  EXPECT_FALSE(json.contains("shares"));
  const std::string alone = out_;
  EXPECT_EQ(run({"-n", "2", "--json", "--explain"}).value(), 0);
  EXPECT_EQ(out_, alone);
}

TEST_F(PlaceCommand, Explains) {
  EXPECT_EQ(run({"-n", "2", "--explain", "--busy", "gpu:0"}).value(), 0);
  for (const char* part :
       {"chosen      gpu:1, gpu:2\n", "ring        10 GB/s at its slowest link", "left free   nothing\n",
        "rejected    gpu:0 is held by --busy\n", "considered  1 set, all there are\n"})
    EXPECT_THAT(out_, HasSubstr(part));
}

TEST_F(PlaceCommand, RefusesForEver) {
  const auto status = run({"-n", "4"});
  ASSERT_FALSE(status);
  EXPECT_EQ(exit_status(status.error().kind), 3);
  EXPECT_EQ(status.error().message, "there are 3 GPUs on box; 4 are wanted");
  EXPECT_EQ(out_, "");
  EXPECT_EQ(run({"-n", "4", "--json"}).value(), 3);
  EXPECT_EQ(parse_json(out_, "out").value()["refused"], "never");
}

TEST_F(PlaceCommand, RefusesForNow) {
  const auto status = run({"-n", "2", "--busy", "0,1", "--explain"});
  ASSERT_FALSE(status);
  EXPECT_EQ(exit_status(status.error().kind), 4);
  EXPECT_THAT(out_, HasSubstr("in the way  gpu:0: --busy\n"));
  EXPECT_EQ(run({"-n", "2", "--busy", "0,1", "--json"}).value(), 4);
  const Json json = parse_json(out_, "out").value();
  EXPECT_EQ(json["refused"], "not now");
  EXPECT_EQ(json["blockers"].size(), 2);
}

TEST_F(PlaceCommand, WrongInputIsTheUsersError) {
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"--busy", "9"}, {"--device", "9"}, {"--mem", "x"}, {"--where", "("}}) {
    const auto status = run(line);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::usage);
  }
}

}  // namespace
}  // namespace remuda::cli
