#include "run/idle_response.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <future>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"

namespace remuda::run {
namespace {

using pool::IdleStep;

/// A child that waits, and ends with status 7 once its handler has run.
class Sleeper {
 public:
  explicit Sleeper(void (*on_usr1)(int)) : pid_(::fork()) {
    if (pid_ != 0) return;
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGUSR1, on_usr1);
    for (;;) ::pause();
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  process::ProcessId id() const { return *process::process_id(pid_); }
  int status() const {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return status;
  }

 private:
  pid_t pid_;
};

void end_with_7(int) { ::_exit(7); }

TEST(SignalHandlers, OnlyWhatHasAHandlerIsSignalled) {
  const Sleeper handles(end_with_7), dies(SIG_DFL), ignores(SIG_IGN);
  const std::vector<process::ProcessId> all{handles.id(), dies.id(), ignores.id()};
  int sent = 0;
  for (int i = 0; i < 1000 && sent == 0; ++i) {  // until the first one has its handler
    sent = signal_handlers(all, SIGUSR1);
    ::usleep(1000);
  }
  EXPECT_EQ(sent, 1);
  EXPECT_EQ(WEXITSTATUS(handles.status()), 7);
  EXPECT_TRUE(is_alive(dies.id()) && is_alive(ignores.id()));
}

TEST(IdleResponseTest, AreSaidOnceAtTheTerminalAndInTheLog) {
  const ScratchFolder folder;
  Channel channel = make_channel().value();
  RunSpec spec;
  spec.job.log = folder.path("job.log");
  FrontLink link = FrontLink::open(std::move(channel.keeper)).value();
  IdleResponse response(spec, 7, link);
  const auto nobody = [] { return std::vector<process::ProcessId>(); };
  response.take({}, nobody);
  for (int i = 0; i < 3; ++i) response.take({IdleStep::warned, 100, SIGUSR1, "gpu:0 idles"}, nobody);
  response.take({IdleStep::signalled, 200, SIGUSR1, "gpu:0 still idles"}, nobody);
  response.take({}, nobody);
  EXPECT_EQ(folder.read("job.log"),
            "remuda: gpu:0 idles\n"
            "remuda: gpu:0 still idles\n"
            "remuda: USR1 to write a checkpoint: not sent, as no process of the job has a handler for it\n"
            "remuda: its devices are in use again, and nothing is done about it\n");
  const auto first = receive_message(channel.front.get());
  ASSERT_TRUE(first.value);
  EXPECT_EQ((std::pair{first.value->kind, first.value->text}),
            (std::pair{Message::Kind::note, std::string("gpu:0 idles")}));
}

TEST(IdleResponseTest, TheSignalIsTheJobsOwnWhereItHasNamedOne) {
  const ScratchFolder folder;
  Channel channel = make_channel().value();
  RunSpec spec;
  spec.job.log = folder.path("job.log");
  spec.checkpoint_signal = SIGUSR2;
  FrontLink link = FrontLink::open(std::move(channel.keeper)).value();
  IdleResponse response(spec, 7, link);
  response.take({IdleStep::signalled, 200, SIGUSR1, "gpu:0 idles"}, [] { return std::vector<process::ProcessId>(); });
  EXPECT_NE(folder.read("job.log").find("remuda: USR2 to write a checkpoint: not sent"), std::string::npos);
}

TEST(IdleResponseTest, NobodyWaitsForAPipeThatIsFull) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("log").c_str(), 0600), 0);
  const Fd reader(::open(folder.path("log").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  const std::string bytes(4096, 'x');
  while (::write(reader.get(), bytes.data(), bytes.size()) > 0) continue;
  Channel channel = make_channel().value();
  RunSpec spec;
  spec.job.log = folder.path("log");
  FrontLink link = FrontLink::open(std::move(channel.keeper)).value();
  IdleResponse response(spec, 7, link);
  const auto said =
      std::async(std::launch::async, [&] { response.take({IdleStep::warned, 100, 0, "gpu:0 idles"}, {}); });
  const bool has_ended = said.wait_for(std::chrono::seconds(5)) == std::future_status::ready;
  std::string drained(1 << 20, '\0');
  EXPECT_GT(::read(reader.get(), drained.data(), drained.size()), 0);  // so that one that waits does end
  EXPECT_TRUE(has_ended);
}

}  // namespace
}  // namespace remuda::run
