#include "snapshot/sentences.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <utility>

#include "base/duration.h"
#include "base/text.h"

namespace remuda::snapshot {
namespace {

/// Values that have been made once for each key, in the order in which they were asked for.
template <typename Value>
Value& value_at(std::vector<std::pair<std::string, Value>>& list, const std::string& key) {
  for (auto& [known, value] : list)
    if (known == key) return value;
  return list.emplace_back(key, Value{}).second;
}

/// For how long devices have been idle that are held, as far as it is a minute and more.
std::vector<double> idle_times(const std::vector<const View*>& devices, const Histories& histories) {
  std::vector<double> times;
  for (const View* view : devices)
    if (const auto idle_s = idle_for(*view, histories)) times.push_back(*idle_s);
  return times;
}

std::string silent_text(const Seen& seen) {
  std::vector<std::string> silent;
  for (const Host& host : seen.hosts)
    if (host.is_silent())
      silent.push_back(fmt::format("{} has been silent for {}", host.name, duration_text(host.silent_s)));
  return fmt::format(", as {}", fmt::join(silent, " and "));
}

/// "3 waiting, the next starts within 20 min"
std::string waiting_text(const Seen& seen) {
  size_t waiting = 0;
  double next_s = 0;
  for (const Host& host : seen.hosts) {
    waiting += host.waiting.size();
    for (const Waiting& job : host.waiting)
      if (job.starts_s > seen.time_s && (next_s == 0 || job.starts_s < next_s)) next_s = job.starts_s;
  }
  if (waiting == 0)
    return std::ranges::all_of(seen.hosts, &Host::knows_pool) ? "nobody waits" : "the queue is not known";
  return fmt::format("{} waiting{}", waiting,
                     next_s > 0 ? ", the next starts within " + duration_text(next_s - seen.time_s) : "");
}

std::string state_text(State state, const Seen& seen, const Histories& histories) {
  std::vector<const View*> these;
  for (const Host& host : seen.hosts)
    for (const View& view : host.devices)
      if (view.state == state) these.push_back(&view);
  if (these.empty()) return "";
  std::string text = fmt::format("{} {}", these.size(), to_string(state));
  if (const auto times = idle_times(these, histories); state == State::idle && !times.empty())
    text += these.size() == 1 ? fmt::format(" {}", duration_text(times[0]))
                              : fmt::format(" (one for {})", duration_text(*std::ranges::max_element(times)));
  return state == State::unknown ? text + silent_text(seen) : text;
}

struct Named {
  const char* name;
  const Missing* (*missing)(const Status&);
};

template <auto Field>
const Missing* missing_of(const Status& status) {
  return (status.*Field).has_value() ? nullptr : &(status.*Field).missing();
}

/// The readings of the page's table, in its order.
constexpr std::array kShown{Named{"busy", missing_of<&Status::busy>},
                            Named{"memory in use", missing_of<&Status::memory_used_bytes>},
                            Named{"power", missing_of<&Status::power_watts>},
                            Named{"temperature", missing_of<&Status::temperature_c>},
                            Named{"clock", missing_of<&Status::sm_clock_mhz>},
                            Named{"tensor cores active", missing_of<&Status::tensor_active>}};

using WhatByDevice = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// "clock of gpu:5; clock, power of gpu:1, gpu:2"
std::string grouped(const WhatByDevice& of) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_what;
  for (const auto& [label, what] : of) value_at(by_what, fmt::format("{}", fmt::join(what, ", "))).push_back(label);
  std::vector<std::string> parts;
  for (const auto& [what, labels] : by_what) parts.push_back(fmt::format("{} of {}", what, fmt::join(labels, ", ")));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

std::string top_sentence(const Seen& seen, const Histories& histories) {
  size_t devices = 0, alerts = 0;
  bool is_gpu = false;
  std::set<std::string> kinds;
  for (const Host& host : seen.hosts) {
    devices += host.devices.size();
    alerts += static_cast<size_t>(std::ranges::count_if(host.alerts, &Alert::is_open));
    for (const View& view : host.devices) {
      kinds.insert(view.model);
      is_gpu = is_gpu || view.device.kind != DeviceKind::cpu;
    }
  }
  std::vector<std::string> states;
  for (const auto& [state, _] : Words<State>::table)
    if (std::string text = state_text(state, seen, histories); !text.empty()) states.push_back(std::move(text));
  return fmt::format(
      "{}{} on {}{}{}; {}; {}.", counted(static_cast<double>(devices), is_gpu || devices == 0 ? "GPU" : "CPU device"),
      kinds.size() > 1 ? fmt::format(" of {} kinds", kinds.size()) : "",
      counted(static_cast<double>(seen.hosts.size()), "host"), states.empty() ? "" : ": ", fmt::join(states, ", "),
      waiting_text(seen), alerts > 0 ? counted(static_cast<double>(alerts), "alert") : "no alerts");
}

std::string agent_sentence(const Host& host, double now_s, const std::string& as_of) {
  if (!host.has_silent_agent) return "";
  if (!host.knows_pool())
    return fmt::format("the agent of {} does not answer: nothing is known of leases and queue", host.name);
  return fmt::format("the agent of {} has not answered for {}: leases and queue as of {}", host.name,
                     duration_text(now_s - host.known_s), as_of);
}

std::string job_text(const std::string& user, const std::string& name, int64_t job) {
  if (job == 0) return user;
  return name.empty() ? fmt::format("{}'s job {}", user, job) : fmt::format("{}'s {} (job {})", user, name, job);
}

std::string queue_sentence(const Waiting& job, double now_s) {
  return fmt::format(
      "{} wants {}{}: {}{}{}", job_text(job.user, job.name, job.id), counted(job.count, "device"),
      job.submitted_s > 0 ? " and has waited " + duration_text(now_s - job.submitted_s) : "",
      job.why.empty() ? "its turn has not come" : job.why,
      job.starts_s > now_s ? "; it starts within " + duration_text(job.starts_s - now_s) : "",
      job.would_start.empty() ? "" : fmt::format("; it would start now {}", fmt::join(job.would_start, ", or ")));
}

std::string progress_text(int64_t step, int64_t steps, double step_s) {
  std::string text = fmt::format("step {}", step);
  if (steps > 0) text += fmt::format(" of {}", steps);
  if (step_s <= 0) return text;
  text += step_s < 1 ? fmt::format(", {:.0f} ms each", 1000 * step_s) : fmt::format(", {:.1f} s each", step_s);
  if (steps > step) text += fmt::format(", {} left", duration_text(step_s * static_cast<double>(steps - step)));
  return text;
}

std::string checkpoint_text(int64_t step, double age_s, double every_s) {
  if (step <= 0 && every_s <= 0) return "";
  const std::string wanted = every_s > 0 ? ", wanted every " + duration_text(every_s) : "";
  if (step <= 0) return fmt::format("no checkpoint for {}{}", duration_text(age_s), wanted);
  return fmt::format("last checkpoint {} ago, after step {}{}", duration_text(age_s), step, wanted);
}

std::string run_sentence(const Run& run) {
  std::string text =
      fmt::format("{} is at {}", job_text(run.user, run.name, run.job), progress_text(run.step, run.steps, run.step_s));
  double waiting = 0, known = 0;
  for (const Run::Part& part : run.parts)
    if (part.waiting) waiting += *part.waiting, ++known;
  if (known > 1)
    text += fmt::format("; its {} wait {:.0f} % of the time for each other", counted(known, "device"),
                        100 * waiting / known);
  const std::string kept = checkpoint_text(run.checkpoint_step, run.checkpoint_age_s, run.checkpoint_every_s);
  return kept.empty() ? text : text + "; " + kept;
}

std::string cost_text(const Use& use) {
  return use.cost ? fmt::format("{}{:.2f} {}", use.is_cost_whole ? "" : "at least ", *use.cost, use.currency) : "";
}

std::vector<MissingReadings> missing_reasons(const Seen& seen) {
  std::vector<std::pair<std::string, WhatByDevice>> found;
  for (const Host& host : seen.hosts)
    for (const View& view : host.devices)
      for (const auto& [name, missing_in] : kShown) {
        const Missing* const missing = missing_in(view.device.status);
        const std::string reason = missing ? reason_of(*missing) : "";
        if (reason.empty()) continue;
        const std::string label = seen.hosts.size() > 1 ? host.name + " " + view.label : view.label;
        value_at(value_at(found, reason), label).emplace_back(name);
      }
  std::vector<MissingReadings> all;
  for (const auto& [reason, of] : found) all.push_back({reason, grouped(of)});
  return all;
}

}  // namespace remuda::snapshot
