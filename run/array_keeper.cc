#include "run/array_keeper.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "place/place.h"
#include "pool/admission.h"
#include "pool/logs.h"
#include "process/spawn.h"
#include "run/at_end.h"
#include "run/caretaker.h"
#include "run/keeper_for.h"
#include "run/pool_retry.h"

namespace remuda::run {
namespace {

using Kind = Message::Kind;

class ArrayKeeper {
 public:
  ArrayKeeper(const RunSpec& spec, Fd front, Caretaker caretaker)
      : spec_(spec), front_(std::move(front)), caretaker_(std::move(caretaker)) {}

  Result<void> run() {
    REMUDA_TRY(check_possible());
    REMUDA_TRY(submit());
    send(front_.get(), Message{Kind::started, id_, most_at_once(), ""});
    while (!has_ended_) {
      const auto kept = keep_once();
      if (!kept && (!caretaker_.pool().may_try_again() || monotonic_s() >= leave_at_s_)) return kept;
      // The disk is full, the database busy, or the agent away: the array stays.
      if (!kept) pause(PoolRetry::pause_s(monotonic_s() - kept_s_));
      if (kept) kept_s_ = monotonic_s();
    }
    return {};
  }
  /// Tells the front that the array is over, unless that has left.
  void tell_end(int status, const std::string& why) {
    if (front_) send(front_.get(), Message{Kind::ended, id_, status, why});
  }

 private:
  static constexpr double kLook_s = 10;
  /// For so long the pool is told of its end.
  static constexpr double kPatience_s = 24 * 3600;

  /// Or until the front has something to say.
  void pause(double seconds) const {
    pollfd polled{front_ ? front_.get() : -1, POLLIN, 0};
    ::poll(&polled, 1, static_cast<int>(seconds * 1000));
  }

  Result<void> keep_once() {
    const auto waited = ending_ ? Result<void>{} : caretaker_.pool().wait(id_, {}, kLook_s, {front_.get()});
    listen();
    if (ending_) leave_at_s_ = std::min(leave_at_s_, monotonic_s() + kPatience_s);
    if (ending_) return record_end().or_else([&](const Error& error) { return go_on_alone(error); });
    REMUDA_TRY(waited);
    if (text_ != recorded_) REMUDA_TRY(record_text());
    REMUDA_TRY(caretaker_.tidy());
    return read_pool();
  }

  Result<void> check_possible() const {
    REMUDA_ASSIGN(const place::Answer answer,
                  place::place(place::Layout(caretaker_.inventory()), spec_.job.request, {}));
    const auto* refusal = std::get_if<place::Refusal>(&answer);
    if (refusal && refusal->never) return tl::unexpected(Error{ErrorKind::never, refusal->sentence});
    return {};
  }

  Result<void> submit() {
    REMUDA_TRY(caretaker_.tidy());
    REMUDA_ASSIGN(const pool::PoolState state, caretaker_.pool().read_own());
    sweep_logs(spec_.logs, state);
    pool::Submit asked{.job = spec_.job, .stands_for_array = true};
    asked.job.command.insert(asked.job.command.begin(), {"--array", spec_.array.text});
    asked.job.keeper = process::own_process_id();
    asked.job.why = text_;
    REMUDA_ASSIGN(const pool::Applied entered, caretaker_.apply(asked));
    id_ = entered.job;
    return {};
  }

  /// As many as can run on the machine at once, and one more that is ready to follow.
  int most_at_once() const {
    constexpr double kMost = pool::kMostIndices;
    const double devices = static_cast<double>(caretaker_.inventory().devices.size());
    return static_cast<int>(std::min(kMost, devices / (spec_.job.request.count * spec_.job.request.share) + 1));
  }

  void listen() {
    while (!ending_) {
      const Received<Message> received = receive_message(front_.get());
      if (received.gone) ending_ = {pool::kEndedByRemuda, 0, "ended with the `remuda run` that it belonged to"};
      if (!received.value) return;
      if (received.value->kind == Kind::ended)
        ending_ = {received.value->status, 0, received.value->text};
      else
        text_ = received.value->text;
    }
  }

  Result<void> record_text() {
    REMUDA_TRY(caretaker_.apply(pool::Explain{id_, text_}));
    recorded_ = text_;
    return {};
  }

  /// An array that has ended in the pool was cancelled, or a job that it had to wait for failed.
  Result<void> read_pool() {
    REMUDA_ASSIGN(const auto array, caretaker_.pool().find(id_));
    if (array && array->state != pool::JobState::ended) return {};
    tell_end(process::kOwnFailure, array ? array->why : "it is not in the pool any more");
    has_ended_ = true;
    (void)report_end(caretaker_.pool(), spec_, id_);
    return {};
  }

  Result<void> record_end() {
    REMUDA_TRY(caretaker_.apply(pool::End{id_, *ending_}));
    if (!caretaker_.pool().is_served()) REMUDA_TRY(caretaker_.apply(pool::StartJobs{}));
    has_ended_ = true;
    (void)report_end(caretaker_.pool(), spec_, id_);
    return {};
  }

  /// The end cannot be recorded yet: the front, which waits for this process, has all that it needs.
  Result<void> go_on_alone(const Error& error) {
    if (front_) {
      front_.reset();
      REMUDA_TRY(leave_streams());
    }
    return tl::unexpected(error);
  }

  const RunSpec& spec_;
  Fd front_;
  Caretaker caretaker_;
  int64_t id_ = 0;
  bool has_ended_ = false;
  double kept_s_ = monotonic_s(), leave_at_s_ = kNever_s;  ///< when the pool answered last; both on the steady clock
  std::optional<pool::Ending> ending_;                     ///< reported by the front
  std::string text_ = "its indices start one after another", recorded_ = text_;
};

}  // namespace

void keep_array(const RunSpec& spec, const OpenPool& open, Fd front) {
  ::setpgid(0, 0);  // signals from a terminal reach only the front
  auto caretaker = open();
  const auto known = caretaker ? caretaker->pool().become_keeper() : tl::unexpected(caretaker.error());
  if (!known) {
    send(front.get(), Message{Kind::ended, 0, status_of_refusal(known.error()), known.error().message});
    return;
  }
  ArrayKeeper keeper(spec, std::move(front), std::move(*caretaker));
  if (const auto kept = keeper.run(); !kept) keeper.tell_end(status_of_refusal(kept.error()), kept.error().message);
}

}  // namespace remuda::run
