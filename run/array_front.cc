#include "run/array_front.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <deque>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/clock.h"
#include "process/spawn.h"
#include "run/array_keeper.h"
#include "run/front.h"
#include "run/relay.h"

namespace remuda::run {
namespace {

using Kind = Message::Kind;

/// The front of one index.
struct Member {
  int index = 0;
  Worker front;
  bool has_entered = false;  ///< it has entered the pool; keeps the indices in order when they enter and start
};

struct Failure {
  int index;
  int status;
};

constexpr double kPause_s = 2;  // between two tries to start an index

class ArrayFront {
 public:
  ArrayFront(const RunSpec& spec, const OpenPool& open, const Report& report)
      : spec_(spec), open_(open), report_(report), waiting_(spec.array.indices.begin(), spec.array.indices.end()) {}

  Result<int> run() {
    REMUDA_ASSIGN(keeper_, fork_worker([this](Fd front) { keep_array(spec_, open_, std::move(front)); }));
    const Message entered = first_word();
    if (entered.kind == Kind::ended) {
      report_(entered);
      return entered.status;
    }
    id_ = entered.job;
    most_ = spec_.array.at_once > 0 ? std::min(spec_.array.at_once, entered.status) : entered.status;
    report_(Message{Kind::started, id_, 0, ""});
    report_(
        Message{Kind::note, id_, 0,
                fmt::format("an array of {} indices; remuda logs {} prints what they write", waiting_.size(), id_)});
    while (start_due(), !members_.empty() || will_try_again()) listen();
    return finish();
  }

 private:
  Message first_word() const {
    const auto first = relay(keeper_, nullptr, [](const Message&) { return true; });
    return first.value_or(Message{Kind::ended, 0, process::kOwnFailure, "its keeper was killed"});
  }

  /// One after another, so that they start in order, and an error that all of them share is reported once.
  void start_due() {
    if (monotonic_s() < next_start_s_) return;
    next_start_s_ = 0;
    const auto has_entered = [&] { return members_.empty() || members_.back().has_entered; };
    while (!closed_ && !waiting_.empty() && has_entered() && members_.size() < static_cast<size_t>(most_)) {
      const int index = waiting_.front();
      if (auto member = start(index)) {
        members_.push_back(std::move(*member));
        waiting_.pop_front();
      } else {
        report_({Kind::note, id_, 0, member.error().message});
        if (members_.empty())
          fail(index, process::kOwnFailure);  // otherwise it is tried again when another index has ended
        closed_ = members_.empty();
        return;
      }
    }
  }

  Result<Member> start(int index) {
    const pid_t parent = ::getpid();
    REMUDA_ASSIGN(Worker front, fork_worker([&](Fd channel) {
                    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                    if (::getppid() == parent) become(index, std::move(channel));
                  }));
    return Member{index, std::move(front), false};
  }

  void become(int index, Fd channel) {
    members_.clear();
    keeper_.channel.reset();
    // Detached, an index has a group of its own: where this process is stopped and the first job of a common group
    // ends, the kernel takes the group for orphaned, and ends it with SIGHUP.
    if (spec_.log_only) ::setpgid(0, 0);
    ::pthread_sigmask(SIG_SETMASK, &signals_.before(), nullptr);
    const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ::dup2(nothing.get(), STDIN_FILENO);
    const Report report = [&](const Message& message) { send(channel.get(), message); };
    const Result<int> status = run_front(spec_of(index), open_, report);
    if (!status) report({Kind::ended, 0, process::kOwnFailure, status.error().message});
  }

  RunSpec spec_of(int index) const {
    RunSpec spec = spec_;
    spec.job.array = id_;
    spec.job.array_index = index;
    spec.log_only = true;
    spec.job.at_end.clear();  // these are for the end of the array
    spec.job.mail.clear();
    spec.has_bar = false;
    if (!spec.job.log.empty()) spec.job.log += fmt::format(".{}", index);
    if (is_known_) spec.wait = true;
    if (has_started_) {  // they have ended, and may be out of the pool's records by now
      spec.job.after.clear();
      spec.job.after_any.clear();
    }
    return spec;
  }

  void listen() {
    std::vector<pollfd> polled{{signals_.fd(), POLLIN, 0}, {keeper_.channel.get(), POLLIN, 0}};
    for (const Member& member : members_) polled.push_back({member.front.channel.get(), POLLIN, 0});
    ::poll(polled.data(), polled.size(), will_try_again() ? static_cast<int>(kPause_s * 1000) : -1);
    while (const auto signal = signals_.next()) take(*signal);
    listen_to_keeper();
    std::erase_if(members_, [this](Member& member) { return has_ended(member); });
  }

  void take(const ReceivedSignal& signal) {
    const bool is_for_jobs = signal.number == SIGUSR1 || signal.number == SIGUSR2;
    if (!is_for_jobs && !(spec_.requeue && signal.number == SIGTERM)) stop(signal.number);
    if (signal.from_terminal) return;  // the indices have received it, too
    for (const Member& member : members_) ::kill(member.front.pid, signal.number);
  }

  void stop(int signal) {
    closed_ = true;
    if (stop_signal_ == 0) stop_signal_ = signal;
  }

