// Newcomer: a rank that joins a run, until the others go on with it. See join_listener.h and invitation.h.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "train/events.h"
#include "train/invitation.h"

namespace remuda::train {

class Newcomer {
 public:
  /// Asks the run that listens at HOST:PORT to join it, and waits until the run lets this rank in. `job` has one
  /// device, that of this rank. A usage error where no run listens there, or one of another job or secret. A `note`
  /// says what it waits for, where that takes long.
  static Result<Newcomer> ask(const job::TrainJob& job, const std::string& address, const Events& events);

  const Invitation& invitation() const { return invitation_; }
  /// The job as the run has it, with all devices.
  job::TrainJob job_of(job::TrainJob own) const;
  /// Says that this rank stays, and waits until the run has agreed to go on with it, or rank 0 is lost before it can
  /// say so. An error where the run goes on without it.
  Result<void> wait_to_be_taken_in(double timeout_s) const;

 private:
  Newcomer(Invitation invitation, std::unique_ptr<comm::Communicator> channel)
      : invitation_(std::move(invitation)), channel_(std::move(channel)) {}
  Invitation invitation_;
  std::unique_ptr<comm::Communicator> channel_;
};

}  // namespace remuda::train
