#include "cli/train/train_rank.h"

#include <arpa/inet.h>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/number.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "workers/secret.h"

namespace remuda::cli {
namespace {

constexpr int kMostRanks = 1 << 16;

/// The variables by which one launcher tells a process its place.
struct Launcher {
  const char* name;
  env::Variable rank, size, local_rank;
};

/// Slurm's step has its own; its batch script, and a shell of salloc, are no rank of several.
std::optional<Launcher> launcher() {
  if (env::get(env::rank) && env::get(env::world_size) && env::get(env::local_rank))
    return Launcher{"torchrun", env::rank, env::world_size, env::local_rank};
  if (env::get(env::ompi_rank)) return Launcher{"mpirun", env::ompi_rank, env::ompi_size, env::ompi_local_rank};
  if (parse_number<int>(env::get(env::slurm_step).value_or("")) && env::get(env::slurm_rank))
    return Launcher{"srun", env::slurm_rank, env::slurm_size, env::slurm_local_rank};
  return std::nullopt;
}

/// A port that all ranks of a Slurm step find, and no other step of these hours.
int port_of_step() {
  constexpr int kFirst = 20000, kPorts = 12000, kStepsOfAJob = 31;
  const int job = parse_number<int>(env::get(env::slurm_job).value_or("")).value_or(0) % kPorts;
  const int step = parse_number<int>(env::get(env::slurm_step).value_or("")).value_or(0) % kPorts;
  return kFirst + (job * kStepsOfAJob + step) % kPorts;
}

Result<void> find_master(LaunchedRank& rank) {
  const bool is_slurm = rank.launcher == "srun";
  rank.master_address = env::get(env::master_addr).value_or("");
  if (rank.master_address.empty() && is_slurm)
    rank.master_address = first_host(env::get(env::slurm_hosts).value_or(""));
  if (rank.master_address.empty() || (!is_slurm && !env::get(env::master_port)))
    return usage_error(fmt::format("rank {} of {} does not know where rank 0 is: {} starts it without {} and {}",
                                   rank.rank, rank.size, rank.launcher, env::master_addr.name, env::master_port.name));
  rank.master_port = port_of_step();
  if (!env::get(env::master_port)) return {};
  REMUDA_ASSIGN(rank.master_port, env::get_master_port());
  return {};
}

}  // namespace

Result<std::optional<LaunchedRank>> launched_rank() {
  const auto by = launcher();
  if (!by) return std::nullopt;
  LaunchedRank rank{.launcher = by->name};
  REMUDA_ASSIGN(rank.size, env::get_int(by->size, 1, kMostRanks));
  if (rank.size == 1) return std::nullopt;
  REMUDA_ASSIGN(rank.rank, env::get_int(by->rank, 0, rank.size - 1));
  REMUDA_ASSIGN(rank.local_rank, env::get_int(by->local_rank, 0, rank.size - 1));
  if (env::get(env::local_world_size)) {
    REMUDA_ASSIGN(rank.local_size, env::get_int(env::local_world_size, 1, rank.size));
  }
  REMUDA_TRY(find_master(rank));
  rank.run_id = env::get(env::run_id)
                    .value_or(fmt::format("{}-{}.{}", rank.launcher, env::get(env::slurm_job).value_or(""),
                                          env::get(env::slurm_step).value_or("")));
  return rank;
}

std::string why_not_elastic(const LaunchedRank& rank, int ranks_lost) {
  const bool ends_all = rank.launcher == "mpirun";
  const int lost = ends_all ? rank.size : rank.launcher == "torchrun" ? rank.local_size : 1;
  if (ranks_lost == 0 || (lost <= ranks_lost && lost < rank.size)) return "";
  return fmt::format(
      "elastic.ranks_lost = {} keeps no run alive here: what has started the ranks (torchrun, remuda run --each, "
      "mpirun) "
      "ends {} ranks{} when one of them ends; on one host start them with remuda train alone, on several with torchrun "
      "--nproc-per-node 1 or srun --kill-on-bad-exit=0",
      ranks_lost, lost, ends_all ? "" : " of a host");
}

std::string first_host(const std::string& slurm_list) {
  const size_t end = slurm_list.find_first_of(",[");
  std::string host = slurm_list.substr(0, end);
  if (end == std::string::npos || slurm_list[end] == ',') return host;
  const size_t last = slurm_list.find_first_of(",-]", end);
  if (last == std::string::npos) return "";
  host += slurm_list.substr(end + 1, last - end - 1);
  const size_t close = slurm_list.find(']', last);
  if (close == std::string::npos) return "";
  const size_t rest = slurm_list.find_first_of(",[", close);  // "rack[1-2]-a"; one more [ is more than Slurm's own have
  return host + slurm_list.substr(close + 1, rest == std::string::npos ? rest : rest - close - 1);
}

Result<std::string> address_towards(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  wanted.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), "9", &wanted, &found); error != 0)
    return usage_error(fmt::format("cannot find the host {}: {}", printable(host), ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  const Fd socket(
      ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));  // nothing is sent: it only asks for the way
  sockaddr_in own{};
  socklen_t size = sizeof own;
  if (!socket || ::connect(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return usage_error(fmt::format("no way leads to the host {}: {}", printable(host), errno_text(errno)));
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &own.sin_addr, text, sizeof text);
  return std::string(text);
}

Result<std::string> users_secret() {
  if (const auto given = env::get(env::secret); given && !given->empty()) return *given;
  const auto folder = state_folder();
  if (!folder)
    return usage_error(
        fmt::format("neither HOME nor XDG_STATE_HOME names a folder: set {} to the same random text for all "
                    "ranks",
                    env::secret.name));
  REMUDA_TRY(make_folder(*folder));
  const std::string path = *folder + "/ranks.secret";
  if (::access(path.c_str(), F_OK) != 0) {
    // Whole or absent, and of the first rank that comes: a link does not replace what is there.
    REMUDA_ASSIGN(const std::string secret, workers::make_secret());
    const std::string own = fmt::format("{}.{}", path, ::getpid());
    const Fd file(::open(own.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    if (!file) return failed(fmt::format("cannot write {}: {}", own, errno_text(errno)));
    const auto written = write_all(file.get(), secret, own);
    const bool is_linked = written && (::link(own.c_str(), path.c_str()) == 0 || errno == EEXIST);
    const int error = errno;
    ::unlink(own.c_str());
    if (!is_linked) return failed(fmt::format("cannot write {}: {}", path, errno_text(error)));
  }
  REMUDA_ASSIGN(std::string secret, read_text(path));
  if (secret.size() < 32) return usage_error(fmt::format("{} holds no secret; delete it", path));
  return secret;
}

}  // namespace remuda::cli
