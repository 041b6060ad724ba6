// ElasticRun: a rank's whole run, from the meeting of all ranks to its outputs. Where others are lost and the job
// allows that, it goes on with those that are left; where others join, with them (elastic_join.cc).
//
//   a collective call fails with lost_peer -> the trainer and its communicator go -> the launcher says who is left, or
//   the ranks agree on it (members.h) -> they meet anew, as ranks 0, 1, ... of a smaller job -> a new trainer, which
//   resumes
//   somebody asks to join (join_listener.h) -> the trainer returns after a step -> rank 0 tells all who comes -> they
//   meet anew with it -> a new trainer, which resumes -> those that were there before agree to go on so, or without it
//
// At the end rank 0 alone has something to do: it leaves behind what the run is for. The others wait for that, to hear
// it from the launcher or from rank 0; if it is lost before, they go on in the same way, from the last step.
//
// A meeting has the number of its generation among its terms, so that a straggler of an older one is refused.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "quorum/membership.h"
#include "train/join_listener.h"
#include "train/members.h"
#include "train/newcomer.h"
#include "train/run_outputs.h"
#include "train/trainer.h"

namespace remuda::train {

/// With what a newcomer begins at `now_s` of monotonic_s(): what it is told of the run, as if it had been there.
Inheritance inherited_by_newcomer(const Invitation& invitation, double now_s);
/// So many ranks must be left of all that there have been.
size_t least_ranks(const job::TrainJob& whole);
/// Whether `ranks` can go on without one of them: they are enough, none of two halves, and its part of the state is
/// kept.
bool can_spare(int number, std::vector<int> ranks, const job::TrainJob& whole);

class ElasticRun {
 public:
  /// `connected` is called once the ranks have met for the first time, and whenever this rank's place changes: whether
  /// it may leave the others by itself, who go on then, or all have to stop together. One that joins may leave until it
  /// has said that it stays.
  using Connected = std::function<void(int rank, bool may_leave_alone)>;
  /// All of them outlive it.
  ElasticRun(job::TrainJob job, const Events& events, const std::atomic<bool>& leave, MembersFeed feed,
             TrainerOptions options, Connected connected);
  /// Of a rank that joins a run.
  ElasticRun(const job::TrainJob& own, const Events& events, const std::atomic<bool>& leave, Newcomer newcomer,
             TrainerOptions options, Connected connected);

  /// Returns once this rank's work is done, `done` included. The error is that of a run that does not go on.
  Result<void> run();

 private:
  /// What a trainer needs as long as it lives, and the trainer.
  struct Session {
    std::unique_ptr<const job::TrainJob> job;
    std::unique_ptr<comm::Communicator> communicator;
    std::optional<quorum::Membership> membership;  ///< of new members
    std::unique_ptr<Trainer> trainer;
    std::vector<Place> places;          ///< of all ranks, where others may join them
    std::optional<RunOutputs> outputs;  ///< on rank 0
  };
  enum class Next { go_on, done, end };

  Result<std::unique_ptr<comm::Communicator>> meet(const job::TrainJob& job, const Members& members,
                                                   bool with_newcomer);
  Result<Session> begin(job::TrainJob job, const Members& members, const TrainerOptions& options, bool are_new);
  void take(Session session);
  Result<bool> train();
  Result<bool> work();
  Result<void> say_farewell(comm::Communicator& communicator);
  Result<Next> after(const Error& error);
  Result<Next> after_the_end();
  Result<Next> receive_members();
  Result<Next> agree(const Error& error, bool is_done);
  Members members_of(quorum::Agreement agreement);
  int first_number(const Error& error) const;
  void finish();
  void go_on_with(Members left);
  bool may_leave_alone() const;

  Result<void> listen_for_joins();
  Result<Next> grow();
  Result<std::optional<Invitation>> invite(std::optional<Candidate>& candidate);
  std::optional<Invitation> invitation_for(Candidate& candidate, Fd& listener) const;
  Result<Next> grow_with(const Invitation& invitation, const Candidate* candidate);
  Result<void> join();
  void take_in(Session session, const Invitation& invitation);

  job::TrainJob whole_job_;  ///< with the devices of all ranks that there have been
  const Events& events_;
  const std::atomic<bool>& leave_;
  MembersFeed feed_;
  std::optional<Newcomer> newcomer_;
  std::optional<quorum::Membership> membership_;  ///< where nobody is above the ranks; else none
  TrainerOptions options_;
  const Connected connected_;
  Members members_;
  int number_ = 0;  ///< of this rank, its first one
  std::string run_id_;
  std::unique_ptr<JoinListener> join_listener_;  ///< on rank 0 of a run that others may join
  std::optional<Session> session_;
  std::vector<int> trained_with_;  ///< the ranks of the last trainer, by their first numbers
  int rank_ = 0;                   ///< among them
  double notice_s_ = 0;            ///< for a rank to notice that another is lost
  bool is_ready_ = false;          ///< it has met the others once
  bool has_joined_ = false;        ///< others that had begun
  bool began_ = false;             ///< to train, once
  bool was_stopped_ = false;       ///< before its end
};

}  // namespace remuda::train
