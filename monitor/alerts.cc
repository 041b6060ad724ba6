#include "monitor/alerts.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration.h"
#include "base/text.h"
#include "device/throttle.h"
#include "monitor/idle_jobs.h"
#include "pool/clocks.h"

namespace remuda::monitor {
namespace {

// The limits are those of packaging/prometheus/remuda.rules.yml.
constexpr double kIdleBusy = 0.05, kUnderusedBusy = 0.3;
constexpr double kMemoryFull = 0.95;
constexpr double kMemoryFree = 0.93;  ///< an alert ends below this: what is at its limit goes up and down
constexpr double kRisingOver_s = 600;
constexpr double kRunWaits = 0.1, kDiskFree = 0.1;

/// "ana (job 7)", of all that hold it; of a hundred with small parts of it, the first.
std::string holders(const Device& device, const pool::PoolState& pool) {
  constexpr size_t kMostNamed = 8;
  std::vector<std::string> names;
  size_t others = 0;
  for (const pool::Lease& lease : pool.leases) {
    if (lease.device != device.id) continue;
    if (names.size() == kMostNamed) {
      ++others;
      continue;
    }
    const pool::Job* const job = pool.find(lease.job);
    names.push_back(fmt::format("{} (job {})", job ? job->user : "somebody", lease.job));
  }
  return fmt::format("{}{}", fmt::join(names, ", "), others == 0 ? "" : fmt::format(" and {} more", others));
}

/// The oldest; null: nobody holds it.
const pool::Lease* lease_of(const std::string& device, const pool::PoolState& pool) {
  const pool::Lease* oldest = nullptr;
  for (const pool::Lease& lease : pool.leases)
    if (lease.device == device && (!oldest || lease.since_s < oldest->since_s)) oldest = &lease;
  return oldest;
}

/// What nobody but those who hold it can know of a device: why next to nothing runs there, and what comes of it.
std::string idle_text(const Device& device, const Moment& moment) {
  const std::string start = fmt::format("{} holds {}", holders(device, moment.pool), device.label());
  const pool::Lease* const lease = lease_of(device.id, moment.pool);
  const pool::Job* const job = lease ? moment.pool.find(lease->job) : nullptr;
  if (job && job->idle.step != pool::IdleStep::none) return fmt::format("{}: {}", start, job->idle.text);
  const IdleWindow* const window = lease && moment.idle ? moment.idle->find(lease->job) : nullptr;
  const char* const why = window ? reason_text(window->reason()) : "";
  return fmt::format("{}, and next to nothing runs there{}{}", start, *why == '\0' ? "" : ": ", why);
}

bool was_warned(const pool::Lease* lease, const pool::PoolState& pool) {
  const pool::Job* const job = lease ? pool.find(lease->job) : nullptr;
  return job && job->idle.step != pool::IdleStep::none;
}

/// Six digits, by which people can name it: FNV-1a of rule and device.
std::string id_of(const std::pair<std::string, std::string>& key) {
  uint32_t hash = 2166136261;
  for (const char byte : key.first + ":" + key.second) hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619;
  return fmt::format("{:06x}", hash & 0xffffff);
}

/// Whether it is one of these, which are known by their processes.
std::optional<bool> is_among(const std::vector<std::string>& devices, const Device& device) {
  if (std::ranges::find(devices, device.id) != devices.end()) return true;
  const auto& processes = device.status.processes;
  if (!processes.has_value() && processes.missing().reason != MissingReason::unsupported) return std::nullopt;
  return false;
}

bool is_of_lease(std::string_view rule) {
  return rule == "held and idle" || rule == "underused" || rule == "foreign process" || rule == "lease overrun";
}

/// Of those of which the pool tells.
bool is_of_pool(std::string_view rule) {
  return is_of_lease(rule) || rule == "used without a lease" || rule == "run waits" || rule == "checkpoint too old";
}

/// Nothing where no reading says whether it answers.
std::optional<bool> is_lost(const Status& status) {
  bool answers = false;
  const auto is_so = [&](const auto& reading) {
    answers = answers || reading.has_value();
    return !reading.has_value() && reading.missing().reason == MissingReason::lost;
  };
  if (is_so(status.busy) || is_so(status.memory_used_bytes) || is_so(status.power_watts) ||
      is_so(status.temperature_c) || is_so(status.processes))
    return true;
  return answers ? std::optional(false) : std::nullopt;
}

}  // namespace

/// A cause that was not seen at the last reading has ended, and what has ended begins anew. Where it is not known
/// (`is_wrong` is nothing), what is an alert goes on, and what has not lasted for long enough begins anew.
void Alerts::see(const char* rule, const Device& device, std::optional<bool> is_wrong, double lasting_s, Alert alert,
                 int64_t code) {
  if (!is_wrong) keep(rule, device);
  if (!is_wrong.value_or(false)) return;
  const auto key = std::pair(code == 0 ? std::string(rule) : fmt::format("{} {}", rule, code), device.id);
  const auto [found, is_new] = causes_.try_emplace(key);
  Cause& cause = found->second;
  if (is_new) cause.began_s = now_s_;
  if (is_new || cause.since_s > wall_s_) cause.since_s = wall_s_;  // the clock was set back
  cause.seen_s = now_s_;
  alert.id = id_of(key);
  alert.rule = rule;
  alert.device = device.id;
  if (alert.label.empty()) alert.label = device.label();
  alert.since_s = cause.since_s;
  cause.alert = std::move(alert);
  cause.is_alert = cause.is_alert || now_s_ - cause.began_s >= lasting_s;
}

void Alerts::keep(std::string_view rule, const Device& device) {
  for (auto& [key, cause] : causes_)
    if (key.second == device.id && cause.alert.rule == rule && cause.is_alert) cause.seen_s = now_s_;
}

bool Alerts::is_alert(const char* rule, const Device& device) const {
  const auto found = causes_.find({rule, device.id});
  return found != causes_.end() && found->second.is_alert;
}

void Alerts::check_use(const Device& device, const Moment& moment) {
  const Status& status = device.status;
  const pool::Lease* const lease = lease_of(device.id, moment.pool);
  Holding& held = held_[device.id];
  const double began_s = lease ? pool::began_s(moment.pool, *lease) : 0;
  const bool is_held_on = lease && lease->job == held.job && pool::is_same_beginning(began_s, held.began_s);
  if (!is_held_on) held = lease ? Holding{lease->job, began_s} : Holding{};
  if (lease) held.window.add(now_s_, {.busy = status.busy.value_or(-1)});
  const double busy = held.window.busy();
  const auto is_so = [&](bool is_wrong) { return is_held_on && busy < 0 ? std::nullopt : std::optional(is_wrong); };
  const std::string value = busy < 0 ? "idle" : fmt::format("busy {:.0f} % of 30 min", busy * 100);
  const bool is_warned = was_warned(lease, moment.pool);
  see("held and idle", device, is_warned ? true : is_so(busy >= 0 && busy < kIdleBusy), 0,
      {.value = value,
       .limit = fmt::format("{:.0f} %", kIdleBusy * 100),
       .text = idle_text(device, moment),
       .command = lease ? fmt::format("remuda show {}", lease->job) : ""});
  see("underused", device, is_so(busy >= kIdleBusy && busy < kUnderusedBusy), kIdleFor_s,
      {.value = value,
       .limit = fmt::format("{:.0f} %", kUnderusedBusy * 100),
       .text = fmt::format("{} holds {}, and uses little of it", holders(device, moment.pool), device.label()),
       .command = lease ? fmt::format("remuda show {}", lease->job) : ""});
  see("used without a lease", device, lease ? false : is_among(moment.used_without_lease, device), 300,
      {.value = "processes without a lease",
       .limit = "none",
       .text = fmt::format("processes that hold no lease use {}", device.label()),
       .command = "remuda ps"});
  see("foreign process", device, lease ? is_among(moment.used_by_strangers, device) : false, 300,
      {.value = "processes of no job",
       .limit = "none",
       .text = fmt::format("{} holds {}, and processes of no job use it, too", holders(device, moment.pool),
                           device.label()),
       .command = "remuda list"});
}

/// Its use rises for ten minutes after each time when it was higher than ever since it had room.
void Alerts::check_memory(const Device& device) {
  const Status& status = device.status;
  if (!status.memory_used_bytes.has_value() || device.memory_bytes.value_or(0) <= 0)
    return keep("memory almost full", device);
  const auto used = static_cast<double>(status.memory_used_bytes.value());
  const double full = used / static_cast<double>(device.memory_bytes.value());
  auto& [most, rose_s] = memory_.try_emplace(device.id, used, -kRisingOver_s).first->second;
  if (used > most) most = used, rose_s = now_s_;
  if (full < kMemoryFree) most = used, rose_s = -kRisingOver_s;
  const bool is_rising = now_s_ - rose_s < kRisingOver_s;
  const double limit = is_alert("memory almost full", device) ? kMemoryFree : kMemoryFull;
  see("memory almost full", device, full > limit && is_rising, 120,
      {.value = fmt::format("{:.0f} %", full * 100),
       .limit = fmt::format("{:.0f} %, and rising", kMemoryFull * 100),
       .text = fmt::format("the memory of {} is almost full, and its use rises", device.label()),
       .command = "remuda ps"});
}

/// An error is not over when another one follows.
void Alerts::check_errors(const Device& device) {
  const Status& status = device.status;
  const int code = status.xid.value_or(0);
  if (code != 0) keep("device error", device);
  see("device error", device, status.xid.has_value() ? std::optional(code != 0) : std::nullopt, 0,
      {.value = std::to_string(code),
       .limit = "none",
       .text = fmt::format("the driver has reported the fatal error {} of {}", code, device.label()),
       .command = fmt::format("remuda drain {} --reason 'error {}'", device.label(), code)},
      code);
  const auto action = status.recovery_action.has_value() ? std::optional(status.recovery_action.value()) : std::nullopt;
  const std::string wanted = to_string(action.value_or(RecoveryAction::none));
  see("needs recovery", device, action ? std::optional(*action != RecoveryAction::none) : std::nullopt, 0,
      {.value = wanted,
       .limit = "none",
       .text = fmt::format("the driver asks for {} of {}", wanted, device.label()),
       .command = fmt::format("remuda drain {} --reason '{}'", device.label(), wanted)});
  see("device lost", device, is_lost(status), 0,
      {.value = "lost",
       .limit = "none",
       .text = fmt::format("{} no longer answers", device.label()),
       .command = fmt::format("remuda drain {} --reason 'lost'", device.label())});
}

void Alerts::check_health(const Device& device) {
  const Status& status = device.status;
  const auto throttled = is_throttled(status);
  see("throttled", device, throttled.has_value() ? std::optional(throttled.value()) : std::nullopt, 60,
      {.value = fmt::format("{}", fmt::join(status.throttle.value_or({}), ", ")),
       .limit = "60 s",
       .text = fmt::format("heat, power or hardware holds down the clocks of {}", device.label()),
       .command = "remuda list"});
  const int width = status.pcie_width.value_or(0), most = device.pcie_width_max.value_or(0);
  // Idle devices lower the width of their link to save power.
  const bool is_known = status.pcie_width.has_value() && status.busy.has_value();
  const bool is_narrow = width > 0 && width < most && status.busy.value_or(0) > 0.5;
  see("narrow link", device, is_known ? std::optional(is_narrow) : std::nullopt, 600,
      {.value = fmt::format("{} lanes", width),
       .limit = fmt::format("{} lanes", most),
       .text = fmt::format("{} has fewer PCIe lanes than card and slot have", device.label()),
       .command = "remuda doctor"});
}

void Alerts::check_leases(const Moment& moment) {
  for (const pool::Lease& lease : moment.pool.leases) {
    const Device* const device = moment.machine.find(lease.device);
    if (!device) continue;
    see("lease overrun", *device, lease.until_s > 0 && wall_s_ > lease.until_s, 60,
        {.value = duration_text(wall_s_ - lease.until_s) + " beyond its end",
         .limit = "1 min",
         .text = fmt::format("job {} holds {} beyond its time limit", lease.job, device->label()),
         .command = fmt::format("remuda cancel {}", lease.job)});
  }
}

/// Of a run that has ended nothing is asked, and of one that has become silent nothing is known.
void Alerts::check_run(const pool::Job& job, const Moment& moment) {
  if (job.run.parts.empty()) return;
  const auto waiting = waiting_of(job, wall_s_);
  const auto least = std::ranges::min_element(job.run.parts, {}, &pool::RunPart::waiting);
  const auto name_of = [&](const std::string& device) {
    const Device* const found = moment.machine.find(device);
    return found ? found->label() : device;
  };
  Device first;
  first.id = job.run.parts[0].device;
  see("run waits", first, waiting ? std::optional(*waiting > kRunWaits) : std::nullopt, 300,
      {.label = name_of(first.id),
       .value = fmt::format("{:.0f} % of its devices' time", waiting.value_or(0) * 100),
       .limit = fmt::format("{:.0f} %", kRunWaits * 100),
       .text = fmt::format("the devices of {}'s job {} wait for each other or for others, {} least", job.user, job.id,
                           name_of(least->device)),
       .command = fmt::format("remuda show {}", job.id)},
      job.id);
}

/// What a run has kept of itself last. As above: of one that has become silent nothing is known.
void Alerts::check_checkpoint(const pool::Job& job, const Moment& moment) {
  const pool::RunNotice& run = job.run;
  const auto lease = std::ranges::find(moment.pool.leases, job.id, &pool::Lease::job);
  if (run.at_s <= 0 || lease == moment.pool.leases.end()) return;
  Device first;
  first.id = lease->device;
  const Device* const found = moment.machine.find(first.id);
  see("checkpoint too old", first, run.is_fresh(wall_s_) ? std::optional(run.is_checkpoint_late()) : std::nullopt, 60,
      {.label = found ? found->label() : first.id,
       .value = fmt::format("{} {}", duration_text(run.checkpoint_age_s), run.checkpoint_step > 0 ? "old" : "without"),
       .limit = fmt::format("{}, twice its interval", duration_text(2 * run.checkpoint_every_s)),
       .text = fmt::format("{}'s job {} has written no checkpoint for {}, and wants one every {}", job.user, job.id,
                           duration_text(run.checkpoint_age_s), duration_text(run.checkpoint_every_s)),
       .command = fmt::format("remuda {} {}", job.log.empty() ? "show" : "logs", job.id)},
      job.id);
}

void Alerts::check_disk(const DiskRoom& disk) {
  Device place;
  place.id = disk.folder;
  const double free = disk.bytes > 0 ? static_cast<double>(disk.free_bytes) / static_cast<double>(disk.bytes) : 1;
  see("disk almost full", place, free < kDiskFree, 60,
      {.label = disk.folder,
       .value = fmt::format("{} free, {:.0f} %", human_bytes(static_cast<double>(disk.free_bytes)), free * 100),
       .limit = fmt::format("{:.0f} %", kDiskFree * 100),
       .text = fmt::format("the disk with {} is almost full: what cannot be written is lost", disk.folder),
       .command = fmt::format("df -h {}", disk.folder)});
}

/// A device that the machine has no more while a job holds it. What was wrong with such a device goes on until it is
/// there again; of one that nobody held, it ends: somebody has taken it away.
void Alerts::check_gone(const Moment& moment) {
  constexpr double kLookAgainFor_s = 5;
  for (const pool::Lease& lease : moment.pool.leases) {
    if (moment.machine.find(lease.device)) continue;
    const auto known = known_.find(lease.device);
    Device device;
    device.id = lease.device;
    const std::string label = known != known_.end() ? known->second.label() : lease.device;
    see("device lost", device, true, kLookAgainFor_s,
        {.label = label,
         .value = "gone",
         .limit = "none",
         .text = fmt::format("{} is gone from the machine, and job {} holds it", label, lease.job),
         .command = fmt::format("remuda show {}", lease.job)});
  }
  for (auto& [key, cause] : causes_) {
    const std::string& device = key.second;
    if (moment.machine.find(device) || !cause.is_alert) continue;
    const auto lost = causes_.find({"device lost", device});
    const bool is_lost = lost != causes_.end() && lost->second.is_alert;
    const bool is_held = lease_of(device, moment.pool) != nullptr;
    if (is_held || (is_lost && !is_of_lease(cause.alert.rule))) cause.seen_s = now_s_;
  }
}

void Alerts::check_agent(const Moment& moment) {
  Device agent;
  agent.id = "agent";
  see("agent silent", agent, moment.agent_answers == false, 15,
      {.label = "the agent",
       .value = "reports nothing",
       .limit = "15 s",
       .text = "nothing is known of leases and jobs: " + moment.agent_silence,
       .command = "systemctl status remuda-agent.socket remuda-agent"});
}

/// While nobody tells of leases and jobs: a device that is gone may be held.
void Alerts::keep_of_pool(const Moment& moment) {
  for (auto& [key, cause] : causes_)
    if (cause.is_alert &&
        (is_of_pool(cause.alert.rule) || (cause.alert.rule == "device lost" && !moment.machine.find(key.second))))
      cause.seen_s = now_s_;
}

void Alerts::take(const Moment& moment, double now_s, double wall_s) {
  now_s_ = now_s, wall_s_ = wall_s;
  for (const Device& device : moment.machine.devices) {
    if (device.kind == DeviceKind::cpu) continue;
    if (moment.knows_pool()) check_use(device, moment);
    check_memory(device);
    check_health(device);
    check_errors(device);
    known_.try_emplace(device.id, device);
  }
  check_leases(moment);
  for (const pool::Job& job : moment.pool.jobs) {
    check_run(job, moment);
    check_checkpoint(job, moment);
  }
  for (const DiskRoom& disk : moment.disks) check_disk(disk);
  if (moment.knows_pool())
    check_gone(moment);
  else
    keep_of_pool(moment);
  check_agent(moment);
  std::erase_if(causes_, [&](const auto& entry) { return entry.second.seen_s != now_s_; });
}

std::vector<Alert> Alerts::active() const {
  std::vector<Alert> active;
  for (const auto& [_, cause] : causes_)
    if (cause.is_alert) active.push_back(cause.alert);
  return active;
}

}  // namespace remuda::monitor
