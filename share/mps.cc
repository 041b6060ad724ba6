#include "share/mps.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/text.h"
#include "base/version_number.h"
#include "confine/maker.h"
#include "process/tree.h"
#include "share/mps_folder.h"

namespace remuda::share {
namespace {

constexpr const char* kProgram = "nvidia-cuda-mps-control";
constexpr double kDaemonPatience_s = 2;

/// How the daemon is started: without the variables of the job that happens to start it, and not in that job's folder.
constexpr const char* kStartScript =
    "unset REMUDA_JOB REMUDA_POOL REMUDA_POOL_ID CUDA_MPS_ACTIVE_THREAD_PERCENTAGE CUDA_MPS_PINNED_DEVICE_MEM_LIMIT;"
    "cd / && exec \"$0\" -d </dev/null >>\"$CUDA_MPS_LOG_DIRECTORY/start.log\" 2>&1";

double patience_s() {
  constexpr int kUsual_s = 5, kLongest_s = 3600;
  return env::get_int(env::probe_timeout, 1, kLongest_s).value_or(kUsual_s);
}

/// Another process may be starting or stopping a daemon, and each of its steps may take patience_s().
double lock_patience_s() { return 4 * patience_s(); }

process::Environment directories(const std::string& folder) {
  return {{env::mps_pipe_directory.name, folder + "/pipe"}, {env::mps_log_directory.name, folder + "/log"}};
}

/// How the child ended; nothing when it has not ended within the time that a device has to answer. Its output is
/// dropped.
std::optional<process::ExitState> await_end(process::ChildProcess& child) {
  const double end_s = monotonic_s() + patience_s();
  bool is_open = true;
  for (;;) {
    if (const auto exit = child.exit_state()) return exit;
    const double left_s = end_s - monotonic_s();
    if (left_s <= 0) return std::nullopt;
    pollfd polled[] = {{child.pidfd(), POLLIN, 0}, {is_open ? child.output() : -1, POLLIN, 0}};
    ::poll(polled, 2, static_cast<int>(left_s * 1000) + 1);
    char dropped[512];
    while (is_open) {
      const ssize_t got = ::read(child.output(), dropped, sizeof dropped);
      if (got == 0) is_open = false;
      if (got <= 0) break;
    }
  }
}

/// Whether the daemon of that folder took the command.
bool command(const std::string& program, const std::string& folder, const std::string& line) {
  auto child = process::ChildProcess::spawn({.argv = {program}, .environment = directories(folder)}, line + "\n");
  if (!child) return false;
  const auto exit = await_end(*child);
  return exit && exit->ok();
}

bool answers(const std::string& program, const std::string& folder) {
  return std::filesystem::exists(folder + "/pipe") && command(program, folder, "get_server_list");
}

void remove_folder(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

std::vector<process::ProcessId> daemon_processes(const std::string& folder) {
  return process::processes_with({fmt::format("{}={}", env::daemon.name, folder)});
}

/// Kills what is left of a daemon and removes its folder; false where a process cannot be killed.
bool clear(const std::string& folder) {
  if (!process::kill_all([&] { return daemon_processes(folder); }, kDaemonPatience_s).empty()) return false;
  remove_folder(folder);
  return true;
}

std::string last_output(const std::string& folder) {
  constexpr size_t kMost = 200;
  const auto said = read_text(folder + "/log/start.log");
  if (!said || said->empty()) return "";
  const std::string text = printable(said->substr(0, std::min(said->find('\n'), kMost)));
  return ": " + text;
}

Result<void> start_daemon(const std::string& program, const std::string& folder, const Device& device) {
  for (const char* part : {"", "/pipe", "/log"}) REMUDA_TRY(make_private_folder(folder + part));
  REMUDA_ASSIGN(process::ChildProcess child,
                process::ChildProcess::spawn(mps_starter(program, folder, device.uuid.value())));
  const auto exit = await_end(child);
  if (!exit) return failed(fmt::format("{} -d did not come to an end within {:g} s", kProgram, patience_s()));
  if (!exit->ok()) return failed(fmt::format("{} -d {}{}", kProgram, to_string(*exit), last_output(folder)));
  if (!answers(program, folder)) return failed(fmt::format("the daemon that {} started does not answer", kProgram));
  return {};
}

struct Locked {
  MpsFolder folder;
  Fd lock;
};

Result<Locked> enter(const std::string& pool) {
  constexpr int kMostTimes = 10;  // each time, another process has removed it in between
  for (int times = 0; times < kMostTimes; ++times) {
    REMUDA_ASSIGN(MpsFolder folder, MpsFolder::make(pool));
    REMUDA_ASSIGN(Fd lock, folder.lock(lock_patience_s()));
    if (lock) return Locked{std::move(folder), std::move(lock)};
  }
  return failed("the folder of the MPS daemons comes and goes");
}

std::vector<std::string> idle(const MpsFolder& folder, const std::set<std::string>& used) {
  std::vector<std::string> idle = folder.devices();
  for (const std::string& device : used) std::erase(idle, folder.of_device(device));
  return idle;
}

/// Asks the daemon to quit, and kills it where it does not.
void stop_daemon(const std::string& folder) {
  constexpr double kPause_s = 0.02;
  const auto program = find_mps_control();
  if (program && command(*program, folder, "quit")) {
    const double end_s = monotonic_s() + patience_s();
    while (!daemon_processes(folder).empty() && monotonic_s() < end_s) steady_clock().sleep_s(kPause_s);
  }
  clear(folder);
}

}  // namespace

std::string mps_obstacle(const Device& device) {
  static const VersionNumber kFirst{{7}};  // Volta: before it, MPS limits nothing
  if (device.kind != DeviceKind::gpu || confine::maker_of(device) != confine::Maker::nvidia)
    return "MPS is for NVIDIA's GPUs";
  const auto capability = VersionNumber::parse(device.compute_capability.value_or(""));
  if (!capability) return "MPS needs compute capability 7.0, and that of this GPU is not known";
  if (*capability < kFirst)
    return fmt::format("MPS limits memory from compute capability 7.0 on, and this GPU has {}",
                       printable(device.compute_capability.value()));
  if (!device.uuid.has_value()) return "MPS needs a UUID, and that of this GPU is not known";
  if (device.compute_mode.has_value() && device.compute_mode.value() == ComputeMode::prohibited)
    return "its compute mode is prohibited";
  return "";
}

std::optional<std::string> find_mps_control() {
  for (const std::string& folder : split(env::get(env::path).value_or(""), ':')) {
    if (!folder.starts_with('/')) continue;
    std::string program = folder + "/" + kProgram;
    struct stat info{};
    if (::stat(program.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(program.c_str(), X_OK) == 0)
      return program;
  }
  return std::nullopt;
}

std::string no_mps_control() { return fmt::format("there is no {} in PATH", kProgram); }

Result<process::Environment> start_mps(const std::string& pool, const Device& device, const std::string& program,
                                       bool has_clients) {
  REMUDA_ASSIGN(const Locked locked, enter(pool));
  const std::string folder = locked.folder.of_device(device.id);
  if (!answers(program, folder)) {
    if (has_clients && !daemon_processes(folder).empty())
      return failed("the MPS daemon of this device does not answer, and other jobs use it");
    if (!clear(folder)) return failed("the MPS daemon of this device does not answer, and cannot be killed");
    if (auto started = start_daemon(program, folder, device); !started) {
      clear(folder);
      locked.folder.remove_if_empty();
      return tl::unexpected(std::move(started.error()));
    }
  }
  return directories(folder);
}

process::ProcessSpec mps_starter(const std::string& program, const std::string& folder, const std::string& uuid) {
  process::Environment environment = directories(folder);
  environment.insert(environment.end(), {{env::cuda_visible_devices.name, uuid},
                                         {env::cuda_device_order.name, "PCI_BUS_ID"},
                                         {env::daemon.name, folder}});
  return {.argv = {"/bin/sh", "-c", kStartScript, program}, .environment = std::move(environment)};
}

Result<process::Environment> await_mps(const std::string& program, const std::string& folder) {
  constexpr double kPause_s = 0.05;
  const double end_s = monotonic_s() + 2 * patience_s();
  while (!answers(program, folder)) {
    if (monotonic_s() >= end_s) return failed("the MPS daemon that the agent keeps for this device does not answer");
    steady_clock().sleep_s(kPause_s);
  }
  return directories(folder);
}

process::Environment mps_limits(double share, int64_t memory_bytes) {
  return {{env::mps_threads.name, fmt::format("{:.4g}", 100 * share)},
          {env::mps_memory.name, fmt::format("0={}M", memory_bytes >> 20)}};
}

Result<void> stop_mps_except(const std::string& pool, const std::function<Result<std::set<std::string>>()>& used,
                             double lock_patience_s) {
  const auto folder = MpsFolder::find(pool);
  if (!folder || folder->devices().empty()) return {};
  REMUDA_ASSIGN(const auto used_before, used());
  if (idle(*folder, used_before).empty()) return {};
  REMUDA_ASSIGN(const Fd lock, folder->lock(lock_patience_s));
  if (!lock) return {};
  REMUDA_ASSIGN(const auto used_now, used());
  for (const std::string& daemon : idle(*folder, used_now)) stop_daemon(daemon);
  folder->remove_if_empty();
  return {};
}

}  // namespace remuda::share
