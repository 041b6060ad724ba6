#include "train/join_listener.h"

#include <chrono>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "comm/encryption.h"
#include "comm/wire.h"
#include "train/agreement.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

constexpr double kTurn_s = 0.2;  // between two looks at who has come, and two questions whether it is still there
constexpr double kMeet_s = 3;    // a handshake takes milliseconds
constexpr double kNoteEvery_s = 5;
constexpr int kMostTurnedAway = 100;  // in a turn

comm::ConnectOptions copy_of(const comm::ConnectOptions& options, Fd listener) {
  return {.rank = options.rank,
          .size = options.size,
          .master_address = options.master_address,
          .master_port = options.master_port,
          .bind_address = options.bind_address,
          .listener = std::move(listener),
          .secret = options.secret,
          .encryption = options.encryption,
          .terms = options.terms,
          .transport = options.transport,
          .timeout_s = options.timeout_s,
          .connect_timeout_s = options.connect_timeout_s,
          .first_come = true};
}

}  // namespace

Result<void> Candidate::keep_waiting() const {
  REMUDA_ASSIGN([[maybe_unused]] const JoinSignal word, exchange_signals(*channel_, JoinSignal::wait));
  return {};
}

Result<void> Candidate::invite(const Invitation& invitation) const {
  REMUDA_TRY(exchange_signals(*channel_, JoinSignal::come));
  REMUDA_TRY(share_text(*channel_, 0, to_text(invitation), label::kJoin));
  REMUDA_TRY(exchange_signals(*channel_, JoinSignal::come));
  return {};
}

Result<void> Candidate::is_ready(double timeout_s) const {
  channel_->set_timeout(timeout_s);
  return keep_waiting();
}

void Candidate::take_in() const { (void)exchange_signals(*channel_, JoinSignal::taken); }

void Candidate::turn_away(JoinSignal word, const std::string& why) const {
  if (exchange_signals(*channel_, word)) (void)share_text(*channel_, 0, why, label::kJoin);
}

Result<std::unique_ptr<JoinListener>> JoinListener::open(comm::ConnectOptions options, const Events& events) {
  options.rank = 0;
  options.size = 2;
  options.transport = comm::ConnectOptions::Transport::tcp;
  options.connect_timeout_s = kMeet_s;
  REMUDA_ASSIGN(Fd listener, comm::listen_on({options.master_address, options.master_port}));
  REMUDA_TRY(comm::check_secret(options.secret, comm::local_endpoint(listener.get()), 0));
  return std::unique_ptr<JoinListener>(new JoinListener(std::move(options), std::move(listener), events));
}

JoinListener::JoinListener(comm::ConnectOptions options, Fd listener, const Events& events)
    : options_(std::move(options)), listener_(std::move(listener)), events_(events), thread_([this] { keep(); }) {}

JoinListener::~JoinListener() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    closing_.notify_all();
  }
  thread_.join();
  if (candidate_) candidate_->turn_away(JoinSignal::failed, "the run is over");
}

std::optional<Candidate> JoinListener::take() {
  const std::lock_guard lock(mutex_);
  has_candidate_ = false;
  return std::exchange(candidate_, std::nullopt);
}

void JoinListener::keep() {
  for (std::unique_lock lock(mutex_); !is_closed_;) {
    if (!candidate_) {
      lock.unlock();
      const bool has_come = comm::wait_ready(listener_.get(), POLLIN, comm::deadline_after(kTurn_s));
      std::optional<Candidate> candidate = has_come ? greet() : std::nullopt;
      lock.lock();
      if (candidate) candidate_ = std::move(candidate);
    } else if (const auto there = candidate_->keep_waiting(); !there) {
      note(fmt::format("{} does not join the run any more: {}", candidate_->applicant().device.use,
                       there.error().message));
      candidate_.reset();
    } else {
      for (int left = kMostTurnedAway; left > 0 && comm::accept_waiting(listener_.get()); --left)
        continue;  // they come again
      closing_.wait_for(lock, std::chrono::duration<double>(kTurn_s));
    }
    has_candidate_ = candidate_.has_value();
  }
}

/// Who comes, and proves to be a rank that may join. Others delay it by some seconds at most.
std::optional<Candidate> JoinListener::greet() {
  auto channel = comm::connect(copy_of(options_, Fd(::fcntl(listener_.get(), F_DUPFD_CLOEXEC, 0))));
  auto text = channel ? share_text(**channel, 1, "", label::kJoin) : tl::unexpected(channel.error());
  auto applicant = text ? parse_applicant(*text) : tl::unexpected(text.error());
  if (applicant) return Candidate(std::move(*applicant), std::move(*channel));
  note(fmt::format("nobody was let in at {}:{}: {}", options_.master_address, options_.master_port,
                   applicant.error().message));
  return std::nullopt;
}

/// However many come, people see no more of it than they can read.
void JoinListener::note(const std::string& what) {
  if (noted_s_ > 0 && monotonic_s() < noted_s_ + kNoteEvery_s) return;
  noted_s_ = monotonic_s();
  events_.send({{"event", "note"}, {"text", printable(what)}});
}

}  // namespace remuda::train