  /// It ends by itself when a user has cancelled the array; the jobs in the pool are cancelled then, too.
  void listen_to_keeper() {
    if (!keeper_.channel) return;
    const Received<Message> received = receive_message(keeper_.channel.get());
    if (!received.gone && !received.value) return;
    keeper_.channel.reset();
    closed_ = true;
    end_text_ = received.value ? received.value->text : "its keeper was killed";
    if (received.gone)
      for (const Member& member : members_) ::kill(member.front.pid, SIGTERM);
  }

  bool has_ended(Member& member) {
    for (;;) {
      const Received<Message> received = receive_message(member.front.channel.get());
      if (received.gone) {
        end(member, {Kind::ended, id_, process::kOwnFailure, "its front was killed"});
        return true;
      }
      if (!received.value) return false;
      if (received.value->kind == Kind::ended) {
        end(member, *received.value);
        return true;
      }
      if (received.value->kind == Kind::note && received.value->job == 0)
        note(member.index, received.value->text);  // others are dropped: they concern one job, which has a log
      if (received.value->kind != Kind::note) is_known_ = has_entered_ = member.has_entered = true;
      if (received.value->kind == Kind::started) has_started_ = true;
    }
  }

  void end(const Member& member, const Message& message) {
    ::waitpid(member.front.pid, nullptr, 0);
    const bool may_pass =
        message.status == process::kOwnFailure || message.status == exit_status(ErrorKind::unavailable);
    if (message.job == 0 && may_pass && has_entered_ && !closed_) return try_again(member.index, message.text);
    is_known_ = true;
    if (message.job == 0) closed_ = true;  // it did not enter the pool, and the other indices would not either
    if (message.status != 0) {
      fail(member.index, message.status);
      if (!message.text.empty()) report_({Kind::note, id_, 0, fmt::format("index {}: {}", member.index, message.text)});
    } else {
      ++done_;
    }
    const std::string text = progress_text();
    if (keeper_.channel) send(keeper_.channel.get(), Message{Kind::progress, id_, 0, text});
    const size_t ended = done_ + failures_.size();
    report_({Kind::progress, id_, static_cast<int>(ended * 100 / spec_.array.indices.size()), text});
  }

  /// Another index has entered the pool, so that whatever kept this one from it may pass: a full disk, a busy database,
  /// an agent that is started anew.
  void try_again(int index, const std::string& why) {
    waiting_.push_front(index);
    next_start_s_ = monotonic_s() + kPause_s;
    note(index, why + "; tries again until it can");
  }
  bool will_try_again() const { return !closed_ && !waiting_.empty() && next_start_s_ > 0; }

  /// Once, while its text stays the same.
  void note(int index, const std::string& text) {
    if (std::exchange(noted_, text) != text) report_({Kind::note, id_, 0, fmt::format("index {}: {}", index, text)});
  }

  void fail(int index, int status) { failures_.push_back({index, status}); }

  std::string progress_text() const {
    return fmt::format("{} of {} indices done, {} failed", done_, spec_.array.indices.size(), failures_.size());
  }

  std::string summary() const {
    constexpr size_t kMost = 10;
    std::string text = (end_text_.empty() ? "" : end_text_ + "; ") + progress_text();
    for (size_t i = 0; i < failures_.size() && i < kMost; ++i)
      text += fmt::format("{}index {}: status {}", i == 0 ? " (" : ", ", failures_[i].index, failures_[i].status);
    if (!failures_.empty()) text += failures_.size() > kMost ? ", ...)" : ")";
    if (!waiting_.empty()) text += fmt::format(", {} not started", waiting_.size());
    return text;
  }

  int finish() {
    int status = failures_.empty() ? 0 : failures_.front().status;
    if (status == 0 && !waiting_.empty()) status = stop_signal_ > 0 ? 128 + stop_signal_ : process::kOwnFailure;
    const Message last{Kind::ended, id_, status, summary()};
    if (keeper_.channel) send(keeper_.channel.get(), last);
    await_keeper();
    report_(last);
    return status;
  }

  /// Until it has recorded the end, or goes on with that alone.
  void await_keeper() {
    if (!keeper_.channel) {  // it has ended the array itself
      ::waitpid(keeper_.pid, nullptr, 0);
      return;
    }
    pollfd polled{keeper_.channel.get(), 0, 0};  // hung up then
    while (::poll(&polled, 1, -1) < 0 && errno == EINTR) {
    }
    keeper_.channel.reset();
  }

  const RunSpec& spec_;
  const OpenPool& open_;
  const Report& report_;
  HeldSignals signals_;
  std::deque<int> waiting_;  ///< indices
  std::vector<Member> members_;
  std::vector<Failure> failures_;
  size_t done_ = 0;
  Worker keeper_;  ///< its channel is empty once it has no more messages
  int64_t id_ = 0;
  int most_ = 1, stop_signal_ = 0;
  bool is_known_ = false;     ///< that the first could enter the pool
  bool has_entered_ = false;  ///< one of them is in the pool
  double next_start_s_ = 0;   ///< on the steady clock; 0: at once
  std::string noted_;
  bool has_started_ = false;  ///< one of them got devices
  bool closed_ = false;
  std::string end_text_;
};

}  // namespace

Result<int> run_array_front(const RunSpec& spec, const OpenPool& open, const Report& report) {
  return ArrayFront(spec, open, report).run();
}

}  // namespace remuda::run
