#include "doctor/question.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace remuda::doctor {
namespace {

constexpr size_t kLongestAnswer = 32 << 20;
constexpr char kComplete = '\n';  ///< ends every answer, so that an incomplete one can be recognised

enum class Chunk { more, end, broken };

struct Pipe {
  Fd read_end, write_end;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed(fmt::format("cannot make a pipe: {}", errno_text(errno)));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Chunk read_chunk(int fd, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR ? Chunk::more : Chunk::broken;
  text.append(buffer.data(), static_cast<size_t>(count));
  if (text.size() > kLongestAnswer) return Chunk::broken;
  return count == 0 ? Chunk::end : Chunk::more;
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
  auto child =
      process::GuardedChild::start([&](int socket) { (void)write_all(socket, work() + kComplete, "an answer"); });
  if (!child) return failed(fmt::format("cannot ask {}: {}", who, child.error().message));
  return Question(std::move(who), std::move(*child), limit_s, clock);
}

Question::Question(std::string who, process::GuardedChild child, double limit_s, Clock& clock)
    : who_(std::move(who)),
      child_(std::move(child)),
      limit_s_(limit_s),
      end_s_(clock.now_s() + limit_s),
      clock_(&clock) {}

Result<std::string> Question::answer() {
  using Received = process::GuardedChild::Received;
  std::string text;
  if (child_.receive_all(end_s_ - clock_->now_s(), text) == Received::nothing)
    return failed(fmt::format("{} did not answer within {:.3g} s", who_, limit_s_));
  if (!text.ends_with(kComplete)) return failed(fmt::format("{} ended without an answer", who_));
  text.pop_back();
  return text;
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
