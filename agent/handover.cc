#include "agent/handover.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <unistd.h>
#include <utility>

#include "base/env.h"
#include "base/text.h"
#include "confine/visibility.h"
#include "place/health.h"

namespace remuda::agent {
namespace {

constexpr double kHandoverLook_s = 1, kProbeLook_s = 0.1;
/// Readings of an idle device differ by some MiB; what a process leaves is its context at least, some hundred of them.
constexpr int64_t kSlack = int64_t{64} << 20;
constexpr size_t kMostProbeOutput = 4096;
constexpr const char* kAtStart = "at the agent's start";

/// Those that can be granted, without CPUs, whose memory is the host's.
bool is_checked(const Device& device) {
  return device.kind == DeviceKind::partition ||
         (device.kind == DeviceKind::gpu && !device.partitioned.value_or(false));
}

bool is_drained(const pool::PoolState& state, const std::string& device) {
  return std::ranges::find(state.drains, device, &pool::Drain::device) != state.drains.end();
}

std::map<std::string, std::string> leased_in(const pool::PoolState& state) {
  std::map<std::string, std::string> leased;
  for (const pool::Lease& lease : state.leases) {
    const pool::Job* job = state.find(lease.job);
    leased[lease.device] = job ? fmt::format("after job {} of {}", pool::name_of(*job), job->user)
                               : fmt::format("after job {}", lease.job);
  }
  return leased;
}

bool has_ended(const Process& process) {
  return process.pid > 0 && ::access(fmt::format("/proc/{}", process.pid).c_str(), F_OK) != 0;
}

/// What is in use beyond what its processes have; nothing where the driver does not report it.
std::optional<int64_t> unowned_memory(const Device& device) {
  if (!device.status.memory_used_bytes.has_value()) return std::nullopt;
  int64_t bytes = device.status.memory_used_bytes.value();
  for (const Process& process : device.status.processes.value_or({})) {
    if (!process.memory_bytes.has_value()) return std::nullopt;
    bytes -= process.memory_bytes.value();
  }
  return std::max<int64_t>(0, bytes);
}

std::string last_said(const std::string& text) {
  std::string last;
  for (const std::string& line : split(text, '\n'))
    if (!line.empty()) last = printable(line);
  return last.empty() ? "" : ": " + last;
}

}  // namespace

void Handover::add(const std::string& device, const std::string& after, double now_s) {
  checks_[device] = Check{.after = after, .until_s = now_s + kHandoverPatience_s, .look_s = now_s};
}

void Handover::begin(const pool::PoolState& state, const Inventory& inventory, double now_s) {
  leased_ = leased_in(state);
  if (!checks_any_) return;
  for (const Device& device : inventory.devices)
    if (is_checked(device) && !leased_.contains(device.id) && !is_drained(state, device.id))
      add(device.id, kAtStart, now_s);
}

void Handover::see(const pool::PoolState& state, double now_s) {
  if (!checks_any_) return;
  const auto before = std::exchange(leased_, leased_in(state));
  for (const auto& [device, after] : before)
    if (!leased_.contains(device) && !device.starts_with("cpu")) add(device, after, now_s);
}

std::vector<place::Held> Handover::held(const pool::PoolState& state) const {
  std::vector<place::Held> held;
  if (!checks_any_) return held;
  const auto hold = [&](const std::string& device, const std::string& after, const std::string& found) {
    const std::string what = found.empty() ? "is looked over" : "is not clean yet (" + found + ")";
    held.push_back({.device = device, .barred = fmt::format("{} {}", what, after)});
  };
  for (const auto& [device, check] : checks_)
    if (!check.waits_for_process) hold(device, check.after, check.found);
  const auto leased = leased_in(state);
  for (const auto& [device, after] : leased_)
    if (!leased.contains(device)) hold(device, after, "");
  return held;
}

double Handover::next_reading_s() const {
  double next_s = kNever_s;
  for (const auto& [_, check] : checks_)
    if (!check.waits_for_process && !check.probe && !check.is_over) next_s = std::min(next_s, check.look_s);
  return next_s;
}

bool Handover::is_new() const {
  return std::ranges::any_of(checks_, [](const auto& one) { return !one.second.was_looked_at; });
}

void Handover::reading_begins() {
  for (auto& [_, check] : checks_) check.is_covered = true;
}

void Handover::reading_failed(double now_s) {
  for (auto& [_, check] : checks_) check.look_s = std::max(check.look_s, now_s + kHandoverLook_s);
}

/// What of the last job is left, or is wrong with the device; empty where it is clean.
std::string Handover::uncleanness(const Inventory& inventory, const Device& device, Check& check) const {
  if (const auto ailment = place::ailment(inventory, device)) return "it " + *ailment;
  for (const Process& process : device.status.processes.value_or({})) {
    if (process.type == "graphics") continue;
    if (has_ended(process)) return fmt::format("process {}, which has ended, is still on it", process.pid);
    check.waits_for_process = true;
    return fmt::format("process {} is still on it", process.pid);
  }
  const auto unowned = unowned_memory(device), idle = memory_.of(device.id);
  if (!unowned || !idle || *unowned <= *idle + kSlack) return "";
  return fmt::format("{} of its memory are in use, and no process has them",
                     human_bytes(static_cast<double>(*unowned - *idle)));
}

void Handover::look_at(const Inventory& inventory, const Device& device, Check& check, const policy::Health& health,
                       double now_s) {
  check.waits_for_process = false;
  check.found = uncleanness(inventory, device, check);
  if (check.waits_for_process) check.until_s = now_s + kHandoverPatience_s;
  if (!check.found.empty()) {
    check.is_over = now_s >= check.until_s;
    return;
  }
  if (const auto unowned = unowned_memory(device)) memory_.note(device.id, *unowned);
  if (health.probe.empty() || check.is_probed) return;
  auto started = start_(health.probe, inventory, device);
  if (started) {
    check.probe = std::make_unique<Probe>(Probe{std::move(*started), "", now_s + health.probe_timeout_s});
    return;
  }
  check.found = "its health probe cannot be started: " + started.error().message;
  check.is_over = true;
}

void Handover::look(const Inventory& inventory, const policy::Health* health, double now_s) {
  for (auto one = checks_.begin(); one != checks_.end();) {
    Check& check = one->second;
    const Device* device = inventory.find(one->first);
    if (device && !is_checked(*device)) {
      one = checks_.erase(one);
      continue;
    }
    const bool is_seen = check.is_covered && !check.probe && !check.is_over;
    check.was_looked_at = check.was_looked_at || check.is_covered;
    // One that is gone can be granted to nobody; should it come back, the next reading tells.
    if (is_seen) check.look_s = device ? now_s + kHandoverLook_s : kNever_s;
    if (is_seen && device && health) look_at(inventory, *device, check, *health, now_s);
    const bool is_clean = is_seen && device && health && check.found.empty() && !check.probe;
    one = is_clean ? checks_.erase(one) : std::next(one);
  }
}

void Handover::leave(const std::vector<std::string>& devices) {
  for (const std::string& device : devices) checks_.erase(device);
}

/// Once the probe has ended well, one more reading shows that it has left nothing.
void Handover::follow(Check& check, double now_s) {
  Probe& probe = *check.probe;
  char bytes[1024];
  for (ssize_t got; (got = ::read(probe.process.output(), bytes, sizeof bytes)) > 0;)
    if (probe.said.size() < kMostProbeOutput) probe.said.append(bytes, static_cast<size_t>(got));
  const auto exit = probe.process.exit_state();
  if (!exit && now_s < probe.end_s) return;
  if (exit && exit->ok()) {
    check.is_probed = true;
    check.is_covered = false;
    check.look_s = now_s;
    check.until_s = now_s + kHandoverPatience_s;
  } else {
    check.found = exit ? fmt::format("its health probe {}{}", to_string(*exit), last_said(probe.said))
                       : "its health probe did not end in time" + last_said(probe.said);
    check.is_over = true;
  }
  check.probe.reset();
}

std::vector<Handover::Fault> Handover::step(double now_s) {
  std::vector<Fault> faults;
  for (auto& [device, check] : checks_) {
    if (check.probe) follow(check, now_s);
    if (check.is_over) faults.push_back({device, fmt::format("{}: {}", check.after, check.found)});
  }
  return faults;
}

double Handover::next_s(double now_s) const {
  double next_s = kNever_s;
  for (const auto& [_, check] : checks_) {
    if (check.probe) next_s = std::min(next_s, now_s + kProbeLook_s);
    if (check.is_over) next_s = std::min(next_s, now_s + kHandoverLook_s);
  }
  return next_s;
}

Result<process::ChildProcess> start_probe(const std::string& command, const Inventory& inventory,
                                          const Device& device) {
  confine::Visibility sees = confine::visibility(inventory, {device.id});
  sees.set.emplace_back(env::job_devices.name, device.id);
  return process::ChildProcess::spawn({.argv = {"/bin/sh", "-c", command},
                                       .environment = std::move(sees.set),
                                       .unset = std::move(sees.unset),
                                       .folder = "/"});
}

}  // namespace remuda::agent
