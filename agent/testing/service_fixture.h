// For tests: a service whose machine has two devices, and users who ask it.
#pragma once

#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "agent/job_cgroup.h"
#include "agent/service.h"
#include "base/testing/scratch_folder.h"
#include "confine/cgroup.h"
#include "process/testing/child_output.h"

namespace remuda::agent {

inline Inventory box_of(int gpus) {
  Inventory box;
  box.host = "box";
  for (int number = 0; number < gpus; ++number) {
    Device device;
    device.id = "gpu:" + std::to_string(number);
    device.kind = DeviceKind::gpu;
    device.index = number;
    device.model = "Test 1000";
    box.devices.push_back(device);
  }
  return box;
}

inline pool::Job job_named(const std::string& name) {
  pool::Job job{.name = name, .command = {"true"}};
  job.request.count = 1;
  return job;
}

inline constexpr double kNow_s = 1000;

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() { open(); }
  void TearDown() override {
    for (const std::string& cgroup : job_cgroups(pool_)) {
      confine::kill_cgroup(cgroup);
      EXPECT_TRUE(confine::remove_cgroup(cgroup, 5)) << cgroup << " is left";
    }
  }
  pool::MachineView view() const {
    return *pool::MachineView::open(
        pool_, [] { return Result<Inventory>(box_of(2)); }, [] { return Result<pool::Policy>(); }, false);
  }
  void open() {
    service_.reset();
    auto service =
        Service::open(pool_, view(), now_s_, {.revival = Revival([this](const pool::Job& job) {
                                                revived_.push_back(job.id);
                                                if (starts_)
                                                  return process::ChildProcess::spawn({.argv = {"/bin/sleep", "1000"}});
                                                return Result<process::ChildProcess>(failed("no folder"));
                                              })});
    ASSERT_TRUE(service) << service.error().message;
    service_.emplace(std::move(*service));
    read_machine();
  }
  void read_machine() {
    service_->reading_has_begun();
    service_->take_reading(view(), now_s_);
  }
  static Caller caller_for(const process::ChildProcess& child, int uid = 1000) {
    return {uid, false, process::process_id(child.pid()).value(), true};
  }
  std::optional<wire::Answer> ask(const Caller& caller, wire::Request request) {
    if (request.id.empty()) request.id = "r" + std::to_string(++requests_);
    const double asked_s = asked_s_.try_emplace(request.id, now_s_).first->second;
    const auto reply = service_->answer(caller, user_, request, now_s_, asked_s);
    return reply ? std::optional(reply->answer) : std::nullopt;
  }
  std::optional<wire::Answer> apply(const Caller& caller, pool::Operation operation, const std::string& id = "") {
    return ask(caller, {.id = id, .ask = wire::Ask::apply, .operation = std::move(operation)});
  }
  int64_t submit(const Caller& caller, const pool::Job& job = job_named("one")) {
    const auto answer = apply(caller, pool::Submit{.job = job});
    EXPECT_TRUE(answer && !answer->error) << (answer && answer->error ? answer->error->message : "no answer");
    return answer && !answer->error ? wire::parse_applied(answer->result)->job : 0;
  }
  std::optional<pool::Job> find(int64_t job) {
    const auto page =
        wire::parse_page(ask({0, true, process::own_process_id()}, {.ask = wire::Ask::find, .job = job})->result);
    return page && !page->state.jobs.empty() ? std::optional(page->state.jobs.front()) : std::nullopt;
  }
  /// As the loop does, until the job has ended.
  bool ends(int64_t job) {
    for (int i = 0; i < 2000 && find(job)->state != pool::JobState::ended; ++i) {
      now_s_ += 0.01;
      service_->step(now_s_);
      ::usleep(5000);
    }
    return find(job)->state == pool::JobState::ended;
  }

  ScratchFolder folder_;
  const std::string pool_ = folder_.path("pool");
  std::optional<Service> service_;
  double now_s_ = kNow_s;
  policy::User user_{"ada", {}};  ///< who asks
  int requests_ = 0;
  std::map<std::string, double> asked_s_;  ///< when a request came first
  std::vector<int64_t> revived_;           ///< jobs whose keepers were to be started
  bool starts_ = false;                    ///< otherwise nothing can be started for them
};

}  // namespace remuda::agent
