#include "wire/client.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

namespace remuda::wire {
namespace {

/// An agent that is busy or stopped for longer counts as lost.
constexpr double kAnswer_s = 30;
/// For how long something is asked for again where the agent is being started anew.
constexpr double kPatience_s = 5;
constexpr double kLongestRest_s = 30;
/// The same for one who has other work, and where the agent was silent before.
constexpr double kHasty_s = 3, kHastySilent_s = 1;
/// A command waits so long for an agent that is being started anew.
constexpr double kConnect_s = 2, kAgain_s = 0.02;

tl::unexpected<Error> unavailable(const std::string& socket, const std::string& why) {
  return tl::unexpected(
      Error{ErrorKind::unavailable,
            fmt::format("the agent of this machine does not answer at {}: {}; an administrator starts "
                        "it: systemctl start remuda-agent.socket",
                        socket, why),
            -1});
}

Result<sockaddr_un> address_of(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.empty() || socket.size() >= sizeof address.sun_path)
    return usage_error(fmt::format("'{}' is no path of a socket", socket));
  std::memcpy(address.sun_path, socket.data(), socket.size());
  return address;
}

/// A random part, by which no other client has the same ids.
std::string new_identity() {
  uint64_t bits[2] = {};
  if (::getrandom(bits, sizeof bits, 0) != sizeof bits) bits[0] = static_cast<uint64_t>(::getpid());
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

int timeout_ms(double end_s) {
  return static_cast<int>(std::ceil(std::clamp(end_s - monotonic_s(), 0.0, 86400.0) * 1000));
}

/// A request is bounded; of a long command its beginning is kept, as people see no more of it.
void fit(Request& request) {
  auto* asked = request.operation ? std::get_if<pool::Submit>(&*request.operation) : nullptr;
  while (asked && asked->job.command.size() > 1 && text_of(request).size() > kLargestRequest) {
    asked->job.command.resize(asked->job.command.size() / 2);
    asked->job.command.back() = "...";
  }
}

}  // namespace

Result<std::unique_ptr<Client>> Client::connect(const std::string& socket, std::string log_folder,
                                                std::optional<double> within_s) {
  std::unique_ptr<Client> client(new Client(socket, std::move(log_folder), within_s.has_value()));
  client->identity_ = new_identity();
  client->until_s_ = monotonic_s() + within_s.value_or(kAnswer_s + kConnect_s);
  const double end_s = std::min(monotonic_s() + kConnect_s, client->until_s_);
  for (;;) {
    const auto reached = client->reach();
    if (reached) return client;
    if (!client->may_try_again_ || monotonic_s() >= end_s) return tl::unexpected(reached.error());
    steady_clock().sleep_s(kAgain_s);
  }
}

std::string Client::next_id() { return fmt::format("{}-{}", identity_, ++requests_); }

tl::unexpected<Error> Client::lost(const std::string& why) {
  connection_.reset();
  may_try_again_ = is_silent_ = true;
  return unavailable(socket_, why);
}

/// Connects and greets, unless that is done.
Result<void> Client::reach() {
  if (connection_) return {};
  REMUDA_ASSIGN(const sockaddr_un address, address_of(socket_));
  reader_ = FrameReader(kLargestAnswer);
  connection_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!connection_) return lost(errno_text(errno));
  constexpr double kLeast_s = 0.01, kMicroseconds = 1e6;                                // none at all is for ever
  const double in_line_s = std::clamp(until_s_ - monotonic_s(), kLeast_s, kConnect_s);  // with others that connect
  const timeval patience{.tv_sec = static_cast<time_t>(in_line_s),
                         .tv_usec = static_cast<suseconds_t>(std::fmod(in_line_s, 1.0) * kMicroseconds)};
  ::setsockopt(connection_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (::connect(connection_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return lost(errno_text(errno));
  ::fcntl(connection_.get(), F_SETFL, O_NONBLOCK);
  const auto greeting = ask_once({.id = next_id(), .ask = Ask::hello, .protocol = kProtocol}).and_then(parse_greeting);
  if (!greeting) {
    connection_.reset();  // whom it does not greet might be misread
    return tl::unexpected(greeting.error());
  }
  folder_ = greeting->pool;
  hides_devices_ = greeting->hides_devices;
  keeps_daemons_ = greeting->keeps_daemons;
  policy_ = greeting->policy;
  others_claims_ = is_of_root() ? pool::OthersClaims::mean_nothing : pool::OthersClaims::count;
  has_news_ = true;  // whatever changed while there was no connection
  return {};
}

Result<void> Client::send(const std::string& frame, double end_s) {
  for (size_t sent = 0; sent < frame.size();) {
    const ssize_t done = ::send(connection_.get(), frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (done > 0) {
      sent += static_cast<size_t>(done);
    } else if (errno == EAGAIN) {
      pollfd polled{connection_.get(), POLLOUT, 0};
      if (::poll(&polled, 1, timeout_ms(end_s)) == 0) return lost("it does not read");
    } else if (errno != EINTR) {
      return lost(errno_text(errno));
    }
  }
  return {};
}

/// Reads what has come, or waits for it.
Result<void> Client::fill(double end_s) {
  char bytes[64 << 10];
  for (;;) {
    const ssize_t got = ::recv(connection_.get(), bytes, sizeof bytes, 0);
    if (got > 0) return reader_.add({bytes, static_cast<size_t>(got)}), Result<void>{};
    if (got == 0) return lost("it has closed the connection");
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return lost(errno_text(errno));
    pollfd polled{connection_.get(), POLLIN, 0};
    if (::poll(&polled, 1, timeout_ms(end_s)) == 0)
      return lost(fmt::format("no word for {:.0f} s", monotonic_s() - asked_s_));
  }
}

Result<Answer> Client::receive(const std::string& id, double end_s) {
  for (;;) {
    auto payload = reader_.next();
    if (!payload) return lost(payload.error().message);
    if (!*payload) {
      REMUDA_TRY(fill(end_s));
      continue;
    }
    auto answer = parse_answer(**payload);
    if (!answer) return lost(answer.error().message);
    if (answer->id == id || (answer->id.empty() && answer->error)) return std::move(*answer);
    if (answer->changed != 0) has_news_ = true;
  }
}

Result<Json> Client::ask_once(const Request& request) {
  asked_s_ = monotonic_s();
  const double end_s = std::min(asked_s_ + kAnswer_s, until_s_);
  REMUDA_TRY(send(frame_of(text_of(request)), end_s));
  REMUDA_ASSIGN(Answer answer, receive(request.id, end_s));
  is_silent_ = false;
  may_try_again_ = answer.may_try_again;
  if (answer.error) return tl::unexpected(std::move(*answer.error));
  return std::move(answer.result);
}

void Client::begin_call() {
  constexpr double kEver = std::numeric_limits<double>::infinity();
  until_s_ = is_hasty_ ? monotonic_s() + (is_silent_ ? kHastySilent_s : kHasty_s) : kEver;
}

Result<Json> Client::ask(Request request, double patience_s) {
  constexpr double kFirst_s = 0.02, kLongest_s = 0.5;
  request.id = next_id();
  fit(request);
  begin_call();
  const double end_s = std::min(monotonic_s() + patience_s, until_s_);
  for (double pause_s = kFirst_s;; pause_s = std::min(kLongest_s, 2 * pause_s)) {
    may_try_again_ = false;
    const bool was_connected = static_cast<bool>(connection_);
    auto answer = reach().and_then([&] { return ask_once(request); });
    if (answer || connection_ || !may_try_again_) return answer;
    if (was_connected) {  // the agent may have been started anew meanwhile
      answer = reach().and_then([&] { return ask_once(request); });
      if (answer || connection_ || !may_try_again_) return answer;
    }
    if (monotonic_s() + pause_s >= end_s) return answer;
    steady_clock().sleep_s(pause_s);
  }
}

Result<Page> Client::page(Request request, double patience_s) {
  REMUDA_ASSIGN(const Json json, ask(std::move(request), patience_s));
  auto page = parse_page(json);
  if (!page) return failed("the agent's answer cannot be read: " + page.error().message);
  return page;
}

Result<pool::PoolState> Client::read_pages(Ask what) {
  pool::PoolState state;
  for (int64_t after = 0;;) {
    REMUDA_ASSIGN(Page part, page({.ask = what, .job = after}, kPatience_s));
    state.next_job = part.state.next_job;
    std::ranges::move(part.state.jobs, std::back_inserter(state.jobs));
    std::ranges::move(part.state.leases, std::back_inserter(state.leases));
    if (after == 0) {
      state.usage = std::move(part.state.usage);
      state.drains = std::move(part.state.drains);
      state.allocations = std::move(part.state.allocations);
    }
    if (!part.has_more || state.jobs.empty() || state.jobs.back().id <= after) return state;
    after = state.jobs.back().id;
  }
}

/// Where several pages are read, a job that has moved on meanwhile counts as the later one has it.
Result<pool::PoolState> Client::read_around(int64_t job) {
  has_news_ = false;
  REMUDA_ASSIGN(Page first, page({.ask = Ask::around, .job = job}, kPatience_s));
  pool::PoolState state = std::move(first.state);
  for (bool has_more = first.has_more; has_more;) {
    int64_t after = 0;
    for (const pool::Job& one : state.jobs)
      if (one.id != job) after = one.id;
    REMUDA_ASSIGN(Page part, page({.ask = Ask::around, .job = job, .after = after}, kPatience_s));
    has_more = part.has_more && !part.state.jobs.empty() && part.state.jobs.back().id > after;
    for (const pool::Job& one : part.state.jobs)
      if (one.id > after && one.id != job) state.jobs.insert(one);
    std::ranges::move(part.state.leases, std::back_inserter(state.leases));
  }
  return state;
}

Result<std::optional<pool::Job>> Client::find(int64_t id) {
  has_news_ = false;
  REMUDA_ASSIGN(Page part, page({.ask = Ask::find, .job = id}, 0));
  if (part.state.jobs.empty()) return std::nullopt;
  return std::move(part.state.jobs.front());
}

Result<std::vector<pool::Job>> Client::ended(int at_most) {
  std::vector<pool::Job> jobs;
  for (int64_t below = 0; static_cast<int>(jobs.size()) < at_most;) {
    const int left = at_most - static_cast<int>(jobs.size());
    REMUDA_ASSIGN(Page part, page({.ask = Ask::ended, .job = below, .at_most = left}, kPatience_s));
    std::ranges::move(part.state.jobs, std::back_inserter(jobs));
    if (!part.has_more || jobs.empty() || jobs.back().id == below) break;
    below = jobs.back().id;
  }
  return jobs;
}

bool Client::is_of_root() const {
  ucred other{};
  socklen_t size = sizeof other;
  return connection_ && ::getsockopt(connection_.get(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == 0;
}

Result<Inventory> Client::see_machine() {
  REMUDA_ASSIGN(const Json json, ask({.ask = Ask::machine}, kPatience_s));
  return parse_inventory(to_line(json), "the agent's answer");
}

Result<void> Client::enter(int64_t job) {
  REMUDA_TRY(ask({.ask = Ask::enter, .job = job}, kPatience_s));
  return {};
}

Result<void> Client::bring(int64_t job, const process::ProcessId& process) {
  REMUDA_TRY(ask({.ask = Ask::bring, .job = job, .process = process}, kPatience_s));
  return {};
}

Result<pool::Applied> Client::apply(const pool::Operation& operation) {
  REMUDA_ASSIGN(const Json json, ask({.ask = Ask::apply, .operation = operation}, kPatience_s));
  return parse_applied(json);
}

Result<void> Client::rest(int64_t job, const std::vector<int>& readable) {
  return wait(job, {}, kLongestRest_s, readable);
}

/// Word of a change that has come.
void Client::take_news() {
  while (connection_) {
    const auto payload = reader_.next();
    if (payload && *payload) {
      has_news_ = true;  // nothing else comes unasked
      continue;
    }
    char bytes[4096];
    const ssize_t got = ::recv(connection_.get(), bytes, sizeof bytes, 0);
    if (got <= 0) {
      if (got == 0 || (errno != EAGAIN && errno != EINTR)) connection_.reset();
      return;
    }
    reader_.add({bytes, static_cast<size_t>(got)});
  }
}

Result<void> Client::wait(int64_t, const std::vector<process::ProcessId>& processes, double seconds,
                          const std::vector<int>& readable) {
  constexpr double kBlindStep_s = 0.25;  // where the kernel does not report the end of processes
  take_news();
  if (!connection_) {
    begin_call();
    may_try_again_ = false;
    return reach();  // and then it may have changed
  }
  std::vector<Fd> ends;
  std::vector<pollfd> polled{{connection_.get(), POLLIN, 0}};
  for (const int fd : readable) polled.push_back({fd, POLLIN, 0});
  for (const process::ProcessId& process : processes) {
    if (is_visible(process)) ends.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
    if (is_visible(process) && !is_alive(process)) return {};
  }
  bool sees_all = ends.size() == processes.size();
  for (const Fd& end : ends) {
    if (end) polled.push_back({end.get(), POLLIN, 0});
    sees_all = sees_all && end;
  }
  if (has_news_) return {};
  const double wait_s = sees_all ? seconds : std::min(seconds, kBlindStep_s);
  if (::poll(polled.data(), polled.size(), timeout_ms(monotonic_s() + wait_s)) < 0 && errno != EINTR)
    return failed(fmt::format("cannot wait for the agent: {}", errno_text(errno)));
  return {};
}

}  // namespace remuda::wire
