// Server: the agent's loop: takes connections, serves their requests in turns of their users, and lets the service
// work.
//
// It waits for nothing but events. Each user has a turn in which one request is served, so that who floods delays
// nobody else by more than one request. Connections are bounded per user and in all; of a user with too many, the one
// without a job that has been idle longest is closed, and where there are too many in all, one of the user with most.
// A user is here whoever bears what a process costs (bearer.h), however many user ids that one has.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "agent/bearer.h"
#include "agent/connection.h"
#include "agent/machine_thread.h"
#include "agent/service.h"
#include "agent/user_names.h"
#include "base/file.h"
#include "spot/poller.h"

namespace remuda::agent {

struct Limits {
  size_t connections = 40000;          ///< of all users
  size_t connections_of_user = 15000;  ///< those of keepers whose jobs wait or run among them
  size_t idle_of_user = 256;           ///< those that watch no job
  size_t buffered_of_user = 16 << 20;  ///< bytes of requests that have not come whole, and of answers not read
};

/// One thread.
class Server {
 public:
  /// `listener` is a listening socket.
  Server(Fd listener, Service service, MachineThread& machine, UserNames& names, Limits limits,
         Bearers bearers = Bearers());
  ~Server();

  /// To be called before run(): what the cloud says of this machine. It outlives this.
  void heed(spot::Poller& spot);
  /// Serves until `stop` is readable.
  Result<void> run(int stop);
  /// One round: waits for events, `patience_s` at the most, and does what they ask for. False once run() is to stop.
  Result<bool> round(double patience_s);

 private:
  using Id = uint64_t;  ///< of a connection
  struct User {
    std::deque<Id> ready;         ///< connections with a request, each once
    std::set<Id> idle, watching;  ///< all of them: those that watch no job, and those that do
    std::ptrdiff_t buffered = 0;  ///< bytes
    size_t connections() const { return idle.size() + watching.size(); }
  };

  struct Asked {
    wire::Request request;
    double at_s = 0;
  };

  void accept_all(double now_s);
  User& user_of(Id id);
  bool make_room(const std::string& bearer);
  bool close_longest_idle(const User& user);
  void close(Id id);
  void take_event(Id id, uint32_t events, double now_s);
  void queue(Id id);
  bool serve_turns(double now_s);
  void serve(Id id, double now_s);
  void answer(Id id, const Asked& asked, double now_s);
  void set_watched(Id id, int64_t job);
  void queue_parked();
  void report_changes(double now_s);
  void close_overdue(double now_s);
  void wait_for(Id id) const;

  Fd listener_, events_;
  Service service_;
  MachineThread& machine_;
  UserNames& names_;
  spot::Poller* spot_ = nullptr;
  const Limits limits_;
  Id next_id_ = 16;
  std::unordered_map<Id, std::unique_ptr<Connection>> connections_;
  Bearers bearers_;
  std::map<std::string, User> users_;              ///< by who bears for them
  std::unordered_map<Id, std::string> bearer_of_;  ///< of each connection
  std::unordered_set<Id> in_line_;                 ///< those in User::ready
  std::set<std::pair<int64_t, Id>> watchers_;      ///< by job
  std::unordered_map<Id, Asked> parked_;           ///< whose answers have to wait for something
  std::vector<Id> unnamed_;                        ///< whose users' names are looked up
  double next_check_s_ = 0;
};

}  // namespace remuda::agent
