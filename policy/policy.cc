#include "policy/policy.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration.h"
#include "base/quantity.h"
#include "base/text.h"

namespace remuda::policy {
namespace {

/// Lines of a place in the file and a sentence.
class Lines {
 public:
  void add(const std::string& where, const std::string& text) { text_ += fmt::format("{}: {}\n", where, text); }
  template <typename T, typename Text>
  void add(const std::optional<Rule<T>>& rule, const Who& who, const Text& text) {
    if (rule) add(rule->where, fmt::format("{} {}", who.text(), text(rule->value)));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_limit(const Limit& limit, Lines& lines) {
  const Who& who = limit.who;
  lines.add(limit.devices, who, [](int n) { return fmt::format("may have {} at once", counted(n, "device")); });
  lines.add(limit.waiting, who, [](int n) { return fmt::format("may have {}", counted(n, "waiting job")); });
  lines.add(limit.priority, who, [](int n) { return fmt::format("may give priority {} at the most", n); });
  lines.add(limit.device_hours, who,
            [](double hours) { return fmt::format("may have {} in 7 days", counted(hours, "device hour")); });
  lines.add(limit.longest_s, who,
            [](double s) { return fmt::format("may run a job for {} at the most", duration_text(s)); });
  lines.add(limit.default_s, who,
            [](double s) { return fmt::format("get a time limit of {} where they ask for none", duration_text(s)); });
  lines.add(limit.share, who,
            [](bool may) { return may ? "may take parts of devices" : "may not take parts of devices"; });
  lines.add(limit.cores, who, [](int n) { return fmt::format("may have {} of the host at once", counted(n, "core")); });
  lines.add(limit.default_cores, who,
            [](int n) { return fmt::format("get {} of the host where they ask for none", counted(n, "core")); });
  lines.add(limit.host_memory, who,
            [](int64_t bytes) { return fmt::format("may have {} of the host at once", amount_text(bytes)); });
  lines.add(limit.default_host_memory, who, [](int64_t bytes) {
    return fmt::format("get {} of the host where they ask for none", amount_text(bytes));
  });
}

const char* enforce_text(Enforce enforce) {
  switch (enforce) {
    case Enforce::off:
      return "device files are open to all who may read them";
    case Enforce::jobs:
      return "a job cannot open device files that it was not granted";
    case Enforce::audit:
      return "a job cannot open device files that it was not granted; others can, and the agent's log says who";
    case Enforce::everyone:
      return "nobody but root opens device files that they were not granted";
  }
  return "";
}

std::string idle_text(const Idle& idle) {
  if (!idle.is_on()) return "";
  std::string text = fmt::format("a job whose devices are busy for less than {:g} % of {} is warned", idle.floor * 100,
                                 duration_text(idle.warn_after_s));
  if (idle.signal_after_s > 0)
    text += fmt::format(", told to write a checkpoint after {}", duration_text(idle.signal_after_s));
  if (idle.release_after_s > 0) text += fmt::format(", ended after {}", duration_text(idle.release_after_s));
  if (!idle.exempt.users.empty() || !idle.exempt.groups.empty())
    text += fmt::format("; exempt: {}", idle.exempt.text());
  return text + "\n";
}

std::string tariff_text(const Policy& policy) {
  std::string text;
  for (const Tariff& one : policy.tariffs) {
    text += fmt::format("a device{} costs", one.model.empty() ? "" : " like " + one.model);
    if (one.hour > 0) text += fmt::format(" {:g} {} an hour", one.hour, policy.currency);
    if (one.kwh > 0) text += fmt::format("{} {:g} {} a kWh", one.hour > 0 ? " and" : "", one.kwh, policy.currency);
    text += "\n";
  }
  return text;
}

}  // namespace

bool is_exemption(std::string_view text) {
  constexpr size_t kLongest = 1024;
  if (text.empty() || text.size() > kLongest || printable(text) != text) return false;
  for (const std::string& name : split(text, '/'))
    if (name == "." || name == "..") return false;
  if (text.starts_with('/')) return text.find_first_not_of('/') != std::string_view::npos;
  if (text.find('/') != std::string_view::npos || text == "-.slice") return false;  // all that systemd has
  return text.ends_with(".service") || text.ends_with(".scope") || text.ends_with(".slice");
}

bool Who::includes(const User& user) const {
  if (users.empty() && groups.empty()) return true;
  if (std::ranges::find(users, user.name) != users.end()) return true;
  return std::ranges::any_of(
      groups, [&](const std::string& group) { return std::ranges::find(user.groups, group) != user.groups.end(); });
}

std::string Who::text() const {
  std::vector<std::string> names = users;
  for (const std::string& group : groups) names.push_back("group " + group);
  return names.empty() ? "everybody" : fmt::format("{}", fmt::join(names, " and "));
}

bool Policy::limits_by_name() const {
  return std::ranges::any_of(limits,
                             [](const Limit& limit) { return !limit.who.users.empty() || !limit.who.groups.empty(); });
}

std::string policy_text(const Policy& policy) {
  std::string text =
      fmt::format("usage is halved every {}; a job that has waited for {} gets devices kept for it; {}\n",
                  duration_text(policy.half_life_s), duration_text(policy.patience_s),
                  policy.backfill ? "jobs that end in time may have them meanwhile" : "nobody has them meanwhile");
  text += enforce_text(policy.enforce);
  if (policy.enforce != Enforce::off && !policy.exempt.empty())
    text += fmt::format("; exempt: {}", fmt::join(policy.exempt, ", "));
  text += "\n";
  if (!policy.health.probe.empty())
    text += fmt::format("a device is granted again once `{}` has ended well, within {}\n",
                        printable(policy.health.probe), duration_text(policy.health.probe_timeout_s));
  text += idle_text(policy.idle);
  text += tariff_text(policy);
  if (policy.mps) text += "jobs with parts of devices share them through MPS, whose daemons the agent keeps\n";
  if (policy.mig)
    text += fmt::format("the agent makes partitions of {} for such jobs, and takes them away ({})\n",
                        fmt::join(policy.mig->value, ", "), policy.mig->where);
  Lines lines;
  for (const Limit& limit : policy.limits) add_limit(limit, lines);
  for (const Reservation& reservation : policy.reservations)
    lines.add(reservation.where, fmt::format("{} reserved for {}, {}", fmt::join(reservation.devices, ", "),
                                             reservation.who.text(), hours_text(reservation.hours)));
  return text + lines.take();
}

}  // namespace remuda::policy
