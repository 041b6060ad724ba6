#include "workers/supervisor.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <functional>

#include "base/clock.h"
#include "process/stop_signals.h"

namespace remuda::workers {
namespace {

constexpr double kLongestPoll_s = 0.2;
constexpr double kNoticeSteps = 10;      // of RankListener::step_s: ranks wait for each other for 20 steps at least
constexpr double kLongestAgreement = 3;  // of Elasticity::notice_s: to notice a loss, and twice that to agree
constexpr double kKillWait_s = 5;        // a process in an uninterruptible call outlasts even SIGKILL

class Supervision {
 public:
  Supervision(std::vector<WatchedRank> ranks, process::StopSignals signals, const RankListener& listener,
              const Patience& patience, Elasticity elasticity)
      : ranks_(std::move(ranks)),
        signals_(std::move(signals)),
        listener_(listener),
        patience_(patience),
        elasticity_(std::move(elasticity)) {}

  Outcome run() {
    while (running() && !given_up()) {
      wait();
      now_s_ = monotonic_s();
      for (auto& rank : ranks_) rank.read(now_s_);
      if (elasticity_.they_agree) leave_out_lost();
      if (has_reported()) dismiss_all();
      take_signals();
      decide();
    }
    return outcome();
  }

 private:
  enum class Phase {
    working,    ///< all is well
    reporting,  ///< a rank has failed; the others may report what they saw
    stopping,   ///< the user's signal was forwarded
    ending,     ///< SIGTERM was sent after a failure
    killing,    ///< SIGKILL was sent
  };

