#include "agent/agent.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/adopt.h"
#include "agent/enforcement.h"
#include "agent/handover.h"
#include "agent/machine_thread.h"
#include "agent/openers.h"
#include "agent/user_names.h"
#include "base/clock.h"
#include "base/env.h"
#include "process/user_name.h"
#include "wire/place.h"

namespace remuda::agent {
namespace {

/// A short line, as in packaging/remuda-agent.socket: whoever connects without end fills it, and those behind wait
/// until all before them were taken. Who finds it full waits in the kernel, and comes next after those in it.
constexpr int kWaitingConnections = 16;

tl::unexpected<Error> cannot(const char* what, const std::string& path) {
  return failed(fmt::format("cannot {} {}: {}", what, path, errno_text(errno)));
}

/// A process that was forked by an agent which is killed has the lock, too, until it executes its program, or sees that
/// its parent is gone.
Result<Fd> lock_file(const std::string& path, const std::string& where) {
  constexpr double kPatience_s = 5, kPause_s = 0.02;
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock) return cannot("open", path);
  const double end_s = monotonic_s() + kPatience_s;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (monotonic_s() >= end_s) return failed(fmt::format("another agent serves {}", where));
    steady_clock().sleep_s(kPause_s);
  }
  return lock;
}

/// Held as long as the agent lives.
Result<Fd> lock_pool(const std::string& folder) { return lock_file(folder + "/agent.lock", folder); }

/// What systemd has opened for this process (sd_listen_fds(3)); nothing where it has not.
Fd inherited_socket() {
  constexpr int kFirst = 3;
  const auto process = env::get_int(env::listen_pid, 1, 1 << 30);
  if (!process || *process != ::getpid() || !env::get_int(env::listen_fds, 1, 1)) return {};
  ::fcntl(kFirst, F_SETFD, FD_CLOEXEC);
  ::fcntl(kFirst, F_SETFL, O_NONBLOCK);
  return Fd(kFirst);
}

/// The folder is for all users to enter, and for this one to write. The mark in it stays when the agent ends: from then
/// on no user makes a pool beside this one.
Result<void> prepare_folder(const std::string& socket) {
  const std::filesystem::path folder = std::filesystem::path(socket).parent_path();
  std::error_code error;
  const bool is_new = std::filesystem::create_directories(folder, error);
  if (is_new) std::filesystem::permissions(folder, std::filesystem::perms(0755), error);  // whatever the umask
  if (error) return failed(fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
  const std::string mark = (folder / wire::kInstalled).string();
  const Fd file(::open(mark.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  return file ? Result<void>{} : cannot("write", mark);
}

Fd make_socket() { return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

/// Whether somebody listens there: also where the line of those that wait is full.
bool is_answered(const sockaddr_un& address) {
  const Fd socket = make_socket();
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 || errno == EAGAIN;
}

/// Of two that start at once, the lock lets one look and listen before the other looks.
Result<Fd> listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return usage_error(fmt::format("'{}' is no path of a socket", path));
  std::memcpy(address.sun_path, path.data(), path.size());
  REMUDA_ASSIGN(const Fd lock, lock_file(path + ".lock", path));
  if (is_answered(address))
    return failed(fmt::format("another agent serves {}: end that one, or name another --socket", path));
  Fd socket = make_socket();
  if (!socket) return cannot("make the socket", path);
  ::unlink(path.c_str());  // one of an agent that was killed
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0666) != 0 || ::listen(socket.get(), kWaitingConnections) != 0)
    return cannot("listen at", path);
  return socket;
}

/// As many descriptors as the system permits: one for each connection, and one for each keeper.
Limits raise_limits() {
  Limits limits;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return limits;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const size_t most = std::max<size_t>(64, (std::min<size_t>(files.rlim_cur, 1 << 20) - 256) / 2);
  limits.connections = std::min(limits.connections, most);
  limits.connections_of_user = std::min(limits.connections_of_user, most / 2);
  limits.idle_of_user = std::min(limits.idle_of_user, most / 4);
  return limits;
}

/// By the path that it was started from, which an upgrade gives to another file: /proc/self/exe stays with the old one.
Result<std::string> own_program() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path started_from = fs::absolute(std::bit_cast<const char*>(::getauxval(AT_EXECFN)), error);
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  if (error) return failed(fmt::format("cannot find this program: /proc/self/exe: {}", error.message()));
  return (fs::equivalent(started_from, own, error) ? started_from : own).string();
}

