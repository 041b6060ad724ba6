// Service: answers the requests of users about the one pool, and keeps it going: starts jobs, holds them, ends them.
//
// It decides by what is in memory, never waits, and does not know how requests reach it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/caller.h"
#include "agent/enforcement.h"
#include "agent/handover.h"
#include "agent/heartbeat.h"
#include "agent/holds.h"
#include "agent/idle_steps.h"
#include "agent/partitions.h"
#include "agent/revival.h"
#include "agent/sharing_daemons.h"
#include "base/clock.h"
#include "policy/policy.h"
#include "pool/machine_view.h"
#include "pool/pool.h"
#include "wire/message.h"

namespace remuda::agent {

/// One thread. Times are those of the steady clock.
class Service {
 public:
  /// What it works with beside the pool.
  struct Means {
    Enforcement enforcement;
    Revival revival = Revival(nullptr);
    Handover handover;
    SharingDaemons daemons;
    Partitions partitions;
    std::function<void(const std::string&)> say = [](const std::string&) {};  ///< for its log
    std::string policy;  ///< path of the file, for users to read; empty: there is none
  };
  /// The open jobs of the pool are taken over: those whose keepers are gone end, unless they outlive them; those that
  /// run are held from here on.
  static Result<Service> open(const std::string& folder, pool::MachineView view, double now_s, Means means);
  static Result<Service> open(const std::string& folder, pool::MachineView view, double now_s) {
    return open(folder, std::move(view), now_s, Means());
  }

  struct Reply {
    wire::Answer answer;
    int64_t watched = 0;  ///< the connection is to hear of changes of this job
  };
  /// The answer to a request of this caller, whose name is `user`; nothing where it has to wait: for a reading of the
  /// machine, or, a keeper's word on a job, for the end of its last process, or for the database, which others keep
  /// busy. Then it is to be asked again after take_reading(), once the job has changed, or a second later. `asked_s`:
  /// when it came first.
  std::optional<Reply> answer(const Caller& caller, const policy::User& user, const wire::Request& request,
                              double now_s, double asked_s);

  /// A reading that was asked for, or why there is none.
  void take_reading(Result<pool::MachineView> reading, double now_s);
  /// The cloud says that it takes this machine away, why, or not any more: then nothing is granted, and jobs are asked
  /// to end, until it says so.
  void take_notice(std::optional<std::string> why);
  /// Whether the machine is to be read now.
  bool wants_reading(double now_s) const;
  void reading_has_begun() {
    is_reading_ = true;
    is_due_ = false;
    handover_.reading_begins();
    partitions_.reading_has_begun();
  }

  /// Readable when step() has something to do.
  std::vector<int> fds() const {
    std::vector<int> fds = enforcement_.fds();
    fds.push_back(holds_->fd());
    return fds;
  }
  void step(double now_s);
  /// The last round took so long that nobody was heard meanwhile: no job is ended for that.
  void was_held_up(double seconds) { holds_->postpone(seconds); }
  /// When step() or a reading is due at the latest.
  double next_s(double now_s) const;

  /// The jobs that have changed since the last call.
  std::vector<int64_t> take_changed();
  const std::string& folder() const { return folder_; }
  /// Why jobs are not held by cgroups, or not kept from devices; empty where they are.
  const std::string& obstacle() const { return holds_->obstacle(); }

