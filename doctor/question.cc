#include "doctor/question.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace remuda::doctor {
namespace {

constexpr size_t kLongestAnswer = 32 << 20;
constexpr int kKillWaitMs = 100;
constexpr char kComplete = '\n';  ///< ends every answer, so that a cut one is known

enum class Chunk { more, end, broken };

struct Pipe {
  Fd read_end, write_end;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed(fmt::format("cannot make a pipe: {}", errno_text(errno)));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

[[noreturn]] void answer_and_end(const std::function<std::string()>& work, int fd, pid_t asker) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != asker) ::_exit(1);  // the asker died before the death signal was set
  ::signal(SIGPIPE, SIG_IGN);
  const bool told = write_all(fd, work() + kComplete, "an answer").has_value();
  ::_exit(told ? 0 : 1);
}

Chunk read_chunk(int fd, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR ? Chunk::more : Chunk::broken;
  text.append(buffer.data(), static_cast<size_t>(count));
  if (text.size() > kLongestAnswer) return Chunk::broken;
  return count == 0 ? Chunk::end : Chunk::more;
}

/// By system call: glibc 2.36 declares its function without C linkage.
Fd open_pidfd(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

bool wait_readable(int fd, double seconds) {
  pollfd wanted{fd, POLLIN, 0};
  return ::poll(&wanted, 1, static_cast<int>(std::ceil(seconds * 1000))) > 0;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return status;
}

}  // namespace

Result<Question> Question::ask(std::string who, const std::function<std::string()>& work, double limit_s,
                               Clock& clock) {
  REMUDA_ASSIGN(Pipe pipe, make_pipe());
  const pid_t asker = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return failed(fmt::format("cannot start a process to ask {}: {}", who, errno_text(errno)));
  if (pid == 0) answer_and_end(work, pipe.write_end.get(), asker);
  ::setpgid(pid, pid);  // the child does it too; whichever comes first, the group is there before it is killed
  return Question(std::move(who), pid, std::move(pipe.read_end), limit_s, clock);
}

Question::Question(std::string who, pid_t pid, Fd answer, double limit_s, Clock& clock)
    : who_(std::move(who)),
      pid_(pid),
      answer_(std::move(answer)),
      limit_s_(limit_s),
      end_s_(clock.now_s() + limit_s),
      clock_(&clock) {}

Question::Question(Question&& other) noexcept
    : who_(std::move(other.who_)),
      pid_(std::exchange(other.pid_, 0)),
      answer_(std::move(other.answer_)),
      limit_s_(other.limit_s_),
      end_s_(other.end_s_),
      clock_(other.clock_) {}

Question::~Question() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  const Fd pidfd = open_pidfd(pid_);
  if (pidfd && wait_readable(pidfd.get(), kKillWaitMs / 1000.0)) wait_for(pid_);
}

Result<std::string> Question::answer() {
  std::string text;
  while (true) {
    const double left_s = end_s_ - clock_->now_s();
    if (left_s <= 0 || !wait_readable(answer_.get(), left_s)) {
      if (left_s > 0 && clock_->now_s() < end_s_) continue;  // a signal woke poll
      return failed(fmt::format("{} did not answer within {:.3g} s", who_, limit_s_));
    }
    const Chunk chunk = read_chunk(answer_.get(), text);
    if (chunk == Chunk::more) continue;
    if (chunk == Chunk::broken || !text.ends_with(kComplete))
      return failed(fmt::format("{} ended without an answer", who_));
    text.pop_back();
    return text;
  }
}

Result<std::string> output_of(const std::vector<std::string>& argv) {
  REMUDA_ASSIGN(Pipe pipe, make_pipe());
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipe.write_end.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<std::string> words = argv;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return failed(fmt::format("{} cannot be run: {}", argv[0], errno_text(error)));
  pipe.write_end.reset();
  std::string text;
  Chunk chunk = Chunk::more;
  while (chunk == Chunk::more) chunk = read_chunk(pipe.read_end.get(), text);
  pipe.read_end.reset();
  if (wait_for(pid) != 0 || chunk == Chunk::broken) return failed(fmt::format("{} ended with an error", argv[0]));
  return text;
}

}  // namespace remuda::doctor
