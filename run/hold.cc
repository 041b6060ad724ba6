#include "run/hold.h"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/tree.h"
#include "run/idle_response.h"
#include "run/job_environment.h"
#include "run/keeper_for.h"
#include "run/pool_retry.h"
#include "run/queue_entry.h"
#include "share/job_sharing.h"

namespace remuda::run {
namespace {

using Kind = Message::Kind;
using ToWords = std::function<std::string(const confine::Visibility&)>;

class HoldKeeper {
 public:
  HoldKeeper(const RunSpec& spec, const process::ProcessId& shell, Caretaker caretaker, FrontLink& link)
      : spec_(spec),
        shell_(shell),
        caretaker_(std::move(caretaker)),
        link_(link),
        sharing_(caretaker_.pool(), sharing_options(spec)) {}

  Result<void> run(const ToWords& words) {
    QueueEntry turn(spec_, caretaker_, link_);
    REMUDA_TRY(turn.submit());
    id_ = turn.job();
    REMUDA_ASSIGN(const bool is_granted, turn.wait());
    if (!is_granted) {
      link_.send(Kind::ended, id_, turn.why(), turn.status());
      return {};
    }
    if (turn.time_limit_s() > 0) limit_at_s_ = monotonic_s() + turn.time_limit_s();
    auto handed_over = hand_over(words);
    const std::string why = handed_over ? stay() : handed_over.error().message;
    sharing_.end();
    REMUDA_TRY(give_back(why));
    sharing_.end();  // of two jobs that end at once, each may have left a daemon for the other to stop
    return handed_over;
  }

 private:
  Result<void> hand_over(const ToWords& words) {
    REMUDA_ASSIGN(const pool::PoolState state, caretaker_.pool().read_around(id_));
    const Inventory& inventory = caretaker_.inventory();
    if (const std::string why = missing_device(state, id_, inventory); !why.empty()) return failed(why);
    const std::vector<std::string> devices = devices_of(state, id_, inventory);
    if (const std::string text = sharing_.begin(inventory, id_, devices); !text.empty())
      link_.send(Kind::note, id_, text);
    confine::Visibility environment = job_environment(inventory, spec_.pool, id_, devices);
    std::ranges::move(sharing_.environment(devices), std::back_inserter(environment.set));
    REMUDA_TRY(write_all(STDOUT_FILENO, words(environment), "stdout"));
    REMUDA_TRY(leave_streams());
    link_.send(Kind::started, id_, joined_devices_text(inventory, devices));
    return {};
  }

  /// Waits until the devices are to be given back; returns why.
  std::string stay() {
    constexpr double kLongest_s = 3600, kBlind_s = 1;
    IdleResponse idle(spec_, id_, link_);
    for (;;) {
      for (const ReceivedSignal& signal : link_.take_signals())
        if (signal.number != SIGUSR1 && signal.number != SIGUSR2) return "its keeper was told to end";
      const auto job = caretaker_.pool().find(id_);
      if (job && (!*job || (*job)->cancelled)) return "was given back";
      if (job) idle.take((*job)->idle, [&] { return process::all_descendants(shell_.pid); });
      if (job && !(*job)->evicted.empty()) return (*job)->evicted;
      if (!is_alive(shell_)) return "its shell has ended";
      const double left_s = limit_at_s_ - monotonic_s();
      if (left_s <= 0) return "reached its time limit";
      if (!job || !caretaker_.pool().wait(id_, {shell_}, std::min(kLongest_s, left_s), link_.readable()))
        link_.wait(kBlind_s);
    }
  }

  /// Frees the devices first; then reads the machine again, as a process may still use them, and starts other jobs.
  Result<void> give_back(const std::string& why) {
    const auto record = [&]() -> Result<void> {
      REMUDA_TRY(caretaker_.apply(pool::End{id_, {.why = why}}));
      return {};
    };
    REMUDA_TRY(record_for_a_day(record, id_, caretaker_.pool(), link_));
    if (caretaker_.pool().is_served()) return {};
    REMUDA_TRY(caretaker_.read_machine());
    REMUDA_TRY(caretaker_.apply(pool::StartJobs{}));
    return {};
  }

  const RunSpec& spec_;
  const process::ProcessId shell_;
  Caretaker caretaker_;
  FrontLink& link_;
  share::JobSharing sharing_;
  double limit_at_s_ = kNever_s;  ///< on the steady clock
  int64_t id_ = 0;
};

}  // namespace

Result<int> hold_for(const RunSpec& spec, const OpenPool& open, const process::ProcessId& shell, const ToWords& words,
                     const Report& report) {
  return run_keeper_for(
      {shell, "its shell"}, open,
      [&](Caretaker caretaker, FrontLink& link) {
        return HoldKeeper(spec, shell, std::move(caretaker), link).run(words);
      },
      report);
}

}  // namespace remuda::run
