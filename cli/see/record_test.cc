#include "cli/see/record.h"

#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

Inventory watched_machine() {
  Device device{.id = "GPU-1", .kind = DeviceKind::gpu, .serial = "1234"};
  device.status.busy = 0.5;
  device.status.processes = std::vector<Process>{{.pid = 7, .user = "ada", .command = "python secret.py"}};
  return {.host = "lab", .time_s = 10, .devices = {device}};
}

const Process& process(const Status& status) { return status.processes.value().at(0); }

TEST(Redact, TakesOutSerialsUsersAndCommands) {
  Inventory recording = watched_machine();
  add_sample(recording, watched_machine());
  redact(recording, {});
  EXPECT_EQ(recording.devices[0].serial.missing().detail, "left out of the recording");
  for (const Status* status : {&recording.devices[0].status, &recording.samples[0].devices[0]}) {
    EXPECT_EQ(process(*status).user.missing().reason, MissingReason::denied);
    EXPECT_FALSE(process(*status).command.has_value());
    EXPECT_EQ(process(*status).pid, 7);
  }
}

TEST(Redact, KeepsWhatIsAskedFor) {
  Inventory recording = watched_machine();
  redact(recording, {.serials = true, .names = true});
  EXPECT_EQ(recording, watched_machine());
}

TEST(Redact, LeavesMissingReadingsAsTheyAre) {
  Inventory recording = watched_machine();
  recording.devices[0].serial = Missing{MissingReason::unsupported, "no serial"};
  redact(recording, {});
  EXPECT_EQ(recording.devices[0].serial.missing().detail, "no serial");
}

TEST(AddSample, FollowsDevicesByTheirIds) {
  Inventory recording = watched_machine();
  Inventory later = watched_machine();
  later.time_s = 11;
  later.devices[0].status.busy = 0.75;
  later.devices.insert(later.devices.begin(), Device{.id = "GPU-0", .kind = DeviceKind::gpu});
  add_sample(recording, later);
  ASSERT_EQ(recording.samples.size(), 1u);
  EXPECT_EQ(recording.samples[0].time_s, 11);
  ASSERT_EQ(recording.samples[0].devices.size(), 1u);
  EXPECT_EQ(recording.samples[0].devices[0].busy, Reading<double>(0.75));
}

TEST(AddSample, SaysThatADeviceIsGone) {
  Inventory recording = watched_machine();
  add_sample(recording, {.host = "lab", .time_s = 12});
  EXPECT_EQ(recording.samples[0].devices[0].busy.missing().reason, MissingReason::lost);
}

}  // namespace
}  // namespace remuda::cli
