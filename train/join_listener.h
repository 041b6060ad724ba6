// JoinListener: where a run lets in ranks that join it.
//
// Rank 0 listens there for as long as it lives, on a thread. Whoever comes and knows the secret meets it as a
// communicator of two, with the job among its terms (invitation.h): so handshake, encryption, time-outs and what is
// done about hostile peers are those of all ranks. One at a time waits inside, and is asked again and again whether it
// is still there; others wait outside. What is refused is said in a `note`, and disturbs nobody.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "comm/communicator.h"
#include "train/events.h"
#include "train/invitation.h"

namespace remuda::train {

/// One that has come in.
class Candidate {
 public:
  Candidate(Applicant applicant, std::unique_ptr<comm::Communicator> channel)
      : applicant_(std::move(applicant)), channel_(std::move(channel)) {}

  const Applicant& applicant() const { return applicant_; }
  /// Whether it is still there, and has heard that it has to wait.
  Result<void> keep_waiting() const;
  /// It comes, if this is no error.
  Result<void> invite(const Invitation& invitation) const;
  /// Whether it has begun as all others have, and stays from now on until it hears of their agreement.
  Result<void> is_ready(double timeout_s) const;
  /// The run goes on with it.
  void take_in() const;
  /// It does not: for a reason of its own (JoinSignal::refused), or not (JoinSignal::failed).
  void turn_away(JoinSignal word, const std::string& why) const;

 private:
  Applicant applicant_;
  std::unique_ptr<comm::Communicator> channel_;
};

class JoinListener {
 public:
  /// `options` are those by which two ranks meet, this one at the master address as the first of two. A usage error
  /// where the address is not free, or of another host, or where its secret is too short for those who come from there.
  static Result<std::unique_ptr<JoinListener>> open(comm::ConnectOptions options, const Events& events);
  /// Turns away who waits.
  ~JoinListener();

  /// Any thread.
  bool has_candidate() const { return has_candidate_; }
  /// Who waits, if somebody does; it may have gone since.
  std::optional<Candidate> take();

 private:
  JoinListener(comm::ConnectOptions options, Fd listener, const Events& events);
  void keep();
  std::optional<Candidate> greet();
  void note(const std::string& what);

  const comm::ConnectOptions options_;  ///< without the listener
  const Fd listener_;
  const Events& events_;
  double noted_s_ = 0;
  std::mutex mutex_;  ///< of what follows
  std::condition_variable closing_;
  std::optional<Candidate> candidate_;
  bool is_closed_ = false;
  std::atomic<bool> has_candidate_ = false;
  std::thread thread_;
};

}  // namespace remuda::train
