#include "cli/jobs/wait_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "cli/jobs/pool_machine.h"
#include "pool/admission.h"
#include "pool/transitions.h"

namespace remuda::cli {

Result<WaitReport> wait_report(const run::Caretaker& caretaker, const pool::PoolState& state, const pool::Job& job,
                               double now_s) {
  const pool::Policy policy = policy_or_none(caretaker);
  WaitReport report;
  const std::vector<place::Held> foreign = held_without_job(caretaker, state);
  report.outlook = outlook_of({state, caretaker.inventory(), foreign, policy, now_s}, job);
  report.first = job.why.starts_with(pool::kNoPolicy) ? job.why : waits_first(state, job, policy, now_s);
  if (!report.first.empty()) return report;
  for (const pool::Job* one : waiting_jobs(state, policy, now_s)) {
    if (one->id == job.id) break;
    report.before += !is_array(*one) && waits_first(state, *one, policy, now_s).empty();
  }
  std::vector<place::Held> held = held_by_leases(state);
  std::ranges::copy(foreign, std::back_inserter(held));
  std::ranges::move(pool::barred_devices(job, caretaker.inventory(), policy, now_s), std::back_inserter(held));
  REMUDA_ASSIGN(place::Answer answer, place::place(place::Layout(caretaker.inventory()), job.request, held));
  if (auto* refusal = std::get_if<place::Refusal>(&answer)) report.in_the_way = std::move(refusal->blockers);
  return report;
}

std::string report_text(const WaitReport& report, const pool::Job& job) {
  if (job.paused || job.keeper_failed || job.cancelled || job.why.starts_with(pool::kNoPolicy)) return "";
  place::Refusal refusal;
  refusal.blockers = report.in_the_way;
  const pool::Forecast& start = report.outlook.start;
  refusal.earliest_s = start.starts_s;
  std::string text = refusal_text(refusal);
  if (!start.starts_s) text += fmt::format("{:<12}not known: {}\n", "earliest", start.unknown);
  for (const place::Relaxation& one : report.outlook.would_start)
    text += fmt::format("{:<12}{}\n", &one == &report.outlook.would_start.front() ? "at once" : "", one.change);
  if (!report.first.empty()) return text;
  if (report.before == 0) return text + "It is the first in the queue\n";
  return text + fmt::format("{} waiting job{} before it\n", report.before, report.before == 1 ? " goes" : "s go");
}

void add_report(const WaitReport& report, Json& json) {
  place::Refusal refusal;
  refusal.blockers = report.in_the_way;
  json["in_the_way"] = to_json(refusal)["blockers"];
  if (report.outlook.start.starts_s)
    json["earliest_s"] = *report.outlook.start.starts_s;
  else
    json["earliest_unknown"] = report.outlook.start.unknown;
  if (!report.outlook.would_start.empty()) json["would_start"] = pool::to_json(report.outlook.would_start);
  if (report.first.empty()) json["jobs_before"] = report.before;
}

}  // namespace remuda::cli
