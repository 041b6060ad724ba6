#include "pool/admission.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/local_time.h"
#include "base/quantity.h"
#include "base/text.h"
#include "place/place.h"

namespace remuda::pool {
namespace {

using policy::Limit;

template <typename T>
const policy::Rule<T>* rule_for(const Job& job, const Policy& policy, std::optional<policy::Rule<T>> Limit::* key) {
  return job.uid == 0 ? nullptr : policy.find(key, {job.user, job.groups});
}

template <typename T>
Result<void> refuse(const policy::Rule<T>& rule, const std::string& sentence) {
  return usage_error(fmt::format("{} ({})", sentence, rule.where));
}

/// Its devices come back once its grace time is over: so it is told to end that much before.
Result<void> check_time_limit(Job& job, const Policy& policy) {
  const auto* given = rule_for(job, policy, &Limit::default_s);
  const auto* longest = rule_for(job, policy, &Limit::longest_s);
  if (longest && job.time_limit_s > longest->value)
    return refuse(*longest, fmt::format("a job of {} may run for {} at the most, not {}", job.user,
                                        duration_text(longest->value), duration_text(job.time_limit_s)));
  if (job.time_limit_s <= 0 && given) job.time_limit_s = given->value;
  if (!longest) return {};
  job.grace_s = std::min(job.grace_s, longest->value / 2);
  const double most_s = longest->value - job.grace_s;
  job.time_limit_s = job.time_limit_s > 0 ? std::min(job.time_limit_s, most_s) : most_s;
  return {};
}

Result<void> check_devices(const Job& job, const Policy& policy) {
  const auto* share = rule_for(job, policy, &Limit::share);
  if (share && !share->value && job.request.share < 1)
    return refuse(*share, fmt::format("{} may not take a part of a device", job.user));
  const auto* devices = rule_for(job, policy, &Limit::devices);
  const double wanted = job.request.count * job.request.share;
  if (!devices || wanted <= devices->value) return {};
  return refuse(*devices, fmt::format("{} may have {} at once, and {:g} are wanted", job.user,
                                      counted(devices->value, "device"), wanted));
}

/// What a user may have of one thing that the host has: cores or memory.
template <typename T>
struct HostRule {
  std::optional<policy::Rule<T>> Limit::*most, Limit::*given;
  T place::Request::* wanted;
  const char *what, *flag;
  std::string (*text)(T);
};

std::string cores_text(int cores) { return counted(cores, "core"); }

constexpr HostRule<int> kCores{&Limit::cores, &Limit::default_cores, &place::Request::cores, "many cores", "--cpus",
                               cores_text};
constexpr HostRule<int64_t> kMemory{
    &Limit::host_memory, &Limit::default_host_memory, &place::Request::host_memory_bytes, "much memory", "--host-mem",
    amount_text};

/// Who has a limit has to say what a job takes, as it would take what it likes otherwise.
template <typename T>
Result<void> check_host(Job& job, const Policy& policy, const HostRule<T>& rule) {
  const auto *most = rule_for(job, policy, rule.most), *given = rule_for(job, policy, rule.given);
  T& wanted = job.request.*rule.wanted;
  if (wanted == 0 && given) wanted = most ? std::min(given->value, most->value) : given->value;
  if (!most || (wanted > 0 && wanted <= most->value)) return {};
  const std::string may = fmt::format("{} may have {} of the host at once", job.user, rule.text(most->value));
  return refuse(*most, wanted == 0
                           ? fmt::format("{}: say with {} how {} the job takes", may, rule.flag, rule.what)
                           : fmt::format("{}, and {} {} wanted", may, rule.text(wanted), wanted == 1 ? "is" : "are"));
}

template <typename T>
std::string over_host(const PoolState& state, const Job& job, const Policy& policy, const HostRule<T>& rule) {
  const auto* most = rule_for(job, policy, rule.most);
  if (!most) return "";
  T has = 0;
  for (const Job& other : state.jobs)
    if (other.state == JobState::running && other.user == job.user) has += other.request.*rule.wanted;
  if (has + job.request.*rule.wanted <= most->value) return "";
  return fmt::format("{} may have {} of the host at once, and has {} ({})", job.user, rule.text(most->value),
                     rule.text(has), most->where);
}

/// The jobs of an array are not counted, as the array is: of these no more wait than `remuda run` has wait.
Result<void> check_index(const PoolState& state, const Job& job, const policy::Rule<int>& most) {
  const auto waits = [&](const Job& other) {
    return other.array == job.array && !is_array(other) && other.state == JobState::waiting;
  };
  if (std::ranges::count_if(state.jobs, waits) < kMostIndices) return {};
  return refuse(most, fmt::format("{} indices of array {} wait, and no more do at once", kMostIndices, job.array));
}

Result<void> check_waiting(const PoolState& state, const Job& job, const Policy& policy) {
  const auto* most = rule_for(job, policy, &Limit::waiting);
  if (!most) return {};
  if (job.array != 0) return check_index(state, job, *most);
  const auto waits = [&](const Job& other) {
    return other.user == job.user && other.state == JobState::waiting && (other.array == 0 || is_array(other));
  };
  if (std::ranges::count_if(state.jobs, waits) < most->value) return {};
  return refuse(*most, fmt::format("{} may have {} waiting jobs, and has them", job.user, most->value));
}

/// Which job must end before; empty where none has to any more.
std::string awaited_end(const PoolState& state, const Job& job) {
  for (const auto& [ids, how] : {std::pair(&job.after, " well"), std::pair(&job.after_any, "")})
    for (const int64_t id : *ids) {
      const Job* before = state.find(id);
      if (!before || before->state == JobState::ended) continue;
      return is_array(*before)
                 ? fmt::format("array {}, which must end{} before, has not ended", id, how)
                 : fmt::format("job {}, which must end{} before, is {}", id, how, to_string(before->state));
    }
  return "";
}

double devices_of(const PoolState& state, const std::string& user) {
  double devices = 0;
  for (const Lease& lease : state.leases)
    if (const Job* job = state.find(lease.job); job && job->user == user) devices += lease.share;
  return devices;
}

/// Whether the job, started now, might run at a time at which this is for others.
bool bars(const policy::Reservation& reservation, const Job& job, const Policy& policy, double now_s) {
  const double ends_s = job.time_limit_s > 0 ? now_s + job.time_limit_s + job.grace_s : kNever_s;
  return !reservation.who.includes({job.user, job.groups}) &&
         reservation.hours.meet(now_s, ends_s, policy.utc_offset_s);
}

}  // namespace

Result<void> admit(const PoolState& state, Job& job, const Policy& policy) {
  REMUDA_TRY(check_devices(job, policy));
  REMUDA_TRY(check_waiting(state, job, policy));
  REMUDA_TRY(check_host(job, policy, kCores));
  REMUDA_TRY(check_host(job, policy, kMemory));
  const Job* const array = job.array == 0 ? nullptr : state.find(job.array);
  const bool has_its_priority = array && array->request == job.request;  // which somebody gave who may
  if (!has_its_priority) REMUDA_TRY(check_priority(job, job.priority, policy));
  return check_time_limit(job, policy);
}

std::string giver_of_host_memory(const Job& job, int64_t asked_bytes, const Policy& policy) {
  const auto* given = rule_for(job, policy, &Limit::default_host_memory);
  return asked_bytes == 0 && job.request.host_memory_bytes > 0 && given ? given->where : "";
}

Result<void> check_priority(const Job& job, int priority, const Policy& policy) {
  const auto* highest = rule_for(job, policy, &Limit::priority);
  if (!highest || priority <= highest->value) return {};
  return refuse(*highest,
                fmt::format("{} may give priority {} at the most, not {}", job.user, highest->value, priority));
}

std::string over_limit(const PoolState& state, const Job& job, const Policy& policy, double now_s) {
  constexpr double kRounding = 1e-9, kHour_s = 3600;
  if (const auto* most = rule_for(job, policy, &Limit::devices)) {
    const double has = devices_of(state, job.user);
    if (has + job.request.count * job.request.share > most->value + kRounding)
      return fmt::format("{} may have {} at once, and has {:g} ({})", job.user, counted(most->value, "device"), has,
                         most->where);
  }
  if (std::string over = over_host(state, job, policy, kCores); !over.empty()) return over;
  if (std::string over = over_host(state, job, policy, kMemory); !over.empty()) return over;
  const auto* hours = rule_for(job, policy, &Limit::device_hours);
  if (!hours || spent_s(state, job.user, now_s) < hours->value * kHour_s) return "";
  return fmt::format("{} may have {:g} device hours in 7 days, and has had them ({})", job.user, hours->value,
                     hours->where);
}

std::string waits_first(const PoolState& state, const Job& job, const Policy& policy, double now_s) {
  if (job.cancelled) return job.why.empty() ? "it was cancelled" : job.why;  // with which its keeper ends it
  if (job.keeper_failed) return kUnkept;
  if (job.paused) return fmt::format("it is paused, until `remuda resume {}`", name_of(job));
  if (now_s < job.begin_s) return fmt::format("it begins at {} at the earliest", local_time_text(job.begin_s));
  std::string why = awaited_end(state, job);
  return why.empty() ? over_limit(state, job, policy, now_s) : why;
}

std::vector<place::Held> barred_devices(const Job& job, const Inventory& inventory, const Policy& policy,
                                        double now_s) {
  std::vector<place::Held> barred;
  for (const policy::Reservation& reservation : policy.reservations) {
    if (!bars(reservation, job, policy, now_s)) continue;
    const bool is_now = reservation.hours.meet(now_s, now_s, policy.utc_offset_s);
    const std::string when =
        is_now ? "" : fmt::format(" {}, and the job might not end before", hours_text(reservation.hours));
    for (const std::string& name : reservation.devices)
      if (const auto device = inventory.resolve(name))
        barred.push_back(
            {.device = (*device)->id,
             .barred = fmt::format("is reserved for {}{} ({})", reservation.who.text(), when, reservation.where)});
  }
  return barred;
}

double unbarred_next(const PoolState& state, const Policy& policy, double now_s) {
  constexpr double kWeek_s = 7 * 86400;
  const auto unbarred_s = [&](const Job& job, const policy::Reservation& reservation) {
    const auto end_after = [&](double s) { return reservation.hours.next_end_s(s, policy.utc_offset_s); };
    for (double at_s = end_after(now_s); at_s <= now_s + kWeek_s; at_s = end_after(at_s))
      if (!bars(reservation, job, policy, at_s)) return at_s;
    return kNever_s;
  };
  double next_s = kNever_s;
  for (const Job& job : state.jobs) {
    if (job.state != JobState::waiting || job.time_limit_s <= 0) continue;
    for (const policy::Reservation& reservation : policy.reservations)
      if (bars(reservation, job, policy, now_s)) next_s = std::min(next_s, unbarred_s(job, reservation));
  }
  return next_s;
}

std::string text_of(const Allocation& allocation) {
  const std::string whose = fmt::format("{}'s, to be had with {}", allocation.manager, allocation.instead);
  if (allocation.holder.empty()) return "is " + whose;
  return fmt::format("is held by {}, and is {}", allocation.holder, whose);
}

std::vector<place::Held> held_by_allocations(const std::vector<Allocation>& allocations) {
  std::vector<place::Held> held;
  for (const Allocation& one : allocations)
    held.push_back({.device = one.device, .holder = one.holder, .barred = text_of(one)});
  return held;
}

Result<void> check_not_given_out(const Job& job, const Inventory& inventory,
                                 const std::vector<Allocation>& allocations) {
  if (allocations.empty()) return {};
  const place::Layout layout(inventory);
  REMUDA_ASSIGN(const bool fits_at_all, place::fits(layout, job.request, {}));
  REMUDA_ASSIGN(const bool fits, place::fits(layout, job.request, held_by_allocations(allocations)));
  if (fits || !fits_at_all) return {};
  std::string text;
  for (const Allocation& one : allocations) {
    const Device* device = inventory.find(one.device);
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", device ? device->label() : one.device, text_of(one));
  }
  return tl::unexpected(Error{ErrorKind::never, "the devices that suit are granted to nobody here: " + text, -1});
}

std::vector<place::Held> held_by_drains(const PoolState& state) {
  std::vector<place::Held> held;
  for (const Drain& drain : state.drains)
    held.push_back({.device = drain.device, .since_s = drain.since_s, .barred = "is drained: " + drain.reason});
  return held;
}

}  // namespace remuda::pool
