#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/jobs/array_jobs.h"
#include "cli/jobs/job_name.h"
#include "cli/jobs/log_reader.h"
#include "cli/jobs/patience.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "pool/lifeline.h"

namespace remuda::cli {
namespace {

constexpr const char* kLogsExamples =
    "A job has a log when it was started in the background (remuda run -d), in an array, or with --log FILE. Logs in\n"
    "the pool are kept as long as the pool remembers their jobs, and at most 4 GiB of them per user. Of an array, "
    "each\n"
    "line begins with its index.\n\n"
    "Examples:\n"
    "  remuda logs 12          all of it\n"
    "  remuda logs 5.7         of index 7 of array 5\n"
    "  remuda logs -f 12       and what comes, until the job has ended\n"
    "  remuda logs -n 20 12    the last 20 lines; of an array, those of each of its jobs\n";

constexpr int kAll = -1;

struct LogsFlags {
  MachineFlags machine;
  std::string job;
  int lines = kAll;
  bool follow = false;
};

Result<void> print_bytes(std::string_view text) { return write_all(STDOUT_FILENO, text, "the standard output"); }

/// Nothing where the job has no log file yet.
Result<std::optional<LogReader>> open_log_of(const pool::Job& job) {
  const bool is_anothers = job.uid != static_cast<int>(::geteuid());
  if (job.log.empty() && is_anothers && ::geteuid() != 0)
    return usage_error(
        fmt::format("the log of job {}, if it has one, is for {}, whose job it is", name_of(job), job.user));
  if (job.log.empty())
    return usage_error(
        fmt::format("job {} has no log; start it in the background with -d, or with --log FILE", name_of(job)));
  if (::access(job.log.c_str(), F_OK) != 0 && errno == ENOENT) {
    if (job.state != pool::JobState::ended || job.started_s == 0) return std::nullopt;
    return failed(fmt::format("the log of job {}, {}, is not there any more", name_of(job), printable(job.log)));
  }
  const bool is_root = ::geteuid() == 0;
  if (is_anothers && !is_root && ::access(job.log.c_str(), R_OK) != 0 && errno == EACCES)
    return usage_error(
        fmt::format("the log of job {} may be read by {} only, whose job it is", name_of(job), job.user));
  auto reader = is_anothers && is_root ? LogReader::open_as(job.uid, job.log) : LogReader::open(job.log);
  if (!reader) return tl::unexpected(std::move(reader.error()));
  return std::optional(std::move(*reader));
}

Result<void> begin(LogReader& log, int lines) {
  if (lines != kAll) REMUDA_TRY(log.go_to_last(lines));
  return log.read(print_bytes);
}

/// Looks at the job again after a time that is short for a person, or when it ends.
Result<void> look_again(run::Caretaker& caretaker, pool::Job& job) {
  constexpr double kLook_s = 0.25;
  std::vector<process::ProcessId> keepers;
  if (pool::lives(caretaker.folder(), job.keeper))
    keepers.push_back(job.keeper);
  else
    REMUDA_TRY(caretaker.tidy());
  REMUDA_TRY(caretaker.pool().wait(job.id, keepers, kLook_s, {}));
  REMUDA_ASSIGN(job, find_job(caretaker, std::to_string(job.id)));
  return {};
}

/// On stderr, as it is no part of the log.
void report_waiting(const pool::Job& job) {
  if (job.state != pool::JobState::waiting) return;
  fmt::print(stderr, "remuda: job {} waits{}{}\n", name_of(job), job.why.empty() ? "" : ": ", job.why);
}

Result<int> follow(run::Caretaker& caretaker, pool::Job job, int lines) {
  report_waiting(job);
  std::optional<LogReader> log;
  for (Patience patience;;) {
    const bool has_ended = job.state == pool::JobState::ended;  // all its output is in the log then
    if (!log) {
      REMUDA_ASSIGN(log, open_log_of(job));
      if (log) REMUDA_TRY(begin(*log, lines));
    } else {
      REMUDA_TRY(log->read(print_bytes));
    }
    if (has_ended) return 0;
    REMUDA_TRY(patience.after(look_again(caretaker, job), caretaker.pool(), kNever_s));
  }
}

Result<int> print_log(const pool::Job& job, int lines) {
  report_waiting(job);
  REMUDA_ASSIGN(auto log, open_log_of(job));
  if (log) REMUDA_TRY(begin(*log, lines));
  return 0;
}

/// Each line with the index before it.
Result<void> print_with_index(LogReader& log, int index, int lines) {
  if (lines != kAll) REMUDA_TRY(log.go_to_last(lines));
  std::string rest;
  REMUDA_TRY(log.read([&](std::string_view bytes) -> Result<void> {
    rest += bytes;
    size_t begin = 0;
    for (size_t end; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1)
      REMUDA_TRY(print_bytes(fmt::format("[{}] {}\n", index, std::string_view(rest).substr(begin, end - begin))));
    rest.erase(0, begin);
    return {};
  }));
  return rest.empty() ? Result<void>{} : print_bytes(fmt::format("[{}] {}\n", index, rest));
}

Result<int> print_logs_of_array(run::Caretaker& caretaker, int64_t array, int lines) {
  REMUDA_ASSIGN(const std::vector<pool::Job> jobs, jobs_of_array(caretaker.pool(), array));
  for (const pool::Job& job : jobs) {
    auto log = open_log_of(job);
    if (!log)
      fmt::print(stderr, "remuda: {}\n", log.error().message);
    else if (*log)
      REMUDA_TRY(print_with_index(**log, job.array_index, lines));
  }
  return 0;
}

Result<int> logs(const LogsFlags& flags) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  REMUDA_ASSIGN(pool::Job job, find_job(caretaker, flags.job));
  if (is_array(job) && flags.follow)
    return usage_error(fmt::format("array {0} has a log for each index; follow one: remuda logs -f {0}.INDEX", job.id));
  if (is_array(job)) return print_logs_of_array(caretaker, job.id, flags.lines);
  return flags.follow ? follow(caretaker, std::move(job), flags.lines) : print_log(job, flags.lines);
}

}  // namespace

void add_logs(Program& program) {
  auto flags = std::make_shared<LogsFlags>();
  CLI::App& command = program.add("logs", "Print what a job wrote", [flags] { return logs(*flags); });
  command.add_option("JOB", flags->job, "Number of the job, or 5.7: index 7 of array 5")->required();
  command.add_flag("-f,--follow", flags->follow, "Go on with what it writes, until it has ended");
  command.add_option("-n,--lines", flags->lines, "Only the last ones")
      ->type_name("LINES")
      ->check(CLI::Range(0, 1 << 30));
  add_machine_options(command, flags->machine);
  command.footer(kLogsExamples);
}

}  // namespace remuda::cli
