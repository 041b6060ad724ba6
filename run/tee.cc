#include "run/tee.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <poll.h>
#include <unistd.h>

namespace remuda::run {
namespace {

struct Streams {
  Fd out, err, stop, log;
};

Result<Fd> make_pipe(Fd& write_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed(fmt::format("cannot make a pipe: {}", errno_text(errno)));
  write_end.reset(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Fd(ends[0]);
}

/// Copies what can be read now; false once the stream has ended.
bool copy(const Fd& from, int to, const Fd& log) {
  std::array<char, 16384> bytes;
  const ssize_t got = ::read(from.get(), bytes.data(), bytes.size());
  if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
  const std::string_view text(bytes.data(), static_cast<size_t>(got));
  (void)write_all(to, text, "the output");
  (void)write_all(log.get(), text, "the log");
  return true;
}

void copy_all(const Streams& streams) {
  std::array<pollfd, 3> polled{pollfd{streams.out.get(), POLLIN, 0}, pollfd{streams.err.get(), POLLIN, 0},
                               pollfd{streams.stop.get(), POLLIN, 0}};
  const std::array<int, 2> targets{STDOUT_FILENO, STDERR_FILENO};
  for (bool stopping = false;;) {
    const int ready = ::poll(polled.data(), polled.size(), stopping ? 0 : -1);
    if (ready < 0 && errno != EINTR) return;
    bool copied = false;
    for (size_t i = 0; i < targets.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      copied = true;
      if (!copy(i == 0 ? streams.out : streams.err, targets[i], streams.log)) polled[i].fd = -1;
    }
    if (polled[2].fd >= 0 && polled[2].revents != 0) {
      stopping = true;
      polled[2].fd = -1;
    }
    if ((stopping && !copied) || (polled[0].fd < 0 && polled[1].fd < 0)) return;
  }
}

}  // namespace

Result<Tee> Tee::open(Fd log) {
  Tee tee;
  auto streams = std::make_shared<Streams>();
  streams->log = std::move(log);
  REMUDA_ASSIGN(streams->out, make_pipe(tee.out_));
  REMUDA_ASSIGN(streams->err, make_pipe(tee.err_));
  REMUDA_ASSIGN(streams->stop, make_pipe(tee.stop_));
  tee.copier_ = std::thread([streams] { copy_all(*streams); });
  return tee;
}

Tee::~Tee() {
  out_.reset();
  err_.reset();
  stop_.reset();
  if (copier_.joinable()) copier_.join();
}

}  // namespace remuda::run
