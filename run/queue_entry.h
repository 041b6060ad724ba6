// QueueEntry: a job's way through the queue, from its submission until it may run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pool/claim.h"
#include "run/caretaker.h"
#include "run/front_link.h"
#include "run/pool_retry.h"
#include "run/run_spec.h"

namespace remuda::run {

/// One thread; the arguments outlive it.
class QueueEntry {
 public:
  QueueEntry(const RunSpec& spec, Caretaker& caretaker, FrontLink& link)
      : spec_(spec), caretaker_(caretaker), link_(link), retry_(caretaker.pool(), link) {}

  /// Puts the job into the queue, unless it can never run, or would have to wait but may not: then why() has the
  /// reason, and wait() returns false at once.
  Result<void> submit();
  int64_t job() const { return id_; }
  /// How long the job that runs may do so: what it asked for, or what the policy has given it; 0: without limit.
  double time_limit_s() const { return time_limit_s_; }
  /// The same of its grace time.
  double grace_s() const { return grace_s_; }

  /// True once the job runs; false when it never will: its user gave up, it was cancelled, a job that it waits for
  /// failed. Then status() and why() have the reason. While the pool cannot be written, the job keeps its place and
  /// this tries again. A job that outlives its keeper is left to the agent once it is kept (FrontLink::is_kept).
  Result<bool> wait();
  /// The claims on the devices that the running job was granted, for its processes to inherit: held until the next
  /// wait(), or this object's end (pool/claim.h). Empty where the machine is not this one.
  std::vector<int> claims() const { return claim_ ? claim_->fds() : std::vector<int>{}; }
  /// To be called once the job's processes are gone.
  void release_claims() { claim_.reset(); }
  int status() const { return status_; }
  const std::string& why() const { return why_; }
  /// Whether the job goes on waiting, without this process.
  bool is_left_waiting() const { return is_left_waiting_; }

 private:
  enum class Step { waits, runs, is_over };
  Result<bool> tidy_and_enter();
  Result<bool> enter();
  Result<Step> wait_once();
  bool report_waiting(const pool::Job& job);
  bool may_leave() const;
  Result<bool> leave(int signal);
  std::string ailment_among(const std::vector<std::string>& devices) const;
  Result<Step> claim(const pool::PoolState& state);
  Result<Step> give_way(const std::string& why);

  const RunSpec& spec_;
  Caretaker& caretaker_;
  FrontLink& link_;
  std::optional<pool::Claim> claim_;
  PoolRetry retry_;
  int64_t id_ = 0;
  int status_ = 0;
  std::string why_, reported_;
  bool is_left_waiting_ = false;
  bool has_reported_ = false, has_waited_ = false, has_run_ = false;
  bool outlives_keeper_ = false;  ///< as the pool has it: it may know that nobody can start another one
  double time_limit_s_ = 0, grace_s_ = 0;
  double entered_at_s_ = 0;  ///< on the steady clock
};

}  // namespace remuda::run
