// Client: a pool that an agent has open, as its users reach it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "device/inventory.h"
#include "pool/access.h"
#include "wire/frame.h"
#include "wire/message.h"

namespace remuda::wire {

/// A connection that is lost, as when the agent is started anew, is made again: what is asked is asked again for some
/// seconds, a change of the pool with the same id, so that it is done once. Only find(), by which a keeper looks at its
/// job while that runs, fails at once. may_try_again() is true then.
class Client final : public pool::Access {
 public:
  /// `log_folder`: see Access. An error of kind `unavailable`, with the command that helps, where no agent answers.
  /// `within_s`, of one who has other work: this call takes no longer, and what is asked later no longer than 3 s, or
  /// than 1 s where the agent did not answer the last time.
  static Result<std::unique_ptr<Client>> connect(const std::string& socket, std::string log_folder,
                                                 std::optional<double> within_s = std::nullopt);

  /// Whether this user sees no device that was not granted, but by see_machine().
  bool hides_devices() const { return hides_devices_; }
  /// Whether root has made the agent's socket: only such an agent holds the processes of others together.
  bool is_of_root() const;
  /// The machine as the agent sees it.
  Result<Inventory> see_machine();

  /// Path of the agent's policy; empty where it names none.
  const std::string& policy() const { return policy_; }

  const std::string& folder() const override { return folder_; }
  const std::string& log_folder() const override { return log_folder_; }
  bool is_served() const override { return true; }
  pool::OthersClaims others_claims() const override { return others_claims_; }
  bool may_have_daemons() const override { return keeps_daemons_; }

  Result<pool::PoolState> read() override { return read_pages(Ask::read); }
  Result<pool::PoolState> read_own() override { return read_pages(Ask::own); }
  Result<pool::PoolState> read_around(int64_t job) override;
  Result<std::optional<pool::Job>> find(int64_t id) override;
  Result<std::vector<pool::Job>> ended(int at_most) override;

  Result<pool::Applied> apply(const pool::Operation& operation) override;
  bool may_try_again() const override { return may_try_again_; }
  Result<void> enter(int64_t job) override;
  Result<void> bring(int64_t job, const process::ProcessId& process) override;
  /// The agent does that by itself.
  Result<void> tidy() override { return {}; }

  /// The agent knows who keeps a job by the connection on which it was submitted.
  Result<int> become_keeper() override { return -1; }
  Result<pool::PoolState> attend(int64_t job) override { return read_around(job); }
  Result<void> rest(int64_t job, const std::vector<int>& readable) override;
  /// A connection that is lost is made again, once, and that ends the wait.
  Result<void> wait(int64_t job, const std::vector<process::ProcessId>& processes, double seconds,
                    const std::vector<int>& readable) override;

 private:
  Client(std::string socket, std::string log_folder, bool is_hasty)
      : socket_(std::move(socket)), log_folder_(std::move(log_folder)), is_hasty_(is_hasty) {}
  std::string next_id();
  void begin_call();
  Result<void> reach();
  /// Asks again, where the connection is lost, for `patience_s`.
  Result<Json> ask(Request request, double patience_s);
  Result<Json> ask_once(const Request& request);
  Result<void> send(const std::string& frame, double end_s);
  Result<Answer> receive(const std::string& id, double end_s);
  Result<void> fill(double end_s);
  Result<Page> page(Request request, double patience_s);
  Result<pool::PoolState> read_pages(Ask ask);
  tl::unexpected<Error> lost(const std::string& why);
  void take_news();

  const std::string socket_, log_folder_;
  const bool is_hasty_;
  bool is_silent_ = false;            ///< it did not answer what was asked last
  double asked_s_ = 0, until_s_ = 0;  ///< when that was asked, and until when it may take, however long an answer takes
  std::string folder_, policy_;
  bool hides_devices_ = false, keeps_daemons_ = false;
  pool::OthersClaims others_claims_ = pool::OthersClaims::count;
  Fd connection_;  ///< empty: it is lost
  FrameReader reader_{kLargestAnswer};
  std::string identity_;  ///< begins the ids of this client's requests
  int64_t requests_ = 0;
  bool may_try_again_ = false;
  bool has_news_ = false;  ///< the job that was asked for last has changed since
};

}  // namespace remuda::wire
