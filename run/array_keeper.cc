#include "run/array_keeper.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <optional>
#include <thread>
#include <unistd.h>

#include "place/place.h"
#include "pool/admission.h"
#include "pool/logs.h"
#include "process/spawn.h"
#include "run/at_end.h"
#include "run/caretaker.h"

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
      if (!kept && !caretaker_.pool().may_try_again()) return kept;
      if (!kept) std::this_thread::sleep_for(kPause);  // the disk is full, or the database busy: the array stays
    }
    return {};
  }
  int64_t id() const { return id_; }

 private:
  static constexpr double kLook_s = 10;
  static constexpr auto kPause = std::chrono::seconds(1);

  Result<void> keep_once() {
    if (!ending_) REMUDA_TRY(caretaker_.pool().wait(id_, {}, kLook_s, {front_.get()}));
    listen();
    if (ending_) return record_end();
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
    send(front_.get(),
         Message{Kind::ended, id_, process::kOwnFailure, array ? array->why : "it is not in the pool any more"});
    has_ended_ = true;
    (void)report_end(caretaker_.pool(), spec_, id_);
    return {};
  }

  Result<void> record_end() {
    REMUDA_TRY(caretaker_.apply(pool::End{id_, *ending_}));
    REMUDA_TRY(caretaker_.apply(pool::StartJobs{}));
    has_ended_ = true;
    (void)report_end(caretaker_.pool(), spec_, id_);
    return {};
  }

  const RunSpec& spec_;
  Fd front_;
  Caretaker caretaker_;
  int64_t id_ = 0;
  bool has_ended_ = false;
  std::optional<pool::Ending> ending_;  ///< reported by the front
  std::string text_ = "its indices start one after another", recorded_ = text_;
};

}  // namespace

void keep_array(const RunSpec& spec, const OpenPool& open, Fd front) {
  ::setpgid(0, 0);  // signals from a terminal reach only the front
  const int channel = front.get();
  const auto refuse = [&](int64_t id, const Error& error) {
    send(channel, Message{Kind::ended, id, status_of_refusal(error), error.message});
  };
  auto caretaker = open();
  if (!caretaker) return refuse(0, caretaker.error());
  if (const auto known = caretaker->pool().become_keeper(); !known) return refuse(0, known.error());
  ArrayKeeper keeper(spec, std::move(front), std::move(*caretaker));
  if (const auto kept = keeper.run(); !kept) refuse(keeper.id(), kept.error());
}

}  // namespace remuda::run
