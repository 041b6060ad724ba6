#include "cli/jobs/logs.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "base/text.h"
#include "cli/jobs/log_reader.h"
#include "cli/jobs/pool_machine.h"
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
    "  remuda logs -f 12       and what comes, until the job has ended\n"
    "  remuda logs -n 20 12    the last 20 lines; of an array, those of each of its jobs\n";

constexpr int kAll = -1;

struct LogsFlags {
  MachineFlags machine;
  int64_t job = 0;
  int lines = kAll;
  bool follow = false;
};

void print(std::string_view text) { (void)write_all(STDOUT_FILENO, text, "the log"); }

Result<pool::Job> find_job(run::Caretaker& caretaker, int64_t id) {
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
  if (const pool::Job* job = state.find(id)) return *job;
  REMUDA_ASSIGN(const auto ended, caretaker.pool().find(id));
  if (ended) return *ended;
  return usage_error(fmt::format("there is no job {}", id));
}

/// None where the job has not begun to write.
Result<std::optional<LogReader>> open_log_of(const pool::Job& job) {
  if (job.log.empty())
    return usage_error(
        fmt::format("job {} has no log; start it in the background with -d, or with --log FILE", job.id));
  if (::access(job.log.c_str(), F_OK) != 0 && errno == ENOENT) {
    if (job.state != pool::JobState::ended || job.started_s == 0) return std::nullopt;
    return failed(fmt::format("the log of job {}, {}, is not there any more", job.id, printable(job.log)));
  }
  if (job.uid != static_cast<int>(::geteuid()) && ::access(job.log.c_str(), R_OK) != 0 && errno == EACCES)
    return usage_error(fmt::format("the log of job {} may be read by {} alone, whose job it is", job.id, job.user));
  REMUDA_ASSIGN(LogReader reader, LogReader::open(job.log));
  return std::optional(std::move(reader));
}

Result<void> begin(LogReader& log, int lines) {
  if (lines != kAll) REMUDA_TRY(log.go_to_last(lines));
  return log.read(print);
}

/// Looks often enough for a reader's eye; woken at once when the job ends.
Result<void> rest(run::Caretaker& caretaker, const pool::Job& job) {
  constexpr double kLook_s = 0.25;
  std::vector<process::ProcessId> keepers;
  if (pool::lives(caretaker.folder(), job.keeper))
    keepers.push_back(job.keeper);
  else
    REMUDA_TRY(caretaker.tidy());
  return caretaker.pool().wait(keepers, kLook_s);
}

Result<int> follow(run::Caretaker& caretaker, pool::Job job, int lines) {
  std::optional<LogReader> log;
  for (;;) {
    const bool has_ended = job.state == pool::JobState::ended;  // whatever it wrote is there by now
    if (!log) {
      REMUDA_ASSIGN(log, open_log_of(job));
      if (log) REMUDA_TRY(begin(*log, lines));
    } else {
      REMUDA_TRY(log->read(print));
    }
    if (has_ended) return 0;
    REMUDA_TRY(rest(caretaker, job));
    REMUDA_ASSIGN(job, find_job(caretaker, job.id));
  }
}

Result<int> print_log(const pool::Job& job, int lines) {
  REMUDA_ASSIGN(auto log, open_log_of(job));
  if (log) REMUDA_TRY(begin(*log, lines));
  return 0;
}

Result<std::vector<pool::Job>> jobs_of_array(run::Caretaker& caretaker, int64_t array) {
  constexpr int kAllRemembered = 1 << 20;
  REMUDA_ASSIGN(std::vector<pool::Job> jobs, caretaker.pool().ended(kAllRemembered));
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
  std::ranges::copy(state.jobs, std::back_inserter(jobs));
  std::erase_if(jobs, [&](const pool::Job& job) { return job.array != array || is_array(job); });
  std::ranges::sort(jobs, {}, [](const pool::Job& job) { return std::pair(job.array_index, job.id); });
  const auto same = std::ranges::unique(jobs, {}, &pool::Job::id);  // one may have ended between the two looks
  jobs.erase(same.begin(), same.end());
  return jobs;
}

/// Each line with the index before it.
Result<void> print_with_index(LogReader& log, int index, int lines) {
  if (lines != kAll) REMUDA_TRY(log.go_to_last(lines));
  std::string rest;
  REMUDA_TRY(log.read([&](std::string_view bytes) {
    rest += bytes;
    size_t begin = 0;
    for (size_t end; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1)
      print(fmt::format("[{}] {}\n", index, std::string_view(rest).substr(begin, end - begin)));
    rest.erase(0, begin);
  }));
  if (!rest.empty()) print(fmt::format("[{}] {}\n", index, rest));
  return {};
}

Result<int> print_logs_of_array(run::Caretaker& caretaker, int64_t array, int lines) {
  REMUDA_ASSIGN(const std::vector<pool::Job> jobs, jobs_of_array(caretaker, array));
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
    return usage_error(
        fmt::format("array {} is no job to follow; follow one of its jobs, as remuda ps names them", job.id));
  if (is_array(job)) return print_logs_of_array(caretaker, job.id, flags.lines);
  return flags.follow ? follow(caretaker, std::move(job), flags.lines) : print_log(job, flags.lines);
}

}  // namespace

void add_logs(Program& program) {
  auto flags = std::make_shared<LogsFlags>();
  CLI::App& command = program.add("logs", "Print what a job wrote", [flags] { return logs(*flags); });
  command.add_option("JOB", flags->job, "Number of the job")->required();
  command.add_flag("-f,--follow", flags->follow, "Go on with what it writes, until it has ended");
  command.add_option("-n,--lines", flags->lines, "Only the last ones")
      ->type_name("LINES")
      ->check(CLI::Range(0, 1 << 30));
  add_machine_options(command, flags->machine);
  command.footer(kLogsExamples);
}

}  // namespace remuda::cli
