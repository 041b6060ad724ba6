// Whatever users can have a pool admit: each answer about it fits what an agent sends, and the pages have all of it.
#include "agent/pages.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "agent/record_size.h"
#include "agent/rules.h"
#include "agent/testing/service_fixture.h"
#include "wire/frame.h"

namespace remuda::agent {
namespace {

using rc::gen::element;
using rc::gen::inRange;
using testing::SizeIs;

constexpr int kDevices = 16;

/// A pool that several users fill with what they may.
struct Crowded {
  Inventory box = box_of(kDevices);
  pool::PoolState state;
  std::vector<pool::Allocation> allocations;
  const Result<pool::Policy> policy = pool::Policy{};

  Result<pool::Applied> apply(const pool::Operation& operation, int uid) {
    return pool::apply(state, operation, {.inventory = box, .policy = policy, .uid = uid, .now_s = kNow_s});
  }
  /// The number of the job; 0 where it is not admitted.
  int64_t submit(const pool::Job& job, const policy::User& user, int uid) {
    const Caller caller{uid, false, process::own_process_id(), true};
    pool::Operation asked = pool::Submit{.job = job};
    if (!admit(asked, caller, user, std::string(64, 'r'), state)) return 0;
    const auto applied = apply(asked, uid);
    return applied ? applied->job : 0;
  }
  /// Runs on so many devices, a hundredth of each, and says what a run may say.
  void start(int64_t id, int devices, size_t parts) {
    pool::Job& job = *state.find(id);
    job.state = pool::JobState::running;
    for (int i = 0; i < devices; ++i) {
      const std::string& device = box.devices[static_cast<size_t>((id + i) % kDevices)].id;
      job.devices.push_back(device);
      state.leases.push_back({id, device, 0.01, kNow_s, kNow_s + 1e6});
    }
    pool::RunNotice notice{.step = 1, .steps = 2};
    for (size_t i = 0; i < parts; ++i) notice.parts.push_back({job.devices[i % job.devices.size()], 0.1, 1.0 / 3});
    (void)apply(pool::RecordRun{id, notice}, job.uid);
  }
  /// As often as it has a mind to.
  void queue_again(int64_t id, int devices, int times) {
    for (int i = 0; i < times; ++i) {
      start(id, devices, 1);
      state.find(id)->begun = true;
      (void)apply(pool::Requeue{id}, 0);
    }
  }
  Readable all() const { return {state, allocations}; }
};

size_t size_of(const wire::Page& page) {
  return text_of(wire::Answer{.id = std::string(64, 'r'), .result = to_json(page)}).size();
}

std::vector<int64_t> ids_of(const pool::Jobs& jobs, const std::function<bool(const pool::Job&)>& is_meant) {
  std::vector<int64_t> ids;
  for (const pool::Job& job : jobs)
    if (is_meant(job)) ids.push_back(job.id);
  return ids;
}

/// All pages, as a client asks for them. Each fits.
std::vector<int64_t> read_all(const std::function<wire::Page(int64_t after)>& page_after, int64_t but = 0) {
  std::vector<int64_t> ids;
  for (int64_t after = 0;;) {
    const wire::Page page = page_after(after);
    RC_ASSERT(size_of(page) <= wire::kLargestAnswer);
    for (const pool::Job& job : page.state.jobs)
      if (job.id != but) ids.push_back(job.id);
    if (!page.has_more) return ids;
    RC_ASSERT(!ids.empty() && ids.back() > after);
    after = ids.back();
  }
}

std::string long_text(size_t size) { return std::string(size, *element('x', '"', '\\')); }

pool::Job random_job() {
  const size_t longest = *element<size_t>(5, 5, 4000);
  pool::Job job{.name = long_text(longest), .folder = long_text(longest), .log = long_text(longest)};
  job.request.share = 0.01;
  job.request.devices.assign(*element<size_t>(0, 200), "gpu:0");
  job.at_end = long_text(longest);
  job.mail = long_text(*element<size_t>(0, 4000));
  job.command.assign(*element<size_t>(1, 1, 200), long_text(*element<size_t>(3, 200)));
  return job;
}

void fill(Crowded& pool) {
  std::vector<std::string> groups(*element<size_t>(0, 256), std::string(32, 'g'));
  const int jobs = *inRange(1, 16), devices = *inRange(1, kDevices + 1), turns = *element(0, 0, 5, 100);
  for (int i = 0; i < jobs; ++i) {
    const int uid = 1000 + i % 3;
    const int64_t id = pool.submit(random_job(), {"user" + std::to_string(uid), groups}, uid);
    if (id == 0) continue;
    if (i < 3) pool.queue_again(id, devices, turns);
    if (*inRange(0, 3) != 0) pool.start(id, devices, pool::RunNotice::kMostParts);
  }
  const int users = *element(0, 3000);
  for (int i = 0; i < users; ++i) pool.state.usage.push_back({"user" + std::to_string(i), 1.0 / 3, kNow_s});
  for (const Device& device : pool.box.devices) {
    pool.state.drains.push_back({device.id, std::string(4000, '"'), "root", kNow_s});
    const std::vector<pool::Pod> pods(*element<size_t>(1, 100),
                                      {std::string(60, 'n'), std::string(250, 'p'), "u", "c"});
    pool.allocations.push_back({device.id, "a kubelet", std::string(300, 'h'), "kubectl", pods});
  }
}

RC_GTEST_PROP(Pages, OfAnyAdmittedStateFitAnAnswerAndHaveAllOfIt, ()) {
  Crowded pool;
  fill(pool);
  const pool::Jobs& jobs = std::as_const(pool.state).jobs;
  for (const pool::Job& job : jobs) RC_ASSERT(to_line(to_json(job)).size() <= record_size(job));
  const auto runs = [](const pool::Job& job) { return job.state == pool::JobState::running; };
  for (const Caller& caller : {Caller{0, true, {}}, Caller{1000, false, {}}}) {
    for (const bool own : {false, true}) {
      const auto is_meant = [&](const pool::Job& job) { return !own || job.uid == caller.uid; };
      RC_ASSERT(read_all([&](int64_t after) { return page_of_jobs(pool.all(), caller, own, after); }) ==
                ids_of(jobs, is_meant));
    }
    RC_ASSERT(read_all([&](int64_t after) { return page_around(pool.all(), caller, nullptr, after); }) ==
              ids_of(jobs, runs));
    if (jobs.empty()) return;
    for (const pool::Job* job : {&jobs.front(), &jobs.back()}) {  // the first was queued again most often
      RC_ASSERT(size_of(page_with(pool.all(), caller, job)) <= wire::kLargestAnswer);
      RC_ASSERT(size_of(page_around(pool.all(), caller, job, 0)) <= wire::kLargestAnswer);
    }
    const std::vector<pool::Job> ended(jobs.begin(), jobs.end());
    RC_ASSERT(size_of(page_of_ended(pool.all(), caller, ended)) <= wire::kLargestAnswer);
  }
}

/// As many as there are shares of devices: more than one answer has.
TEST(Pages, OfAllThatRunsHaveEachLeaseOnce) {
  Crowded pool;
  for (int i = 0; i < 100 * kDevices; ++i) {
    const int64_t id = pool.submit(job_named("n"), {"ada", {}}, 1000);
    ASSERT_NE(id, 0);
    pool.start(id, 1, 1);
  }
  const pool::Job* last = std::as_const(pool.state).find(1600);
  size_t leases = 0, jobs = 0, pages = 0;
  for (int64_t after = 0;; ++pages) {
    const wire::Page page = page_around(pool.all(), Caller{1001, false, {}}, last, after);
    EXPECT_LE(size_of(page), wire::kLargestAnswer);
    EXPECT_EQ(page.state.find(1600) != nullptr, after == 0) << "the job that was asked for is on the first page";
    leases += page.state.leases.size();
    jobs += page.state.jobs.size();
    for (const pool::Job& job : page.state.jobs)
      if (job.id != 1600) after = job.id;
    if (!page.has_more) break;
  }
  EXPECT_EQ(leases, 1600U);
  EXPECT_EQ(jobs, 1600U);
  EXPECT_GT(pages, 0U);
}

TEST(Pages, HaveThoseUsersWhoHadMost) {
  Crowded pool;
  for (int i = 0; i < 5000; ++i) pool.state.usage.push_back({"user" + std::to_string(i), double(i), kNow_s});
  const auto usage = page_of_jobs(pool.all(), Caller{}, false, 0).state.usage;
  EXPECT_EQ(usage.at(0).user, "user4999");
  EXPECT_LT(usage.size(), 5000U);
  pool.state.usage.resize(3);
  EXPECT_THAT(page_of_jobs(pool.all(), Caller{}, false, 0).state.usage, SizeIs(3));
}

/// A user starts them by the thousand.
TEST(Machine, OfManyProcessesFitsAnAnswer) {
  Inventory box = box_of(kDevices);
  Process process{.pid = 1, .type = "compute", .user = std::string("eve"), .command = std::string(200, '"')};
  for (Device& device : box.devices) device.status.processes = std::vector<Process>(2000, process);
  for (const char* user : {"ada", "eve"}) {
    const Inventory seen = machine_for(user, box);
    EXPECT_LT(to_line(to_json(seen)).size(), wire::kLargestAnswer);
    for (const Device& device : seen.devices) EXPECT_FALSE(device.status.processes.value().empty());
    EXPECT_EQ(seen.devices[0].status.processes.value()[0].command.has_value(), user == std::string("eve"));
  }
}

}  // namespace
}  // namespace remuda::agent
