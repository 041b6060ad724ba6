#include "run/task_output.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace remuda::run {
namespace {

constexpr size_t kLongestLine = 64 << 10;
constexpr std::string_view kEraseLine = "\r\x1b[K";

/// What is read at one end, up to the last line's end.
struct Stream {
  Fd from;
  int to;
  std::string rest;  ///< of a line whose end has not come yet
};

class Mixer {
 public:
  Mixer(std::vector<Stream> streams, Fd stop, Fd log, bool erase)
      : streams_(std::move(streams)), stop_(std::move(stop)), log_(std::move(log)), erase_(erase) {}

  void run() {
    for (bool stopping = false;;) {
      std::vector<pollfd> polled{{stop_.get(), POLLIN, 0}};
      for (const Stream& stream : streams_) polled.push_back({stream.from.get(), POLLIN, 0});
      if (::poll(polled.data(), polled.size(), stopping ? 0 : -1) < 0 && errno != EINTR) break;
      bool has_read = false;
      for (size_t i = 0; i < streams_.size(); ++i)
        if (polled[i + 1].revents != 0) has_read |= read(streams_[i]);
      if (stopping && !has_read) break;
      stopping = stopping || polled[0].revents != 0;
    }
    for (Stream& stream : streams_) hand_on(stream, stream.rest.size());
  }

 private:
  /// False when nothing came.
  bool read(Stream& stream) {
    std::array<char, 16384> bytes;
    const ssize_t got = ::read(stream.from.get(), bytes.data(), bytes.size());
    if (got == 0) stream.from.reset();
    if (got <= 0) return false;
    stream.rest.append(bytes.data(), static_cast<size_t>(got));
    const size_t end = stream.rest.rfind('\n');
    if (end != std::string::npos)
      hand_on(stream, end + 1);
    else if (stream.rest.size() > kLongestLine)
      hand_on(stream, stream.rest.size());
    return true;
  }

  void hand_on(Stream& stream, size_t size) {
    if (size == 0) return;
    const std::string_view text = std::string_view(stream.rest).substr(0, size);
    if (log_) (void)write_all(log_.get(), text, "the log");
    if (erase_ && ::isatty(stream.to) == 1)
      (void)write_all(stream.to, std::string(kEraseLine).append(text), "the output");
    else
      (void)write_all(stream.to, text, "the output");
    stream.rest.erase(0, size);
  }

  std::vector<Stream> streams_;
  Fd stop_, log_;
  bool erase_;
};

struct Pipe {
  Fd read_end, write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed(fmt::format("cannot make a pipe: {}", errno_text(errno)));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

Result<TaskOutput> TaskOutput::open(size_t lanes, Options options) {
  TaskOutput output;
  std::vector<Stream> streams;
  for (size_t lane = 0; lane < lanes; ++lane) {
    REMUDA_ASSIGN(Pipe out, make_pipe());
    REMUDA_ASSIGN(Pipe err, make_pipe());
    streams.push_back({std::move(out.read_end), STDOUT_FILENO, {}});
    streams.push_back({std::move(err.read_end), STDERR_FILENO, {}});
    output.lanes_.push_back({std::move(out.write_end), std::move(err.write_end)});
  }
  REMUDA_ASSIGN(Pipe stop, make_pipe());
  output.stop_ = std::move(stop.write_end);
  output.mixer_ = std::thread([mixer = Mixer(std::move(streams), std::move(stop.read_end), std::move(options.log),
                                             options.erase)]() mutable { mixer.run(); });
  return output;
}

TaskOutput::~TaskOutput() {
  lanes_.clear();
  stop_.reset();
  if (mixer_.joinable()) mixer_.join();
}

}  // namespace remuda::run
