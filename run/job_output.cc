#include "run/job_output.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "pool/logs.h"

namespace remuda::run {
namespace {

constexpr size_t kLongestLine = 64 << 10, kMostPending = 64 << 10;
constexpr std::string_view kEraseLine = "\r\x1b[K";

struct OutputPipe {
  Fd read_end, write_end;
};

Result<OutputPipe> make_output_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed(fmt::format("cannot make a pipe: {}", errno_text(errno)));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return OutputPipe{Fd(ends[0]), Fd(ends[1])};
}

/// One of our own streams, and what its reader has not taken yet.
class Target {
 public:
  Target(int fd, bool erase) : fd_(fd), erases_(erase && ::isatty(fd) == 1) {
    struct stat info{};
    is_file_ = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  }
  void take(std::string_view text) {
    if (!is_open_) return;
    if (erases_) pending_ += kEraseLine;
    pending_ += text;
  }
  bool is_full() const { return pending_.size() >= kMostPending; }
  bool is_empty() const { return pending_.empty(); }
  /// For poll(); -1: nothing to write.
  int waiting() const { return pending_.empty() ? -1 : fd_; }

  /// Why what was taken could not be written; empty while it could. A reader that has gone is none: its user wanted so.
  const std::string& loss() const { return loss_; }

  /// After poll(). A pipe that is ready takes PIPE_BUF bytes without blocking; more might block.
  void write() {
    const ssize_t put =
        ::write(fd_, pending_.data(), is_file_ ? pending_.size() : std::min<size_t>(pending_.size(), PIPE_BUF));
    if (put >= 0) {
      pending_.erase(0, static_cast<size_t>(put));
    } else if (errno != EINTR && errno != EAGAIN) {
      if (errno != EPIPE) loss_ = fmt::format("cannot write its output: {}", errno_text(errno));
      is_open_ = false;
      pending_.clear();
    }
  }

 private:
  int fd_;
  bool erases_, is_file_ = false, is_open_ = true;
  std::string pending_, loss_;
};

/// What is read at one end.
struct Source {
  Fd from;
  size_t target;
  std::string rest;  ///< of a line whose end has not come yet
};

struct CopierEnds {
  Fd stop, abort, log;
};

class Copier {
 public:
  Copier(std::vector<Source> sources, CopierEnds ends, const JobOutput::Options& options)
      : sources_(std::move(sources)),
        ends_(std::move(ends)),
        whole_lines_(options.whole_lines),
        targets_{Target(STDOUT_FILENO, options.erase), Target(STDERR_FILENO, options.erase)} {}

  /// Returns what was lost, and why; empty where nothing was.
  std::string run() {
    while (step()) {
    }
    sources_.clear();
    for (const Target& target : targets_)
      if (loss_.empty()) loss_ = target.loss();
    return loss_;
  }

