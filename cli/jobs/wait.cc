#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "base/clock.h"
#include "base/text.h"
#include "cli/jobs/job_name.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/patience.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "pool/lifeline.h"
#include "pool/stage.h"

namespace remuda::cli {
namespace {

constexpr int kTimedOut = 124;  // as timeout(1)

struct WaitFlags {
  MachineFlags machine;
  std::vector<std::string> jobs;
  std::string timeout;
};

/// Until something in the pool changes, a keeper ends, or `seconds` have passed.
Result<void> rest(run::Caretaker& caretaker, const std::vector<pool::Job>& jobs, double seconds) {
  constexpr double kLook_s = 10;
  std::vector<process::ProcessId> keepers;
  for (const pool::Job& job : jobs)
    if (job.state != pool::JobState::ended && pool::lives(caretaker.folder(), job.keeper))
      keepers.push_back(job.keeper);
  return caretaker.pool().wait(0, keepers, std::min(kLook_s, seconds), {});
}

Result<void> look(run::Caretaker& caretaker, std::vector<pool::Job>& jobs) {
  REMUDA_TRY(caretaker.tidy());
  for (pool::Job& job : jobs) {
    if (job.state == pool::JobState::ended) continue;
    REMUDA_ASSIGN(job, find_job(caretaker, std::to_string(job.id)));
  }
  return {};
}

/// "job 4 was cancelled"; "job 4: job 3, which had to end well before, did not", where the reason has its own subject.
std::string end_sentence(const pool::Job& job) {
  const std::string which = (is_array(job) ? fmt::format("array {}", job.id) : "job " + name_of(job)),
                    end = end_text(job);
  constexpr std::string_view kSubjects[] = {"job ", "the ", "its ", "a ", "no ", "it "};
  const bool is_clause =
      is_array(job) || std::ranges::any_of(kSubjects, [&](std::string_view word) { return end.starts_with(word); });
  return fmt::format("{}{} {}", which, is_clause ? ":" : "", end);
}

/// That of the first that did not end well, in the order of the command line.
int status_of(const std::vector<pool::Job>& jobs) {
  for (const pool::Job& job : jobs) {
    const int status = exit_status_of(job);
    if (status == 0) continue;
    fmt::print(stderr, "remuda: {}\n", end_sentence(job));
    return status;
  }
  return 0;
}

Result<int> wait(const WaitFlags& flags) {
  double end_s = kNever_s;
  if (!flags.timeout.empty()) {
    const auto timeout_s = parse_duration(flags.timeout);
    if (!timeout_s)
      return usage_error(fmt::format("--timeout: '{}' is no time; write 90s, 15m, 2h or 1d", printable(flags.timeout)));
    end_s = monotonic_s() + *timeout_s;
  }
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  std::vector<pool::Job> jobs;
  for (const std::string& name : flags.jobs) {
    REMUDA_ASSIGN(pool::Job job, find_job(caretaker, name));
    jobs.push_back(std::move(job));
  }
  for (Patience patience;;) {
    const auto open = std::ranges::find_if(jobs, [](const auto& job) { return job.state != pool::JobState::ended; });
    if (open == jobs.end()) return status_of(jobs);
    const double left_s = end_s - monotonic_s();
    if (left_s <= 0) {
      fmt::print(stderr, "remuda: job {} is still {}\n", name_of(*open), to_string(stage_of(*open)));
      return kTimedOut;
    }
    const auto seen = rest(caretaker, jobs, left_s).and_then([&] { return look(caretaker, jobs); });
    REMUDA_TRY(patience.after(seen, caretaker.pool(), left_s));
  }
}

}  // namespace

void add_wait(Program& program) {
  auto flags = std::make_shared<WaitFlags>();
  CLI::App& command = program.add("wait", "Wait until jobs have ended", [flags] { return wait(*flags); });
  command.add_option("JOB", flags->jobs, "Numbers of the jobs, or 5.7: index 7 of array 5")->delimiter(',')->required();
  command.add_option("--timeout", flags->timeout, "Stop waiting after so long: 90s, 15m, 2h")->type_name("TIME");
  add_machine_options(command, flags->machine);
  command.footer(
      "Exit status: that of the job; of several, that of the first that did not end well; 128 and the number of the\n"
      "signal that ended it; 125: it was cancelled before it started, or remuda failed; 124: --timeout has passed, "
      "and\n"
      "the job goes on.\n\n"
      "Examples:\n"
      "  remuda wait 12                     until it has ended, well or not\n"
      "  remuda wait 12 13 && ./evaluate    after both have ended well\n"
      "  remuda wait --timeout 1h 12        an hour at the most\n");
}

}  // namespace remuda::cli
