// Whatever events happen, in whatever order: the invariants hold, and no job is lost.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <rapidcheck/gtest.h>
#include <set>

#include "place/host.h"
#include "pool/pool.h"
#include "pool/testing/pool.h"
#include "pool/transitions.h"

namespace remuda::pool {
namespace {

using rc::gen::inRange;

/// A machine, a queue and the processes of its jobs, some of which die.
struct World {
  Inventory box;
  Policy policy{.half_life_s = 1000, .patience_s = 50};
  double now_s = 1000;
  int next_pid = 1;
  std::set<int> dead;
  std::set<int64_t> orphaned;  ///< jobs with processes that nobody keeps
  std::set<int64_t> submitted, arrays;

  bool lives(const process::ProcessId& process) const { return !dead.contains(process.pid); }
};

Job random_job(World& world, int gpus) {
  Job job = test_job(*rc::gen::element<std::string>("ada", "bob", "eve"), *inRange(1, gpus + 2));
  job.request.share = *rc::gen::element(1.0, 0.5, 0.3);
  job.request.cores = *rc::gen::element(0, 0, 1, 3, 6);
  job.request.host_memory_bytes = *rc::gen::element<int64_t>(0, 0, 5, 12) << 30;
  job.priority = *inRange(-1, 2);
  job.preemptible = *rc::gen::arbitrary<bool>();
  job.time_limit_s = *rc::gen::element(0.0, 30.0, 300.0);
  job.keeper.pid = world.next_pid++;
  if (*inRange(0, 4) == 0 && !world.submitted.empty()) job.after = {*rc::gen::elementOf(world.submitted)};
  if (*inRange(0, 6) == 0 && !world.submitted.empty()) job.after_any = {*rc::gen::elementOf(world.submitted)};
  if (*inRange(0, 6) == 0) job.begin_s = world.now_s + 500;
  if (*inRange(0, 3) == 0 && !world.arrays.empty()) {
    job.array = *rc::gen::elementOf(world.arrays);
    job.after.clear();  // it must not wait for one that waits for its array
    job.after_any.clear();
  }
  return job;
}

void submit_one(World& world, PoolState& state) {
  const auto id = submit(state, random_job(world, static_cast<int>(world.box.devices.size())), world.box, world.now_s);
  if (!id) return;
  RC_ASSERT(world.submitted.insert(*id).second);
  Job& job = *state.find(*id);
  if (job.array != 0 || *inRange(0, 5) != 0) return;
  job.array = job.id;
  world.arrays.insert(job.id);
}

void reap_dead(World& world, PoolState& state) {
  const auto orphaned = reap(
      state, [&](const process::ProcessId& process) { return world.lives(process); },
      [&](const Job& job) { return world.orphaned.contains(job.id); }, world.policy, world.now_s);
  for (const int64_t id : orphaned) RC_ASSERT(state.find(id)->state == JobState::running);
  for (const Job& job : state.jobs)
    if (job.state == JobState::waiting) RC_ASSERT(world.lives(job.keeper));
}

void schedule_all(World& world, PoolState& state) {
  std::vector<place::Held> foreign;
  if (*inRange(0, 3) == 0) foreign.push_back({.device = "gpu:0", .holder = "somebody"});
  for (const int64_t id : schedule(state, world.box, foreign, world.policy, world.now_s))
    RC_ASSERT(state.find(id)->state == JobState::running);
  int64_t bytes = 0;
  for (const Job& job : state.jobs)
    if (job.state == JobState::running) bytes += job.request.host_memory_bytes;
  RC_ASSERT(bytes <= place::host_memory(world.box).value());
}

int64_t any_job(const World& world) { return world.submitted.empty() ? 1 : *rc::gen::elementOf(world.submitted); }

void happen(World& world, PoolState& state) {
  const int64_t id = any_job(world);
  switch (*inRange(0, 13)) {
    case 0:
    case 1:
    case 2:
      return submit_one(world, state);
    case 3:
    case 4:
      return schedule_all(world, state);
    case 5:
      return end(state, id, {.exit_status = *inRange(0, 2)}, world.policy, world.now_s);
    case 6:
      return requeue(state, id, world.policy, world.now_s);
    case 7:
      if (cancel(state, id, {0, "root"}, world.now_s) && world.arrays.contains(id))
        for (const Job& job : state.jobs) RC_ASSERT(job.array != id || job.cancelled || job.state == JobState::ended);
      return;
    case 8:
      (void)reprioritize(state, id, *inRange(-3, 4), 0);
      return;
    case 9:
      (void)pause(state, id, 0);
      return;
    case 10:
      (void)resume(state, id, 0);
      return;
    case 11:
      if (const Job* job = state.find(id)) world.dead.insert(job->keeper.pid);
      if (*inRange(0, 3) == 0) world.orphaned.insert(id);
      return reap_dead(world, state);
    default:
      world.now_s += *rc::gen::element(1.0, 60.0, 5000.0, -3000.0);
      world.now_s = std::max(world.now_s, 1.0);
  }
}

void expect_sound(const World& world, const PoolState& state) {
  const std::string broken = check(state);
  if (!broken.empty()) RC_FAIL(broken);
  for (const Job& job : state.jobs) {
    if (job.state == JobState::ended) RC_ASSERT(job.submitted_s <= job.ended_s || job.ended_s <= world.now_s);
    const auto back = parse_job(to_json(job), "job");
    RC_ASSERT(back && *back == job);
  }
  for (const std::string user : {"ada", "bob", "eve"}) {
    const double usage = usage_of(state, user, world.policy, world.now_s);
    RC_ASSERT(usage >= 0 && usage < 1e6);
  }
}

RC_GTEST_PROP(TransitionsProperty, KeepTheInvariantsAndEveryJob, ()) {
  World world{.box = test_box(*inRange(1, 7))};
  PoolState state;
  const int steps = *inRange(1, 40);
  for (int i = 0; i < steps; ++i) {
    happen(world, state);
    expect_sound(world, state);
    for (const int64_t id : world.submitted) RC_ASSERT(state.find(id));
  }
}

/// Those whose jobs have all ended.
void end_arrays(const World& world, PoolState& state) {
  for (const int64_t id : world.arrays) {
    const auto is_open = [&](const Job& job) {
      return job.array == id && job.id != id && job.state != JobState::ended;
    };
    if (std::ranges::none_of(state.jobs, is_open)) end(state, id, {}, world.policy, world.now_s);
  }
}

RC_GTEST_PROP(TransitionsProperty, WhoeverWaitsStartsInTheEnd, ()) {
  World world{.box = test_box(*inRange(1, 7))};
  PoolState state;
  const int jobs = *inRange(1, 12);
  for (int i = 0; i < jobs; ++i) submit_one(world, state);
  for (size_t round = 0; round <= 2 * world.submitted.size(); ++round, world.now_s += 1000) {
    schedule(state, world.box, {}, world.policy, world.now_s);
    for (const int64_t id : world.submitted)
      if (state.find(id)->state == JobState::running) {
        end(state, id, {}, world.policy, world.now_s);
        break;
      }
    end_arrays(world, state);
  }
  for (const int64_t id : world.submitted) RC_ASSERT(succeeded(*state.find(id)));
}

/// What a pool returns after each change is what was written.
RC_GTEST_PROP(TransitionsProperty, AreKeptByAPool, ()) {
  const TestFolder folder;
  auto pool = Pool::open(folder.path());
  RC_ASSERT(pool);
  World world{.box = test_box(*inRange(1, 5))};
  const int steps = *inRange(1, 12);
  for (int i = 0; i < steps; ++i) {
    std::map<int64_t, Job> written;
    size_t leases = 0;
    const std::vector<int64_t> all(world.submitted.begin(), world.submitted.end());
    const auto outcome = pool->change(
        [&](PoolState& state) -> Result<void> {
          happen(world, state);
          for (const Job& job : state.jobs) written[job.id] = job;
          leases = state.leases.size();
          return {};
        },
        all);
    RC_ASSERT(outcome);
    const auto state = pool->read();
    RC_ASSERT(state && state->leases.size() == leases && state->next_job == static_cast<int64_t>(written.size()) + 1);
    for (const int64_t id : world.submitted) {
      const auto job = pool->find(id);
      RC_ASSERT(job && *job);
      Job found = **job;
      found.clock = written.at(id).clock;  // the pool notes it after the change
      RC_ASSERT(found == written.at(id));
    }
  }
}

}  // namespace
}  // namespace remuda::pool
