#include "bench/pair.h"

#include <cstdio>
#include <fmt/format.h>
#include <sched.h>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

namespace remuda::bench {
namespace {

[[noreturn]] void be_rank(int rank, const std::function<Result<std::vector<double>>(int)>& body, int out) {
  pin_to(pair_cores()[rank]);
  const auto values = body(rank);
  if (!values) {
    fmt::print(stderr, "rank {}: {}\n", rank, values.error().message);
    ::_exit(1);
  }
  const std::string_view bytes(reinterpret_cast<const char*>(values->data()), values->size() * sizeof(double));
  ::_exit(rank == 0 && !write_all(out, bytes, "results") ? 1 : 0);
}

std::vector<double> read_values(int fd) {
  std::vector<double> values;
  double value = 0;
  while (::read(fd, &value, sizeof value) == sizeof value) values.push_back(value);
  return values;
}

}  // namespace

std::vector<int> pair_cores() {
  cpu_set_t allowed;
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE && cores.size() < 2; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  if (cores.size() == 1) cores.push_back(cores.front());
  return cores;
}

void pin_to(int core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  ::sched_setaffinity(0, sizeof only, &only);
}

Result<std::vector<double>> run_pair(const std::function<Result<std::vector<double>>(int rank)>& body) {
  int ends[2];
  if (::pipe(ends) != 0) return failed("cannot make a pipe");
  Fd in(ends[0]), out(ends[1]);
  pid_t pids[2];
  for (int rank = 0; rank < 2; ++rank) {
    pids[rank] = ::fork();
    if (pids[rank] == 0) be_rank(rank, body, out.get());
    if (pids[rank] < 0) return failed("cannot fork");
  }
  out.reset();
  auto values = read_values(in.get());
  bool good = true;
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  if (!good) return failed("a process of the pair failed");
  return values;
}

}  // namespace remuda::bench
