// ElasticRun: a rank's whole run, from the meeting of all ranks to its outputs. Where others are lost and the job
// allows that, it goes on with those that are left.
//
//   a collective call fails with lost_peer -> the trainer and its communicator go -> the launcher says who is left, or
//   the ranks agree on it (members.h) -> they meet anew, as ranks 0, 1, ... of a smaller job -> a new trainer, which
//   resumes
//
// At the end rank 0 alone has something to do: it leaves behind what the run is for. The others wait for that, to hear
// it from the launcher or from rank 0; if it is lost before, they go on in the same way, from the last step.
//
// A meeting has the number of its generation among its terms, so that a straggler of an older one is refused.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "quorum/assembly.h"
#include "train/members.h"
#include "train/trainer.h"

namespace remuda::train {

class ElasticRun {
 public:
  /// All of them outlive it. `connected` is called once the ranks have met for the first time.
  ElasticRun(const job::TrainJob& job, const Events& events, const std::atomic<bool>& leave, MembersFeed feed,
             TrainerOptions options, std::function<void(int rank)> connected);

  /// Returns once this rank's work is done, `done` included. The error is that of a run that does not go on.
  Result<void> run();

 private:
  Result<std::unique_ptr<comm::Communicator>> meet(const job::TrainJob& job);
  Result<void> train(const job::TrainJob& job);
  Result<void> say_farewell(comm::Communicator& communicator);
  enum class Next { go_on, done, end };
  Result<Next> after(const Error& error);
  Result<Next> after_the_end();
  Result<Next> hear_who_is_left();
  Result<Next> agree(const Error& error, bool is_done);
  int first_number(const Error& error) const;
  void finish();
  void go_on_with(Members left);

  const job::TrainJob& whole_job_;
  const Events& events_;
  const std::atomic<bool>& leave_;
  MembersFeed feed_;
  std::optional<quorum::Assembly> assembly_;  ///< where nobody is above the ranks; else none
  TrainerOptions options_;
  const std::function<void(int rank)> connected_;
  Members members_;
  std::vector<int> trained_with_;  ///< the ranks of the last trainer, by their first numbers
  int rank_ = 0;                   ///< among them
  double notice_s_ = 0;            ///< for a rank to notice that another is lost
  bool began_ = false;             ///< to train, once
};

}  // namespace remuda::train