Fd stop_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

/// Users who do not trust each other do not overtake each other by a number, unless the policy says how high it may be.
pool::ReadPolicy within_reason(pool::ReadPolicy read) {
  return [read = std::move(read)]() -> Result<pool::Policy> {
    REMUDA_ASSIGN(pool::Policy policy, read());
    policy::Limit last;
    last.priority = policy::Rule<int>{0, "unless a policy says otherwise"};
    policy.limits.push_back(std::move(last));
    return policy;
  };
}

/// With those who have a device open that the policy keeps them from.
pool::ReadMachine with_openers(pool::ReadMachine read, pool::ReadPolicy read_policy) {
  return [read = std::move(read), read_policy = std::move(read_policy)]() -> Result<Inventory> {
    REMUDA_ASSIGN(Inventory inventory, read());
    const auto policy = read_policy();
    if (policy && policy->enforce == policy::Enforce::everyone) add_openers(inventory, policy->exempt);
    return inventory;
  };
}

std::string daemon_folder(const std::string& socket) {
  return (std::filesystem::path(socket).parent_path() / "mps").string();
}

}  // namespace

Result<void> run_agent(const AgentOptions& options) {
  const Fd stop = stop_signals();
  Fd listener = inherited_socket();
  REMUDA_ASSIGN(const std::string program, own_program());
  REMUDA_ASSIGN(const std::string adopted, adopt_pool(options.pool));
  REMUDA_ASSIGN(const Fd lock, lock_pool(options.pool));
  if (!adopted.empty()) options.say(adopted);
  const Limits limits = raise_limits();
  REMUDA_TRY(prepare_folder(options.socket));
  REMUDA_ASSIGN(pool::MachineView view,
                pool::MachineView::open(
                    options.pool, options.live ? with_openers(options.read, options.read_policy) : options.read,
                    within_reason(options.read_policy), options.live, options.live ? options.read_allocations : nullptr,
                    ::geteuid() == 0 ? pool::OthersClaims::mean_nothing : pool::OthersClaims::count));
  const std::string marks = partition_marks_of(options.pool);
  Service::Means means{
      Enforcement(options.live ? guard_of(options.pool, options.say) : Enforcement::Options{}),
      Revival(reviver_at(options.socket, options.machine, program)),
      options.live ? Handover(IdleMemory(options.pool + "/idle.json"), start_probe) : Handover(),
      options.live ? SharingDaemons({options.pool, daemon_folder(options.socket)}) : SharingDaemons(),
      options.live ? Partitions(marks, partition_starter(program, marks), options.say) : Partitions(),
      options.say,
      options.policy,
  };
  REMUDA_ASSIGN(Service service, Service::open(options.pool, view, monotonic_s(), std::move(means)));
  if (!listener) {
    REMUDA_ASSIGN(listener, listen_at(options.socket));
  }
  MachineThread machine(std::move(view));
  UserNames names([](int uid) {
    const int owner = process::owner_of(uid);
    return Account{{process::user_name(owner), process::groups_of(owner), process::is_told(owner)}, owner};
  });
  options.say(fmt::format("serves the pool {} at {}", options.pool, options.socket));
  if (::geteuid() != 0)
    options.say("it is not root: jobs are not kept from devices, and a keeper can leave its cgroup");
  std::optional<spot::Poller> spot;
  if (!options.spot) service.take_notice(std::nullopt);  // whoever asked before may have drained devices
  if (options.spot) spot.emplace(options.spot, options.say, options.spot_every_s);
  Server server(std::move(listener), std::move(service), machine, names, limits);
  if (spot) server.heed(*spot);
  return server.run(stop.get());
}

}  // namespace remuda::agent
