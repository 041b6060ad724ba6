#include "monitor/alerts.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "device/throttle.h"
#include "monitor/idle_jobs.h"

namespace remuda::monitor {
namespace {

// The limits are those of packaging/prometheus/remuda.rules.yml.
constexpr double kIdleBusy = 0.05, kUnderusedBusy = 0.3;
constexpr double kMemoryFull = 0.95;
constexpr double kRisingOver_s = 600;

std::string minutes(double seconds) { return fmt::format("{:.0f} min", seconds / 60); }

/// "ana (job 7)", of all that hold it.
std::string holders(const Device& device, const pool::PoolState& pool) {
  std::vector<std::string> names;
  for (const pool::Lease& lease : pool.leases) {
    if (lease.device != device.id) continue;
    const pool::Job* const job = pool.find(lease.job);
    names.push_back(fmt::format("{} (job {})", job ? job->user : "somebody", lease.job));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

const pool::Lease* lease_of(const Device& device, const pool::PoolState& pool) {
  const auto found = std::ranges::find(pool.leases, device.id, &pool::Lease::device);
  return found == pool.leases.end() ? nullptr : &*found;
}

/// What nobody but those who hold it can know of a device: why next to nothing runs there, and what comes of it.
std::string idle_text(const Device& device, const Moment& moment) {
  const std::string start = fmt::format("{} holds {}", holders(device, moment.pool), device.label());
  const pool::Lease* const lease = lease_of(device, moment.pool);
  const pool::Job* const job = lease ? moment.pool.find(lease->job) : nullptr;
  if (job && job->idle.step != pool::IdleStep::none) return fmt::format("{}: {}", start, job->idle.text);
  const IdleWindow* const window = lease && moment.idle ? moment.idle->find(lease->job) : nullptr;
  const char* const why = window ? reason_text(window->reason()) : "";
  return fmt::format("{}, and next to nothing runs there{}{}", start, *why == '\0' ? "" : ": ", why);
}

bool was_told(const pool::Lease* lease, const pool::PoolState& pool) {
  const pool::Job* const job = lease ? pool.find(lease->job) : nullptr;
  return job && job->idle.step != pool::IdleStep::none;
}

/// Six digits, by which people can name it: FNV-1a of rule and device.
std::string id_of(const std::pair<std::string, std::string>& key) {
  uint32_t hash = 2166136261;
  for (const char byte : key.first + ":" + key.second) hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619;
  return fmt::format("{:06x}", hash & 0xffffff);
}

bool contains(const std::vector<std::string>& devices, const Device& device) {
  return std::ranges::find(devices, device.id) != devices.end();
}

}  // namespace

/// A cause that was not seen at the last reading has ended, and what has ended begins anew.
void Alerts::see(const char* rule, const Device& device, bool is_wrong, double lasting_s, double wall_s, Alert alert) {
  const auto key = std::pair(std::string(rule), device.id);
  if (!is_wrong) return;
  const auto [found, is_new] = causes_.try_emplace(key);
  Cause& cause = found->second;
  if (is_new) cause.since_s = wall_s;
  cause.seen_s = wall_s;
  alert.id = id_of(key);
  alert.rule = rule;
  alert.device = device.id;
  alert.label = device.label();
  alert.since_s = cause.since_s;
  cause.alert = std::move(alert);
  cause.is_alert = cause.is_alert || wall_s - cause.since_s >= lasting_s;
}

void Alerts::check_use(const Device& device, const Moment& moment, double wall_s) {
  const Status& status = device.status;
  IdleWindow& held = held_.try_emplace(device.id, kIdleFor_s).first->second;
  const pool::Lease* const lease = lease_of(device, moment.pool);
  if (lease)
    held.add(wall_s, {.busy = status.busy.value_or(-1)});
  else
    held.clear();
  const double busy = held.busy();
  const std::string value = busy < 0 ? "idle" : fmt::format("busy {:.0f} % of 30 min", busy * 100);
  see("held and idle", device, (busy >= 0 && busy < kIdleBusy) || was_told(lease, moment.pool), 0, wall_s,
      {.value = value,
       .limit = fmt::format("{:.0f} %", kIdleBusy * 100),
       .text = idle_text(device, moment),
       .command = lease ? fmt::format("remuda show {}", lease->job) : ""});
  see("underused", device, busy >= kIdleBusy && busy < kUnderusedBusy, kIdleFor_s, wall_s,
      {.value = value,
       .limit = fmt::format("{:.0f} %", kUnderusedBusy * 100),
       .text = fmt::format("{} holds {}, and uses little of it", holders(device, moment.pool), device.label()),
       .command = lease ? fmt::format("remuda show {}", lease->job) : ""});
  see("used without a lease", device, contains(moment.used_without_lease, device), 300, wall_s,
      {.value = "processes without a lease",
       .limit = "none",
       .text = fmt::format("processes that hold no lease use {}", device.label()),
       .command = "remuda ps"});
  see("foreign process", device, contains(moment.used_by_strangers, device), 300, wall_s,
      {.value = "processes of no job",
       .limit = "none",
       .text = fmt::format("{} holds {}, and processes of no job use it, too", holders(device, moment.pool),
                           device.label()),
       .command = "remuda list"});
}

void Alerts::check_memory(const Device& device, double wall_s) {
  const Status& status = device.status;
  if (!status.memory_used_bytes.has_value() || device.memory_bytes.value_or(0) <= 0) return;
  const auto used = static_cast<double>(status.memory_used_bytes.value());
  const double full = used / static_cast<double>(device.memory_bytes.value());
  auto& [before, at_s] = memory_.try_emplace(device.id, used, wall_s).first->second;
  const bool is_rising = used > before;
  if (wall_s - at_s > kRisingOver_s || used < before) before = used, at_s = wall_s;
  see("memory almost full", device, full > kMemoryFull && is_rising, 120, wall_s,
      {.value = fmt::format("{:.0f} %", full * 100),
       .limit = fmt::format("{:.0f} %, and rising", kMemoryFull * 100),
       .text = fmt::format("the memory of {} is almost full, and its use rises", device.label()),
       .command = "remuda ps"});
}

void Alerts::check_health(const Device& device, double wall_s) {
  const Status& status = device.status;
  see("throttled", device, is_throttled(status).value_or(false), 60, wall_s,
      {.value = fmt::format("{}", fmt::join(status.throttle.value_or({}), ", ")),
       .limit = "60 s",
       .text = fmt::format("heat, power or hardware holds down the clocks of {}", device.label()),
       .command = "remuda list"});
  const int code = status.xid.value_or(0);
  see("device error", device, code != 0, 0, wall_s,
      {.value = std::to_string(code),
       .limit = "none",
       .text = fmt::format("the driver has reported the fatal error {} of {}", code, device.label()),
       .command = fmt::format("remuda drain {} --reason 'error {}'", device.label(), code)});
  const RecoveryAction action = status.recovery_action.value_or(RecoveryAction::none);
  see("needs recovery", device, action != RecoveryAction::none, 0, wall_s,
      {.value = to_string(action),
       .limit = "none",
       .text = fmt::format("the driver asks for {} of {}", to_string(action), device.label()),
       .command = fmt::format("remuda drain {} --reason '{}'", device.label(), to_string(action))});
  const int width = status.pcie_width.value_or(0), most = device.pcie_width_max.value_or(0);
  // Idle devices lower the width of their link to save power.
  see("narrow link", device, width > 0 && width < most && status.busy.value_or(0) > 0.5, 600, wall_s,
      {.value = fmt::format("{} lanes", width),
       .limit = fmt::format("{} lanes", most),
       .text = fmt::format("{} has fewer PCIe lanes than card and slot have", device.label()),
       .command = "remuda doctor"});
}

void Alerts::check_leases(const Moment& moment, double wall_s) {
  for (const pool::Lease& lease : moment.pool.leases) {
    const Device* const device = moment.machine.find(lease.device);
    if (!device) continue;
    see("lease overrun", *device, lease.until_s > 0 && wall_s - lease.until_s > 60, 0, wall_s,
        {.value = minutes(wall_s - lease.until_s) + " beyond its end",
         .limit = "1 min",
         .text = fmt::format("job {} holds {} beyond its time limit", lease.job, device->label()),
         .command = fmt::format("remuda cancel {}", lease.job)});
  }
}

void Alerts::take(const Moment& moment, double wall_s) {
  for (const Device& device : moment.machine.devices) {
    if (device.kind == DeviceKind::cpu) continue;
    check_use(device, moment, wall_s);
    check_memory(device, wall_s);
    check_health(device, wall_s);
  }
  check_leases(moment, wall_s);
  std::erase_if(causes_, [&](const auto& entry) { return entry.second.seen_s != wall_s; });
}

std::vector<Alert> Alerts::active() const {
  std::vector<Alert> active;
  for (const auto& [_, cause] : causes_)
    if (cause.is_alert) active.push_back(cause.alert);
  return active;
}

}  // namespace remuda::monitor