 private:
  Service(std::string folder, Heartbeat heartbeat, pool::Pool pool, pool::MachineView view, double now_s, Means means);
  Result<Reply> reply(const Caller& caller, const policy::User& user, const wire::Request& request, double now_s);
  Result<wire::Page> around(const Caller& caller, const wire::Request& request);
  Result<std::optional<pool::Job>> find(int64_t id);
  bool has_unknown_limits(const Caller& caller, const policy::User& user, const pool::Operation& operation) const;
  Result<void> enter(const Caller& caller, int64_t job);
  Result<void> bring(const Caller& caller, int64_t job, const process::ProcessId& process);
  Result<void> check_unused(const Caller& caller, const process::ProcessId& process,
                            const std::vector<std::string>& but) const;
  std::set<int> keepers_and_fronts(const std::vector<process::ProcessId>& family, int uid, int64_t but) const;
  Result<wire::Page> ended(const Caller& caller, const wire::Request& request);
  Result<pool::Applied> apply(const Caller& caller, const policy::User& user, const wire::Request& request,
                              double now_s);
  /// In the name of the agent unless somebody asks.
  Result<pool::Applied> change(const pool::Operation& operation, double now_s, const pool::Asker& who = {0, "root"});
  Result<pool::Applied> take_beginning(const Caller& caller, int64_t id, double now_s);
  std::optional<int64_t> known_request(const Caller& caller, const wire::Request& request) const;
  void remember(const Caller& caller, const wire::Request& request, int64_t job);
  Result<bool> is_repeated(const Caller& caller, const pool::Operation& word);
  void follow_up(double now_s);
  void begin(const pool::Job& job, double now_s);
  void find_daemons(const pool::PoolState& state, double now_s);
  std::vector<pool::Operation> begin_daemons(const pool::Job& job, double now_s);
  void end_daemons(double now_s);
  void heed_notice(double now_s);
  void hand_over(double now_s);
  void record_idle(double now_s);
  double idle_every_s() const;
  double next_policy_s() const;
  void note_offers();
  void change_partitions(double now_s);
  Error with_rule_of_partitions(Error refused, const place::Request& request) const;
  std::vector<std::string> given_out() const;
  confine::Withheld withheld_from(int64_t job) const;
  std::vector<place::Held> held_in(const pool::PoolState& state) const;
  std::vector<std::string> devices_of(int64_t job) const;
  std::vector<confine::DeviceNode> nodes_of_job(int64_t job) const;
  void end(int64_t job, const std::string& why, double now_s);
  void write(const pool::Operation& word, double now_s);
  void write_again(double now_s);
  void give_again(const std::vector<pool::Operation>& words, double now_s);
  void revive(double now_s);
  Result<void> find_lost();
  void enforce();
  void heed_policy();
  void read_policy(double now_s);
  bool is_fresh(double now_s) const;
  double look_every_s() const;
  bool has_waiting() const;

  /// A reading of the machine that is older is taken again before devices are granted.
  static constexpr double kFresh_s = 2;
  /// How soon a change of the policy is seen where nobody asks for anything.
  static constexpr double kPolicyLook_s = 10;
  static constexpr double kAgain_s = 1;
  /// How long a database is left alone that other processes keep, and for how long whoever asks waits for it.
  static constexpr double kBusyPause_s = 0.25, kBusyPatience_s = 10;
  static constexpr double kNamePatience_s = 60;  ///< for user databases that do not say who asks

  std::string folder_;
  Heartbeat heartbeat_;
  pool::Pool pool_;
  pool::MachineView view_;
  double read_at_s_;                        ///< when view_ was taken
  double policy_at_s_;                      ///< when its policy was read
  double begins_at_s_ = kNever_s;           ///< when the next job may begin, on the wall clock
  double busy_until_s_ = 0;                 ///< other processes keep the database: not asked before then
  std::vector<pool::Operation> unwritten_;  ///< of the agent itself, for the same reason
  std::vector<int64_t> without_keeper_;     ///< jobs whose processes could not be started: not written yet
  bool is_reading_ = false;                 ///< one is under way
  bool is_due_ = false;                     ///< jobs may start once the machine was read again
  bool is_blind_ = false;                   ///< the last reading failed: nothing is started
  std::unique_ptr<Holds> holds_;
  Enforcement enforcement_;
  Revival revival_;
  Handover handover_;
  SharingDaemons daemons_;
  IdleSteps idle_;
  Partitions partitions_;
  OfferedPartitions offered_;  ///< of view_, as its policy has it
  /// Jobs by user and request: those submitted, and those whose keepers have given their word.
  std::map<std::pair<int, std::string>, int64_t> requests_;
  std::vector<int64_t> changed_;
  std::function<void(const std::string&)> say_;
  std::string policy_path_;
  std::string policy_error_;  ///< said last; empty: the policy is right
  struct News {
    std::optional<std::string> why;
  };
  std::optional<News> news_;  ///< of the cloud, not heeded yet
};

}  // namespace remuda::agent
