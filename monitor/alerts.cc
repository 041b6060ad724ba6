#include "monitor/alerts.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "device/throttle.h"

namespace remuda::monitor {
namespace {

// The limits are those of packaging/prometheus/remuda.rules.yml.
constexpr double kIdleBusy = 0.05;
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

}  // namespace

void HalfHour::add(double wall_s, double busy, bool is_held) {
  now_ = static_cast<int64_t>(wall_s / 60);
  Minute& minute = minutes_[static_cast<size_t>(now_) % kMinutes];
  if (minute.number != now_) minute = {now_, 0, 0, 0, 0};
  ++minute.readings;
  minute.held += is_held;
  if (busy < 0) return;
  minute.busy += busy;
  ++minute.known;
}

double HalfHour::busy_while_held() const {
  double sum = 0;
  int known = 0;
  for (const Minute& minute : minutes_) {
    // A minute without a reading, or from before: it was not watched for so long.
    if (minute.number <= now_ - static_cast<int64_t>(kMinutes) || minute.held < minute.readings) return -1;
    if (minute.known == 0) continue;
    sum += minute.busy / minute.known;
    ++known;
  }
  return known > static_cast<int>(kMinutes / 2) ? sum / known : -1;
}

/// A cause that was not seen at the last reading has ended, and what has ended begins anew.
void Alerts::see(const char* rule, const Device& device, bool is_wrong, double lasting_s, double wall_s, Alert alert) {
  const auto key = std::pair(std::string(rule), device.id);
  if (!is_wrong) return;
  const auto [found, is_new] = causes_.try_emplace(key);
  Cause& cause = found->second;
  if (is_new) cause.since_s = wall_s;
  cause.seen_s = wall_s;
  alert.rule = rule;
  alert.device = device.id;
  alert.since_s = cause.since_s;
  cause.alert = std::move(alert);
  if (cause.is_alert || wall_s - cause.since_s < lasting_s) return;
  cause.is_alert = true;
  news_.push_back(cause.alert);
}

void Alerts::check_use(const Device& device, const Moment& moment, double wall_s) {
  const Status& status = device.status;
  HalfHour& past = half_hours_[device.id];
  const pool::Lease* const lease = lease_of(device, moment.pool);
  past.add(wall_s, status.busy.value_or(-1), lease != nullptr);
  const double busy = past.busy_while_held();
  see("held and idle", device, busy >= 0 && busy < kIdleBusy, 0, wall_s,
      {.value = fmt::format("busy {:.0f} % of 30 min", busy * 100),
       .limit = fmt::format("{:.0f} %", kIdleBusy * 100),
       .text = fmt::format("{} holds {}, and next to nothing runs there", holders(device, moment.pool), device.label()),
       .command = lease ? fmt::format("remuda show {}", lease->job) : ""});
  const bool is_taken = std::ranges::find(moment.used_without_lease, device.id) != moment.used_without_lease.end();
  see("used without a lease", device, is_taken, 300, wall_s,
      {.value = "processes without a lease",
       .limit = "none",
       .text = fmt::format("processes that hold no lease use {}", device.label()),
       .command = "remuda ps"});
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
    check_health(device, wall_s);
  }
  check_leases(moment, wall_s);
  std::erase_if(causes_, [&](const auto& entry) {
    const Cause& cause = entry.second;
    if (cause.seen_s == wall_s) return false;
    if (cause.is_alert) {
      news_.push_back(cause.alert);
      news_.back().ended_s = wall_s;
    }
    return true;
  });
}

std::vector<Alert> Alerts::active() const {
  std::vector<Alert> active;
  for (const auto& [_, cause] : causes_)
    if (cause.is_alert) active.push_back(cause.alert);
  return active;
}

}  // namespace remuda::monitor
