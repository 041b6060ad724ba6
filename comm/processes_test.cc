// Ranks as real processes, over shared memory and TCP.

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "comm/communicator.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {

using Transport = ConnectOptions::Transport;

constexpr int kRanks = 3;
constexpr int kVictim = 2;

std::string maps_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/maps", pid));
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Way {
  Transport transport;
  bool split;  // in a group that has split off, and not the ranks of the job themselves
};

void PrintTo(const Way& way, std::ostream* out) {
  *out << (way.transport == Transport::tcp ? "tcp" : "shared memory") << (way.split ? ", split" : "");
}

// All-reduces until an error; the exit status is the rank that the error names.
[[noreturn]] void be_rank(int rank, Way way, int port, Fd listener, int started) {
  auto communicator = connect({.rank = rank,
                               .size = kRanks,
                               .master_port = port,
                               .listener = rank == 0 ? std::move(listener) : Fd(),
                               .secret = "secret",
                               .transport = way.transport,
                               .timeout_s = 20});
  if (communicator && way.split) communicator = (*communicator)->split(std::vector{kVictim, 1, 0}, 0);
  if (!communicator) ::_exit(100);
  const auto bytes = (*communicator)->allocate(8 << 20);
  if (!bytes) ::_exit(101);
  const std::span values(reinterpret_cast<float*>(bytes->data()), bytes->size() / sizeof(float));
  std::ranges::fill(values, 1.0f);
  for (uint32_t round = 0;; ++round) {
    const auto reduced = (*communicator)->all_reduce(values.first(values.size() - 1), round);
    if (!reduced) ::_exit(reduced.error().kind == ErrorKind::lost_peer ? reduced.error().peer : 102);
    if (round == 0 && values[0] != kRanks) ::_exit(103);
    if (round == 3 && rank == kVictim && ::write(started, "x", 1) != 1) ::_exit(104);
    if (round % 32 == 0) std::ranges::fill(values, 1.0f);
  }
}

class ProcessesTest : public testing::TestWithParam<Way> {};

TEST_P(ProcessesTest, AKilledRankIsNamedByTheOthersAndLeavesNothingBehind) {
  Fd listener = *listen_on({"127.0.0.1", 0});
  const int port = local_endpoint(listener.get()).port;
  int started[2];
  ASSERT_EQ(::pipe(started), 0);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < kRanks; ++rank) {
    pids.push_back(::fork());
    if (pids.back() == 0) be_rank(rank, GetParam(), port, std::move(listener), started[1]);
  }
  listener.reset();
  ::close(started[1]);
  char byte = 0;
  ASSERT_EQ(::read(started[0], &byte, 1), 1) << "the ranks did not come to work";
  for (const pid_t pid : pids) {
    const std::string maps = maps_of(pid);
    EXPECT_EQ(maps.find("/dev/shm"), std::string::npos) << "memory with a name can stay behind";
    EXPECT_EQ(maps.find("/memfd:remuda") != std::string::npos, GetParam().transport == Transport::shared_memory);
  }
  ::kill(pids[kVictim], SIGKILL);
  for (int rank = 0; rank < kRanks; ++rank) {
    int status = 0;
    ASSERT_EQ(::waitpid(pids[rank], &status, 0), pids[rank]);
    if (rank == kVictim)
      EXPECT_TRUE(WIFSIGNALED(status));
    else
      EXPECT_EQ(WEXITSTATUS(status), kVictim) << "rank " << rank;
  }
  ::close(started[0]);
}

INSTANTIATE_TEST_SUITE_P(Transports, ProcessesTest,
                         testing::Values(Way{Transport::tcp, false}, Way{Transport::shared_memory, false},
                                         Way{Transport::tcp, true}, Way{Transport::shared_memory, true}),
                         [](const auto& info) {
                           return fmt::format("{}{}", info.param.transport == Transport::tcp ? "tcp" : "shm",
                                              info.param.split ? "_split" : "");
                         });

}  // namespace
}  // namespace remuda::comm
