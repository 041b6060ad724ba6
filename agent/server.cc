#include "agent/server.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>

#include "base/clock.h"

namespace remuda::agent {
namespace {

/// What events are of, below the ids of connections.
enum Source : uint64_t { kListener = 1, kStop, kService, kMachine, kNames, kSpot, kConnections };

constexpr double kCheckEvery_s = 1;
/// A round that takes so long, or begins so late, has waited for something: a database that is busy, a disk, a
/// processor.
constexpr double kHeldUp_s = 0.5;
constexpr int kMostEvents = 256;
/// In a round: to take one costs 0.1 ms and more, as /proc is asked about the process, and those that are there wait
/// meanwhile.
constexpr int kMostAccepted = 8;

void watch_fd(int events, int fd, uint64_t source, uint32_t what = EPOLLIN) {
  epoll_event event{.events = what, .data = {.u64 = source}};
  ::epoll_ctl(events, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

Server::Server(Fd listener, Service service, MachineThread& machine, UserNames& names, Limits limits, Bearers bearers)
    : listener_(std::move(listener)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      service_(std::move(service)),
      machine_(machine),
      names_(names),
      limits_(limits),
      bearers_(std::move(bearers)) {
  watch_fd(events_.get(), listener_.get(), kListener);
  for (const int fd : service_.fds()) watch_fd(events_.get(), fd, kService);
  watch_fd(events_.get(), machine_.fd(), kMachine);
  watch_fd(events_.get(), names_.fd(), kNames);
}

Server::~Server() = default;

void Server::heed(spot::Poller& spot) {
  spot_ = &spot;
  watch_fd(events_.get(), spot.fd(), kSpot);
}

Result<void> Server::run(int stop) {
  constexpr double kLongest_s = 3600;
  watch_fd(events_.get(), stop, kStop);
  for (;;) {
    REMUDA_ASSIGN(const bool goes_on, round(kLongest_s));
    if (!goes_on) return {};
  }
}

Result<bool> Server::round(double patience_s) {
  const double before_s = monotonic_s();
  if (service_.wants_reading(before_s)) {
    service_.reading_has_begun();
    machine_.ask();
  }
  const bool has_turns = std::ranges::any_of(users_, [](const auto& user) { return !user.second.ready.empty(); });
  double until_s = std::min({before_s + patience_s, service_.next_s(before_s),
                             connections_.empty() ? kNever_s : std::max(next_check_s_, before_s)});
  if (has_turns) until_s = before_s;
  epoll_event events[kMostEvents];
  const int timeout_ms = static_cast<int>(std::ceil(std::clamp(until_s - before_s, 0.0, 3600.0) * 1000));
  const int count = ::epoll_wait(events_.get(), events, kMostEvents, timeout_ms);
  if (count < 0 && errno != EINTR) return failed(fmt::format("cannot wait for events: {}", errno_text(errno)));
  const double now_s = monotonic_s();
  for (int i = 0; i < count; ++i) {
    const uint64_t source = events[i].data.u64;
    if (source == kStop) return false;
    if (source == kListener) accept_all(now_s);
    if (source == kNames) {
      names_.clear();
      for (const Id id : std::exchange(unnamed_, {})) queue(id);
    }
    if (source == kMachine)
      if (auto reading = machine_.take()) {
        service_.take_reading(std::move(*reading), now_s);
        queue_parked();
      }
    if (source == kSpot)
      if (auto news = spot_->take())
        service_.take_notice(news->notice ? std::optional(news->notice->sentence) : std::nullopt);
    if (source >= kConnections) take_event(source, events[i].events, now_s);
  }
  if (const double late_s = now_s - std::max(until_s, before_s); late_s >= kHeldUp_s) service_.was_held_up(late_s);
  service_.step(now_s);
  serve_turns(now_s);
  report_changes(now_s);
  if (now_s >= next_check_s_) close_overdue(now_s);
  if (const double held_up_s = monotonic_s() - now_s; held_up_s >= kHeldUp_s) service_.was_held_up(held_up_s);
  return true;
}

Server::User& Server::user_of(Id id) { return users_.at(bearer_of_.at(id)); }

/// Closes one for a new one, where there are too many.
bool Server::make_room(const std::string& bearer) {
  static const User kNew;
  const auto known = users_.find(bearer);
  const User& user = known == users_.end() ? kNew : known->second;
  if (user.connections() >= limits_.connections_of_user) return false;
  if (user.idle.size() >= limits_.idle_of_user) return close_longest_idle(user);
  if (connections_.size() < limits_.connections) return true;
  const auto most = std::ranges::max_element(users_, {}, [](const auto& one) { return one.second.connections(); });
  return most->second.connections() > user.connections() && close_longest_idle(most->second);
}

/// One that watches a job only where there is no other.
bool Server::close_longest_idle(const User& user) {
  const Connection* oldest = nullptr;
  Id id = user.watching.empty() ? 0 : *user.watching.begin();
  for (const Id one : user.idle) {
    const Connection& connection = *connections_.at(one);
    if (connection.is_served() || (oldest && connection.active_s() >= oldest->active_s())) continue;
    oldest = &connection;
    id = one;
  }
  if (id == 0) return false;
  close(id);
  return true;
}

void Server::accept_all(double now_s) {
  for (int i = 0; i < kMostAccepted; ++i) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    auto caller = caller_of(socket.get());
    if (!caller) {
      Connection refused(std::move(socket), {}, now_s);
      refused.send({.error = caller.error()}, now_s);
      continue;
    }
    const auto known = names_.known(caller->uid);
    const bool is_named = known && known->uid == caller->uid && known->name != std::to_string(caller->uid);
    std::string bearer = bearers_.of(caller->uid, caller->slice, is_named);
    if (!make_room(bearer)) continue;
    const Id id = next_id_++;
    watch_fd(events_.get(), socket.get(), id);
    connections_.emplace(id, std::make_unique<Connection>(std::move(socket), std::move(*caller), now_s));
    users_[bearer].idle.insert(id);
    bearer_of_.emplace(id, std::move(bearer));
  }
}

void Server::close(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  set_watched(id, 0);
  const auto user = users_.find(bearer_of_.at(id));
  user->second.idle.erase(id);
  user->second.buffered += found->second->take_growth() - static_cast<std::ptrdiff_t>(found->second->buffered());
  if (in_line_.erase(id) > 0) std::erase(user->second.ready, id);
  if (user->second.connections() == 0) users_.erase(user);
  parked_.erase(id);
  std::erase(unnamed_, id);
  bearer_of_.erase(id);
  connections_.erase(found);
}

void Server::set_watched(Id id, int64_t job) {
  Connection& connection = *connections_.at(id);
  User& user = user_of(id);
  watchers_.erase({connection.watched(), id});
  if (job != 0) watchers_.emplace(job, id);
  (job == 0 ? user.watching : user.idle).erase(id);
  (job == 0 ? user.idle : user.watching).insert(id);
  connection.watch(job);
}

/// For what the connection can take now.
void Server::wait_for(Id id) const {
  const Connection& connection = *connections_.at(id);
  uint32_t what = connection.wants_input() ? EPOLLIN : 0U;
  if (connection.has_output()) what |= EPOLLOUT;
  epoll_event event{.events = what, .data = {.u64 = id}};
  ::epoll_ctl(events_.get(), EPOLL_CTL_MOD, connection.fd(), &event);
}

void Server::take_event(Id id, uint32_t events, double now_s) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return close(id);
  if ((events & EPOLLOUT) != 0 && !connection.flush(now_s)) return close(id);
  if ((events & EPOLLIN) != 0 && !connection.read(now_s)) return close(id);
  std::ptrdiff_t& buffered = user_of(id).buffered;
  buffered += connection.take_growth();
  const bool is_large = connection.buffered() > wire::kLargestRequest / 2;
  if (is_large && buffered > static_cast<std::ptrdiff_t>(limits_.buffered_of_user)) return close(id);
  if (!connection.wants_input() || (events & EPOLLOUT) != 0) wait_for(id);
  queue(id);
}

/// Puts it in line behind the others of its user, where it may have a request.
void Server::queue(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || !(found->second->has_input() || parked_.contains(id))) return;
  if (in_line_.insert(id).second) user_of(id).ready.push_back(id);
}

/// What they wait for may have come.
void Server::queue_parked() {
  for (const auto& [id, _] : parked_) queue(id);
}

/// One request of each user.
bool Server::serve_turns(double now_s) {
  std::vector<Id> turns;
  for (auto& [_, user] : users_) {
    if (user.ready.empty()) continue;
    turns.push_back(user.ready.front());
    in_line_.erase(user.ready.front());
    user.ready.pop_front();
  }
  for (const Id id : turns) serve(id, now_s);
  return !turns.empty();
}

void Server::serve(Id id, double now_s) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  if (!names_.find(connection.caller().uid, now_s)) {
    unnamed_.push_back(id);
    return;
  }
  if (const auto parked = parked_.extract(id)) return answer(id, parked.mapped(), now_s);
  const auto request = connection.next();
  if (!request) {
    connection.close_after_answer();
    connection.send({.error = request.error()}, now_s);
    if (connection.is_over(now_s)) return close(id);
    return wait_for(id);
  }
  if (*request) answer(id, {**request, now_s}, now_s);
}

void Server::answer(Id id, const Asked& asked, double now_s) {
  Connection& connection = *connections_.at(id);
  Caller caller = connection.caller();
  const Account user = names_.find(caller.uid, now_s)
                           .value_or(Account{{std::to_string(caller.uid), {}, /*is_known=*/false}, caller.uid});
  caller.uid = user.uid;
  auto reply = service_.answer(caller, user, asked.request, now_s, asked.at_s);
  if (!reply) {
    parked_.emplace(id, asked);
    return;
  }
  if (reply->watched != 0) set_watched(id, reply->watched);
  connection.send(reply->answer, now_s);
  wait_for(id);
  queue(id);
}

void Server::report_changes(double now_s) {
  std::vector<int64_t> changed = service_.take_changed();
  if (!changed.empty()) queue_parked();
  std::ranges::sort(changed);
  changed.erase(std::ranges::unique(changed).begin(), changed.end());
  for (const int64_t job : changed) {
    for (auto one = watchers_.lower_bound({job, 0}); one != watchers_.end() && one->first == job; ++one) {
      Connection& connection = *connections_.at(one->second);
      connection.tell(job, now_s);
      if (connection.has_output()) wait_for(one->second);
    }
  }
}

void Server::close_overdue(double now_s) {
  next_check_s_ = now_s + kCheckEvery_s;
  std::vector<Id> overdue;
  for (const auto& [id, connection] : connections_)
    if (connection->is_over(now_s)) overdue.push_back(id);
  for (const Id id : overdue) close(id);
  for (const Id id : std::exchange(unnamed_, {})) queue(id);  // a name that has not come in time is a number
  queue_parked();
}

}  // namespace remuda::agent
