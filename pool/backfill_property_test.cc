// Backfill on random histories: it never delays the job in front of which others pass.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <rapidcheck.h>

#include "base/clock.h"
#include "place/host.h"
#include "pool/testing/pool.h"
#include "pool/transitions.h"

namespace remuda::pool {
namespace {

/// In [low, high), from the first history on: gen::inRange alone begins with small numbers.
int any(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high)); }

struct Arrival {
  double at_s = 0;
  Job job;
  double runs_s = 0;  ///< kNever_s: it does not end
};

/// What arrives; the first job is the one in front, by its priority.
struct History {
  int gpus = 1;
  std::vector<Arrival> arrivals;
};

constexpr double kEnd_s = 5000;

Arrival arrival_of(const char* user, int at_s, int count, int limit_s) {
  Arrival arrival{.at_s = static_cast<double>(at_s), .job = test_job(user, count), .runs_s = kNever_s};
  arrival.job.time_limit_s = limit_s;
  return arrival;
}

/// A long job has some devices, the one in front comes next and wants most, and then come others, many of them short.
/// `exact`: every job with a limit runs exactly as long; otherwise as long at the most.
History random_history(bool exact) {
  History history{.gpus = any(2, 5), .arrivals = {}};
  const int all_cores = static_cast<int>(place::host_cores(test_box(history.gpus)).value().size());
  const int cores = any(0, 3) == 0 ? all_cores : 0;  // where jobs want cores of the host, too, fewer can pass
  const auto some_cores = [&] { return std::clamp(any(-3, cores + 1), 0, cores); };
  history.arrivals.push_back(arrival_of("ada", any(1, 30), any(history.gpus - 1, history.gpus + 1), 100));
  history.arrivals.back().job.priority = 9;
  history.arrivals.back().job.request.cores = any(0, cores + 1);
  history.arrivals.push_back(arrival_of("bob", 0, any(1, history.gpus), any(150, 300)));
  history.arrivals.back().job.request.cores = some_cores();
  // Until devices are kept for the one in front, any job may delay it; so may one that passes another job, for which
  // some are kept already, as it came before.
  const int from_s = exact ? static_cast<int>(history.arrivals.front().at_s) : 0;
  const int others = any(4, 12);
  for (int i = 0; i < others; ++i) {
    const bool is_limited = any(0, 8) != 0;
    history.arrivals.push_back(arrival_of(*rc::gen::element("ada", "bob", "eve"), any(from_s, 200),
                                          any(1, history.gpus + 1), is_limited ? any(1, 250) : 0));
    Job& job = history.arrivals.back().job;
    job.request.share = *rc::gen::element(1.0, 1.0, 0.5);
    job.request.cores = some_cores();
    job.priority = any(-2, 3);
    if (is_limited) job.grace_s = *rc::gen::element(0.0, 0.0, 20.0);
  }
  for (Arrival& arrival : history.arrivals)
    if (const int limit_s = static_cast<int>(arrival.job.time_limit_s); limit_s > 0)
      arrival.runs_s = exact ? limit_s : any(1, limit_s + 1);
  return history;
}

struct Told {
  double front_started_s = kNever_s;
  double promised_s = kNever_s;  ///< when it could start, as devices were first kept for it
  int passed = 0;                ///< how many jobs have passed it
};

/// Plays a history from event to event.
class Play {
 public:
  Play(const History& history, bool backfill) : history_(history), box_(test_box(history.gpus)) {
    policy_ = {.half_life_s = 1000, .patience_s = 50, .backfill = backfill};
  }

  Told run() {
    for (double now_s = 1; now_s < kEnd_s; now_s = next_after(now_s)) step(now_s);
    for (const Job& job : state_.jobs) told_.passed += front_ > 0 && job.passed == front_;
    return told_;
  }

 private:
  double next_after(double now_s) const {
    double next_s = kEnd_s;
    for (const Arrival& arrival : history_.arrivals)
      for (const double at_s : {arrival.at_s + 1, arrival.at_s + 1 + policy_.patience_s})
        if (at_s > now_s) next_s = std::min(next_s, at_s);
    for (const auto& [job, ends_s] : ends_)
      if (ends_s > now_s) next_s = std::min(next_s, ends_s);
    return next_s;
  }

  void step(double now_s) {
    for (const auto& [id, ends_s] : ends_)
      if (ends_s <= now_s) end(state_, id, {}, policy_, now_s);
    for (size_t i = 0; i < history_.arrivals.size(); ++i)
      if (history_.arrivals[i].at_s + 1 == now_s) submit_one(i, now_s);
    for (const int64_t id : schedule(state_, box_, {}, policy_, now_s)) {
      ends_[id] = now_s + history_.arrivals[arrival_of_.at(id)].runs_s;
      if (id == front_) told_.front_started_s = now_s;
    }
    RC_ASSERT(remuda::pool::check(state_) == "");
    note_promise(now_s);
  }

  void submit_one(size_t index, double now_s) {
    const auto id = submit(state_, history_.arrivals[index].job, box_, now_s);
    RC_ASSERT(id);
    arrival_of_[*id] = index;
    if (index == 0) front_ = *id;
  }

  /// By the limits of what runs, when it waits and its patience is over.
  void note_promise(double now_s) {
    const Job* front = front_ > 0 ? state_.find(front_) : nullptr;
    if (!front || front->state != JobState::waiting || now_s - front->submitted_s < policy_.patience_s) return;
    std::vector<place::Held> held = held_by_leases(state_);
    std::ranges::sort(held, {}, [](const place::Held& one) { return one.until_s.value_or(kNever_s); });
    const place::Layout layout(box_);
    while (!held.empty() && !place::fits(layout, front->request, held).value_or(false)) {
      promised_now_s_ = held.front().until_s.value_or(kNever_s);
      held.erase(held.begin());
    }
    told_.promised_s = std::min(told_.promised_s, promised_now_s_);
  }

  const History& history_;
  const Inventory box_;
  Policy policy_;
  PoolState state_;
  std::map<int64_t, double> ends_;
  std::map<int64_t, size_t> arrival_of_;
  int64_t front_ = 0;
  double promised_now_s_ = kNever_s;
  Told told_;
};

/// That many histories of a hundred have such a job at least, so that the properties are about something.
constexpr int kFewestPassed = 10;

TEST(BackfillProperty, TheJobInFrontStartsNoLaterThanWithoutIt) {
  int passed = 0;
  EXPECT_TRUE(rc::check([&] {
    const History history = random_history(true);
    const Told with = Play(history, true).run(), without = Play(history, false).run();
    passed += with.passed > 0;
    RC_ASSERT(without.passed == 0);
    RC_ASSERT(with.front_started_s <= without.front_started_s);
  }));
  EXPECT_GE(passed, kFewestPassed);
}

TEST(BackfillProperty, TheJobInFrontStartsAsSoonAsItsDevicesWereSaidToBeFree) {
  int passed = 0;
  EXPECT_TRUE(rc::check([&] {
    const Told told = Play(random_history(false), true).run();
    passed += told.passed > 0;
    RC_ASSERT(told.promised_s == kNever_s || told.front_started_s <= told.promised_s);
  }));
  EXPECT_GE(passed, kFewestPassed);
}

}  // namespace
}  // namespace remuda::pool