  bool running() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.running(); });
  }
  bool given_up() const { return phase_ == Phase::killing && now_s_ >= deadline_s_; }

  void wait() {
    std::vector<pollfd> polled{{signals_.fd(), POLLIN, 0}};
    for (const auto& rank : ranks_) rank.add_to(polled);
    double wait_s = kLongestPoll_s;
    if (phase_ != Phase::working) wait_s = std::clamp(deadline_s_ - now_s_, 0.0, kLongestPoll_s);
    ::poll(polled.data(), polled.size(), static_cast<int>(wait_s * 1000) + 1);
  }

  void take_signals() {
    while (const auto signal = signals_.next()) {
      if (phase_ != Phase::working) {
        // A terminal that closes sends SIGHUP also after a Ctrl-C, and who holds the lease repeats SIGTERM before it
        // kills: the ranks are stopping already, and may be writing a checkpoint.
        const bool is_told_again = phase_ == Phase::stopping && *signal == SIGTERM && signal_ == SIGTERM;
        if (*signal != SIGHUP && !is_told_again) enter(Phase::killing);
        continue;
      }
      signal_ = *signal;
      enter(Phase::stopping);
    }
  }

  void decide() {
    const bool late = now_s_ >= deadline_s_;
    switch (phase_) {
      case Phase::working:
        end_silent_rank();
        if (phase_ == Phase::working && is_failing()) go_on_or_end();
        break;
      case Phase::stopping:
        if (is_failing()) go_on_or_end();
        if (now_s_ >= deadline_s_ && (is_failing() || !any_makes_output())) enter(Phase::killing);
        break;
      case Phase::reporting:
        if (!is_failing())
          phase_ = Phase::working;  // the first one has trained meanwhile, and needs the others no more
        else if (late || all_reported())
          enter(Phase::ending);
        break;
      case Phase::ending:
        if (late) enter(Phase::killing);
        break;
      case Phase::killing:
        break;
    }
  }

  /// Of an elastic run those go on that are left, if they can; else all end.
  void go_on_or_end() {
    if (elasticity_.they_agree) {
      const double agree_s = kLongestAgreement * elasticity_.notice_s + kNoticeSteps * listener_.step_s();
      if (wait_for_agreement(facts(), elasticity_.may_be_lost, now_s_, agree_s) == Regrouping::Now::fail) end();
      return;
    }
    const bool can_meet = !dismissed_ && generation_ < elasticity_.meetings.size();
    const Regrouping regrouping =
        regroup(facts(), can_meet ? elasticity_.may_be_lost - lost_ : 0, now_s_,
                elasticity_.notice_s + kNoticeSteps * listener_.step_s(), elasticity_.report_s);
    if (regrouping.now == Regrouping::Now::fail) end();
    if (regrouping.now == Regrouping::Now::meet) meet(regrouping.lost);
  }

  /// Ranks that have been told to stop already need no second signal.
  void end() {
    if (phase_ != Phase::stopping) return enter(Phase::reporting);
    dismiss_all();
    deadline_s_ = std::min(deadline_s_, now_s_ + patience_.end_s);
  }

  /// Those of which others have said, as agreed, that these go on without them.
  void leave_out_lost() {
    const auto newest = std::ranges::max_element(ranks_, {}, [](const auto& rank) { return rank.facts().generation; });
    if (newest == ranks_.end() || newest->facts().generation <= agreed_) return;
    agreed_ = newest->facts().generation;
    met_s_ = now_s_;
    const std::vector<int> left = newest->facts().left;
    keep_only([&](int rank) { return std::ranges::find(left, rank) != left.end(); });
    if (phase_ == Phase::stopping) wait_for(listener_.step_s() + patience_.regroup_s);
  }

  /// Returns their numbers. What is left of the others is killed.
  std::vector<int> keep_only(const std::function<bool(int rank)>& is_left) {
    std::vector<WatchedRank> left;
    std::vector<int> numbers;
    for (WatchedRank& rank : ranks_) {
      if (!is_left(rank.facts().rank)) continue;
      numbers.push_back(rank.facts().rank);
      left.push_back(std::move(rank));
    }
    ranks_.swap(left);
    return numbers;
  }

  void meet(const std::vector<Failure>& lost) {
    lost_ += static_cast<int>(lost.size());
    const std::vector<int> numbers =
        keep_only([&](int rank) { return std::ranges::find(lost, rank, &Failure::rank) == lost.end(); });
    const Listener& meeting = elasticity_.meetings.at(generation_++);
    Json members{{"generation", generation_},
                 {"ranks", numbers},
                 {"port", meeting.port},
                 {"listen_fd", meeting.socket.get()},
                 {"lost", Json::array()}};
    for (const Failure& one : lost)
      members["lost"].push_back({{"rank", one.rank}, {"device", one.device}, {"cause", one.cause}});
    met_s_ = now_s_;
    for (WatchedRank& rank : ranks_) rank.tell(members);
    listener_.on_loss(numbers, lost);
    if (phase_ == Phase::stopping) wait_for(listener_.step_s() + patience_.regroup_s);
  }

  void enter(Phase phase) {
    if (phase_ == Phase::killing) return;
    phase_ = phase;
    switch (phase) {
      case Phase::working:
        break;
      case Phase::reporting:
        return wait_for(patience_.report_s);
      case Phase::stopping:
        return stop_all();
      case Phase::ending:
        dismiss_all();
        return signal_all(SIGTERM, patience_.end_s);
      case Phase::killing:
        return signal_all(SIGKILL, kKillWait_s);
    }
  }

  void stop_all() {
    const double meeting_s = generation_ > 0 || agreed_ > 0 ? met_s_ + patience_.regroup_s - now_s_ : 0;
    const double within_s = listener_.step_s() + std::max(patience_.stop_s, meeting_s);
    signal_all(SIGTERM, within_s);
    listener_.on_stop(signal_, within_s);
  }

  void dismiss_all() {
    dismissed_ = true;
    for (auto& rank : ranks_) rank.dismiss();
  }

  void wait_for(double seconds) { deadline_s_ = now_s_ + seconds; }

  void signal_all(int signal, double then_wait_s) {
    for (auto& rank : ranks_) rank.signal(signal);
    wait_for(then_wait_s);
  }

  bool is_failing() const { return !has_reported() && !is_well(facts()); }
  bool has_reported() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.facts().reported; });
  }
  /// A rank that is writing weights, or a checkpoint, may go on for as long as it says so.
  bool any_makes_output() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [this](const auto& rank) {
      return rank.makes_output() && now_s_ < rank.last_event_s() + patience_.silence_s;
    });
  }
  bool all_reported() const {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const auto& rank) { return rank.facts().has_failed() || !rank.running(); });
  }

  /// The last rank that has something to do must say so from time to time; one that has nothing must end.
  void end_silent_rank() {
    // Once the first one has made all steps, nobody else has work that matters, whatever becomes of them.
    WatchedRank& first = ranks_.front();
    if (first.facts().trained && !first.facts().done && first.running())
      return end_if_silent(first, first.last_event_s(), "after the last step");
    size_t at_work = 0;
    bool any_at_rest = false;
    double last_event_s = 0;
    WatchedRank* last = nullptr;
    const auto is_at_rest = [&](const WatchedRank& rank) {
      return rank.facts().done || (rank.facts().trained && &rank != &ranks_.front());
    };
    for (auto& rank : ranks_) {
      last_event_s = std::max(last_event_s, rank.last_event_s());
      any_at_rest = any_at_rest || is_at_rest(rank);
      if (!rank.running()) continue;
      if (!is_at_rest(rank)) ++at_work;
      if (!last || !is_at_rest(rank)) last = &rank;
    }
    const bool job_ends = at_work == 0 || (at_work == 1 && any_at_rest) || has_reported();
    if (job_ends && last) end_if_silent(*last, last_event_s, "and did not end, while the other ranks are done");
  }

  void end_if_silent(WatchedRank& last, double last_event_s, const char* when) {
    if (now_s_ < last_event_s + patience_.silence_s) return;
    if (last.facts().done || has_reported()) {
      listener_.on_line(last.facts().rank, fmt::format("did not end for {:g} s once the work was done, and is ended",
                                                       patience_.silence_s));
      return enter(Phase::ending);
    }
    last.blame({ErrorKind::failed, fmt::format("sent no event for {:g} s {}", patience_.silence_s, when)}, now_s_);
  }

  std::vector<RankFacts> facts() const {
    std::vector<RankFacts> facts;
    for (const auto& rank : ranks_) facts.push_back(rank.facts());
    return facts;
  }

  Outcome outcome() const { return {root_cause(facts(), signal_ != 0), signal_}; }

  std::vector<WatchedRank> ranks_;
  process::StopSignals signals_;
  const RankListener& listener_;
  const Patience patience_;
  const Elasticity elasticity_;
  size_t generation_ = 0;  ///< so many times those that were left have met
  double met_s_ = 0;       ///< when they last began to
  int agreed_ = 0;         ///< or so many times they have agreed themselves
  int lost_ = 0;
  bool dismissed_ = false;  ///< those that wait do not go on
  Phase phase_ = Phase::working;
  int signal_ = 0;
  double now_s_ = 0;
  double deadline_s_ = 0;  ///< of the phase; not used while working
};

}  // namespace

Result<Outcome> supervise(std::vector<RankSpec> specs, const RankListener& listener, const Patience& patience,
                          Elasticity elasticity) {
  REMUDA_ASSIGN(process::StopSignals signals, process::StopSignals::hold_with_hang_up());
  std::vector<WatchedRank> ranks;
  ranks.reserve(specs.size());
  for (auto& spec : specs) {
    spec.elastic = elasticity.may_be_lost > 0 && !elasticity.they_agree;
    for (const Listener& meeting : elasticity.meetings) spec.process.inherited.push_back(meeting.socket.get());
    REMUDA_ASSIGN(WatchedRank rank, WatchedRank::start(static_cast<int>(ranks.size()), std::move(spec), listener));
    ranks.push_back(std::move(rank));
  }
  return Supervision(std::move(ranks), std::move(signals), listener, patience, std::move(elasticity)).run();
}

}  // namespace remuda::workers
