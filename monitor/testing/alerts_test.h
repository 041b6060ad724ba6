// AlertsTest: a machine of one GPU, and its pool, watched with a clock that the test moves. For tests only.
#pragma once

#include <functional>
#include <gmock/gmock.h>
#include <string>
#include <vector>

#include "monitor/alerts.h"

namespace remuda::monitor {

inline constexpr double kFirst_s = 1'800'000'000;

class AlertsTest : public testing::Test {
 protected:
  AlertsTest() {
    Device device;
    device.id = "GPU-1";
    device.kind = DeviceKind::gpu;
    device.memory_bytes = 1000;
    device.pcie_width_max = 16;
    machine_.devices = {device};
  }
  Device& device() { return machine_.devices[0]; }
  void hold(double until_s = 0) {
    pool::Job job;
    job.id = 7;
    job.user = "ana";
    pool_.jobs = {job};
    pool_.leases = {{.job = 7, .device = "GPU-1", .until_s = until_s}};
  }
  /// A reading each `every_s`, after `change` was called with the seconds since the first one of all.
  void watch(double seconds, const std::function<void(double)>& change = {}, double every_s = 1) {
    for (double end_s = now_s_ + seconds; now_s_ < end_s; now_s_ += every_s) {
      if (change) change(now_s_ - kFirst_s);
      Moment moment{machine_, pool_, uses_, 0, without_lease_};
      moment.agent_answers = agent_answers_;
      if (agent_answers_ == false) moment.agent_silence = "the agent speaks another protocol";
      alerts_.take(moment, now_s_ - kFirst_s, now_s_ + ahead_s_);
    }
  }
  std::vector<std::string> rules() const {
    std::vector<std::string> names;
    for (const Alert& alert : alerts_.active()) names.push_back(alert.rule);
    return names;
  }

  Inventory machine_;
  pool::PoolState pool_;
  LeaseUses uses_;
  std::vector<std::string> without_lease_;
  std::optional<bool> agent_answers_;
  Alerts alerts_;
  double now_s_ = kFirst_s;
  double ahead_s_ = 0;  ///< of the clock on the wall, since it was set
};

}  // namespace remuda::monitor
