#include "workers/watched_rank.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/text.h"
#include "workers/event.h"

namespace remuda::workers {
namespace {

constexpr size_t kEventLimit = 4 << 20;  // a whole report fits
constexpr size_t kOutputLimit = 8 << 10;
constexpr size_t kReadLimit = 8 << 20;  // per read, so that no rank keeps the others waiting
constexpr size_t kLastLines = 20;

/// Passes what can be read without blocking to `lines`; false once the stream has ended.
bool drain(int fd, process::LineSplitter& lines, const process::LineSplitter::OnLine& on_line) {
  char buffer[65536];
  for (size_t total = 0; total < kReadLimit;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    lines.feed({buffer, static_cast<size_t>(got)}, on_line);
    total += got;
  }
  return true;
}

}  // namespace

Result<WatchedRank> WatchedRank::start(int rank, RankSpec spec, const RankListener& listener) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed(fmt::format("cannot make a pipe: {}", errno_text(errno)));
  Fd events(ends[0]);
  const Fd write_end(ends[1]);
  ::fcntl(events.get(), F_SETFL, O_NONBLOCK);
  spec.process.inherited.push_back(write_end.get());
  spec.process.environment.emplace_back(env::events_fd.name, std::to_string(write_end.get()));
  Fd members, its_members;
  if (spec.elastic) {
    int pair[2];  // no pipe: to write into one whose reader has died raises SIGPIPE
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      return failed(fmt::format("cannot make a pair of sockets: {}", errno_text(errno)));
    members.reset(pair[0]);
    its_members.reset(pair[1]);
    spec.process.inherited.push_back(pair[1]);
    spec.process.environment.emplace_back(env::members_fd.name, std::to_string(pair[1]));
  }
  REMUDA_ASSIGN(process::ChildProcess process, process::ChildProcess::spawn(std::move(spec.process), spec.input));
  return WatchedRank(rank, std::move(spec.device), std::move(process), std::move(events), std::move(members), listener);
}

WatchedRank::WatchedRank(int rank, std::string device, process::ChildProcess process, Fd events, Fd members,
                         const RankListener& listener)
    : process_(std::move(process)),
      events_(std::move(events)),
      members_(std::move(members)),
      listener_(&listener),
      event_lines_(kEventLimit),
      output_lines_(kOutputLimit),
      last_event_s_(monotonic_s()),
      now_s_(last_event_s_) {
  facts_.rank = rank;
  facts_.device = std::move(device);
}

void WatchedRank::add_to(std::vector<pollfd>& polled) const {
  if (!running()) return;
  polled.push_back({process_.pidfd(), POLLIN, 0});
  polled.push_back({events_.get(), POLLIN, 0});
  polled.push_back({output_open_ ? process_.output() : -1, POLLIN, 0});
}

void WatchedRank::read(double now_s) {
  if (!running()) return;
  now_s_ = now_s;
  const auto exit = process_.exit_state();  // before the streams are read, so that they then hold all it wrote
  const process::LineSplitter::OnLine on_event = [this](auto line, bool dropped) { take_event(line, dropped); };
  const process::LineSplitter::OnLine on_output = [this](auto line, bool dropped) { take_output(line, dropped); };
  if (events_ && !drain(events_.get(), event_lines_, on_event)) events_.reset();
  if (output_open_) output_open_ = drain(process_.output(), output_lines_, on_output);
  if (!exit) return;
  event_lines_.finish(on_event);
  output_lines_.finish(on_output);
  if (!facts_.error) facts_.failed_at_s = now_s;
  facts_.exit = exit;
  if (facts_.done && !exit->ok() && !facts_.signalled)
    listener_->on_line(facts_.rank, fmt::format("its process ended after its work was done: {}", to_string(*exit)));
}

void WatchedRank::signal(int number) {
  if (!running()) return;
  process_.signal(number);
  facts_.signalled = true;
}

void WatchedRank::tell(const Json& members) {
  const std::string line = to_line(members) + "\n";
  // Some hundred bytes into an empty buffer; a rank that has died meanwhile is seen to have.
  (void)::send(members_.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  facts_.error.reset();
  facts_.waits = facts_.trained = false;
  last_event_s_ = now_s_;
}

void WatchedRank::blame(Error error, double now_s) {
  if (facts_.error) return;
  facts_.error = std::move(error);
  facts_.failed_at_s = now_s;
}

void WatchedRank::take_event(std::string_view line, bool dropped) {
  if (dropped) return complain(fmt::format("an event longer than {} bytes was ignored", kEventLimit));
  const auto event = parse_event(line);
  if (!event) return complain(fmt::format("a line that is no event was ignored: {}", event.error().message));
  last_event_s_ = now_s_;
  const std::string name = text_field(*event, "event");
  if (name == "done") {
    facts_.done = true;
    facts_.reported = event->contains("report");
  }
  if (name == "trained") facts_.trained = true;
  makes_output_ = name == "output";
  if (name == "ready") facts_.ready = true;
  if (name == "error") blame(reported_error(*event), now_s_);
  if (name == "left") take_left(*event);
  if (name == "lost" && members_) {
    blame(reported_error(*event), now_s_);
    facts_.waits = true;
  }
  listener_->on_event(facts_.rank, *event);
}

void WatchedRank::take_left(const Json& event) {
  facts_.generation = static_cast<int>(std::clamp(number_field(event, "generation"), 0.0, 1e6));
  facts_.left.clear();
  for (const double rank : numbers_field(event, "ranks"))
    if (rank >= 0 && rank < 1e6) facts_.left.push_back(static_cast<int>(rank));
}

void WatchedRank::take_output(std::string_view line, bool dropped) {
  if (line.empty()) return;
  const std::string text = printable(line) + (dropped ? " ..." : "");
  facts_.last_output.push_back(text);
  if (facts_.last_output.size() > kLastLines) facts_.last_output.pop_front();
  listener_->on_line(facts_.rank, text);
}

void WatchedRank::complain(const std::string& what) {
  if (std::exchange(complained_, true)) return;
  listener_->on_line(facts_.rank, what + " (reported once)");
}

}  // namespace remuda::workers