 private:
  /// False at the end.
  bool step() {
    if (stopping_ && std::ranges::all_of(targets_, &Target::is_empty)) return false;
    constexpr size_t kFirstTarget = 2, kFirstSource = 4;
    std::vector<pollfd> polled{{stopping_ ? -1 : ends_.stop.get(), POLLIN, 0}, {ends_.abort.get(), POLLIN, 0}};
    for (const Target& target : targets_) polled.push_back({target.waiting(), POLLOUT, 0});
    for (const Source& source : sources_)
      polled.push_back({targets_[source.target].is_full() ? -1 : source.from.get(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0) return errno == EINTR;
    if (polled[1].revents != 0) return false;
    for (size_t i = 0; i < targets_.size(); ++i)
      if (polled[kFirstTarget + i].revents != 0) targets_[i].write();
    for (size_t i = 0; i < sources_.size(); ++i)
      if (polled[kFirstSource + i].revents != 0) read(sources_[i]);
    if (polled[0].revents != 0) stop();
    return true;
  }

  /// No writer is left: the rest in the pipes is small, and is read to its end.
  void stop() {
    stopping_ = true;
    for (Source& source : sources_) {
      while (read(source)) {
      }
      hand_on(source, source.rest.size());
      source.from.reset();
    }
  }

  /// False when nothing came.
  bool read(Source& source) {
    std::array<char, 16384> bytes;
    const ssize_t got = ::read(source.from.get(), bytes.data(), bytes.size());
    if (got == 0) source.from.reset();
    if (got <= 0) return false;
    source.rest.append(bytes.data(), static_cast<size_t>(got));
    const size_t end = source.rest.rfind('\n');
    if (!whole_lines_ || source.rest.size() > kLongestLine)
      hand_on(source, source.rest.size());
    else if (end != std::string::npos)
      hand_on(source, end + 1);
    return true;
  }

  void hand_on(Source& source, size_t size) {
    if (size == 0) return;
    const std::string_view text = std::string_view(source.rest).substr(0, size);
    if (ends_.log) {
      if (const auto written = write_all(ends_.log.get(), text, "its log"); !written && loss_.empty())
        loss_ = written.error().message;
    }
    targets_[source.target].take(text);
    source.rest.erase(0, size);
  }

  std::vector<Source> sources_;
  CopierEnds ends_;
  const bool whole_lines_;
  std::array<Target, 2> targets_;
  bool stopping_ = false;
  std::string loss_;
};

/// In a folder that all may write, as /tmp is, neither a link nor a file of another user's is taken for the log,
/// whatever the kernel is told of such (fs.protected_symlinks): they would choose what is written to, or read it.
Result<Fd> open_among_all(const std::string& path, const struct stat& folder, int flags) {
  const std::string whose = printable(path);
  Fd log(::open(path.c_str(), flags | O_CREAT | O_EXCL | O_NOFOLLOW, 0666));
  if (log || errno != EEXIST) return log;
  log.reset(::open(path.c_str(), flags | O_NOFOLLOW));
  if (!log && errno != ELOOP) return log;
  struct stat found{};
  const bool is_own =
      log && ::fstat(log.get(), &found) == 0 && (found.st_uid == ::geteuid() || found.st_uid == folder.st_uid);
  if (is_own) return log;
  return usage_error(fmt::format("cannot write {}: it is {}, in a folder that all may write; choose another name",
                                 whose, log ? "another user's" : "a link"));
}

Result<Fd> open_named_log(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC;
  struct stat folder{};
  const std::string above = std::filesystem::path(path).parent_path().string();
  const bool is_among_all =
      ::stat(above.empty() ? "." : above.c_str(), &folder) == 0 && (folder.st_mode & S_IWOTH) != 0;
  if (is_among_all) return open_among_all(path, folder, kFlags);
  return Fd(::open(path.c_str(), kFlags | O_CREAT, 0666));
}

}  // namespace

Result<Fd> open_log(const RunSpec& spec, int64_t job) {
  const std::string& path = spec.job.log;
  if (path.empty() && !spec.log_only) return Fd();
  if (path.empty()) {
    REMUDA_TRY(make_folder(spec.logs));
    return pool::open_pool_log(spec.logs, job);
  }
  REMUDA_ASSIGN(Fd log, open_named_log(path));
  if (!log && errno == ENXIO) return usage_error(fmt::format("{} is a pipe that nobody reads", printable(path)));
  if (!log) return usage_error(fmt::format("cannot write {}: {}", printable(path), errno_text(errno)));
  ::fcntl(log.get(), F_SETFL, O_WRONLY | O_APPEND);
  return log;
}

Result<JobOutput> JobOutput::copy(size_t lanes, Options options) {
  JobOutput output;
  std::vector<Source> sources;
  for (size_t lane = 0; lane < lanes; ++lane) {
    REMUDA_ASSIGN(OutputPipe out, make_output_pipe());
    REMUDA_ASSIGN(OutputPipe err, make_output_pipe());
    sources.push_back({std::move(out.read_end), 0, {}});
    sources.push_back({std::move(err.read_end), 1, {}});
    output.lanes_.push_back({std::move(out.write_end), std::move(err.write_end)});
  }
  REMUDA_ASSIGN(OutputPipe stop, make_output_pipe());
  REMUDA_ASSIGN(OutputPipe abort, make_output_pipe());
  REMUDA_ASSIGN(OutputPipe done, make_output_pipe());
  output.stop_ = std::move(stop.write_end);
  output.abort_ = std::move(abort.write_end);
  output.done_ = std::move(done.read_end);
  CopierEnds ends{std::move(stop.read_end), std::move(abort.read_end), std::move(options.log)};
  output.loss_ = std::make_shared<std::string>();
  output.copier_ = std::thread([copier = Copier(std::move(sources), std::move(ends), options), loss = output.loss_,
                                done = std::move(done.write_end)]() mutable {
    *loss = copier.run();
    done.reset();
  });
  return output;
}

Result<JobOutput> JobOutput::open(const RunSpec& spec, int64_t job, size_t lanes) {
  REMUDA_ASSIGN(Fd log, open_log(spec, job));
  const bool has_tasks = !spec.tasks.empty();
  Fd pool_log(log && spec.job.log.empty() ? ::fcntl(log.get(), F_DUPFD_CLOEXEC, 0) : -1);
  JobOutput output;
  if (has_tasks || (log && !spec.log_only)) {
    REMUDA_ASSIGN(output,
                  copy(lanes, {.log = std::move(log), .whole_lines = has_tasks, .erase = has_tasks && spec.has_bar}));
  } else {
    output.log_ = std::move(log);
  }
  output.pool_log_ = std::move(pool_log);
  return output;
}

JobOutput& JobOutput::operator=(JobOutput&& other) noexcept {
  give_up();
  lanes_ = std::move(other.lanes_);
  log_ = std::move(other.log_);
  pool_log_ = std::move(other.pool_log_);
  stop_ = std::move(other.stop_);
  abort_ = std::move(other.abort_);
  done_ = std::move(other.done_);
  copier_ = std::move(other.copier_);
  loss_ = std::move(other.loss_);
  return *this;
}

void JobOutput::bound_log() const {
  if (pool_log_) (void)pool::cut_log(pool_log_.get(), pool::kMostRunningLogBytes, pool::kKeptLogBytes);
}

JobOutput::~JobOutput() { give_up(); }

bool JobOutput::finish(double seconds, const std::vector<int>& wakers) {
  lanes_.clear();
  stop_.reset();
  if (!copier_.joinable()) return true;
  std::vector<pollfd> polled{{done_.get(), POLLIN, 0}};
  for (const int waker : wakers) polled.push_back({waker, POLLIN, 0});
  const double most_s = std::min(seconds, 86400.0);
  ::poll(polled.data(), polled.size(), static_cast<int>(most_s * 1000));
  if (polled[0].revents == 0) return false;
  copier_.join();
  return true;
}

/// A thread that is blocked in a write, though poll() reported the descriptor as writable, ends with the process.
void JobOutput::give_up() {
  constexpr double kMoment_s = 0.1;
  if (!copier_.joinable()) return;
  abort_.reset();
  if (!finish(kMoment_s)) copier_.detach();
}

}  // namespace remuda::run
