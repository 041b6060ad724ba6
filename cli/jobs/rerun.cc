#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/jobs/array_jobs.h"
#include "cli/jobs/job_name.h"
#include "cli/jobs/kept_environment.h"
#include "cli/jobs/kept_line.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"

namespace remuda::cli {
namespace {

constexpr const char* kRerunFooter =
    "It starts in the background, with the flags, the command and the folder it was given then, and with the\n"
    "environment of this shell. Of an array that has ended, those indices start that are not done. Its new number is\n"
    "printed. `remuda hold` is not run again.\n\n"
    "A job in the background that waits under an agent has no process, and gets one, for which the agent calls this,\n"
    "when its turn has come: under its number, and with the environment that it was submitted with.\n\n"
    "Examples:\n"
    "  remuda rerun 12     the job, which failed or was cancelled\n"
    "  remuda rerun 5      the indices of array 5 that are not done\n"
    "  remuda rerun 5.7    index 7 of it\n";

/// What is started.
struct Again {
  std::vector<std::string> words;
  std::string folder;
  std::optional<KeptEnvironment> environment;  ///< in place of this process's
};

struct RerunFlags {
  MachineFlags machine;
  std::string job;
};

/// The job whose line is used, and the part of it that is to run.
struct Wanted {
  int64_t job = 0;
  std::vector<int> indices;  ///< of an array
};

Result<void> check_may_run(const pool::Job& job) {
  if (job.uid != static_cast<int>(::getuid()))
    return usage_error(fmt::format("job {} belongs to {}, who may run it again", name_of(job), job.user));
  if (job.state != pool::JobState::ended) return usage_error(fmt::format("job {} has not ended", name_of(job)));
  if (succeeded(job)) return usage_error(fmt::format("job {} ended well; there is nothing to run again", name_of(job)));
  return {};
}

Result<Wanted> wanted_of(run::Caretaker& caretaker, const pool::Job& job) {
  REMUDA_TRY(check_may_run(job));
  if (!is_array(job)) {
    if (job.array != 0) return Wanted{job.array, {job.array_index}};
    return Wanted{job.id, {}};
  }
  REMUDA_ASSIGN(const std::vector<pool::Job> jobs, jobs_of_array(caretaker.pool(), job.id));
  const ArrayStates states = array_states(job, jobs);
  if (!states.running.empty())  // a cancelled one may still have its grace time
    return usage_error(fmt::format("array {} has not ended: {}", job.id, states_text(job, states)));
  Wanted wanted{job.id, states.not_done()};
  if (wanted.indices.empty()) return usage_error(fmt::format("all of array {} is done", job.id));
  return wanted;
}

/// "3,7,9%2": the indices, and as many at once as before.
std::string array_flag(const std::vector<int>& indices, const std::string& before) {
  const size_t percent = before.find('%');
  return fmt::format("--array={}{}", fmt::join(indices, ","),
                     percent == std::string::npos ? "" : before.substr(percent));
}

/// Jobs that have ended as they should, or are no longer in the pool, need not be waited for again.
Result<std::vector<std::string>> awaited_flags(run::Caretaker& caretaker, const pool::Job& job) {
  std::vector<std::string> flags;
  for (const int64_t id : job.after) {
    REMUDA_ASSIGN(const auto before, caretaker.pool().find(id));
    if (before && !succeeded(*before)) flags.push_back(fmt::format("--after={}", id));
  }
  for (const int64_t id : job.after_any) {
    REMUDA_ASSIGN(const auto before, caretaker.pool().find(id));
    if (before && before->state != pool::JobState::ended) flags.push_back(fmt::format("--after-any={}", id));
  }
  return flags;
}

/// Flags that are of the first time, or are written anew.
bool is_of_first_time(const std::string& flag) {
  constexpr std::array<std::string_view, 4> kStarts{"--after=", "--after-any=", "--array=", "--begin="};
  return std::ranges::any_of(kStarts, [&](std::string_view start) { return flag.starts_with(start); });
}

std::vector<std::string> arguments_for(const RerunFlags& flags, const KeptLine& line, std::vector<std::string> added) {
  std::vector<std::string> words{"remuda", "run", "--detach"};
  if (!flags.machine.file.empty())
    words.push_back("--machine=" + std::filesystem::absolute(flags.machine.file).string());
  for (const std::string& flag : line.flags)
    if (!is_of_first_time(flag)) words.push_back(flag);
  std::ranges::move(added, std::back_inserter(words));
  if (!line.command.empty()) words.emplace_back("--");
  words.insert(words.end(), line.command.begin(), line.command.end());
  return words;
}

/// A job that has not begun and has no process: it goes on, as what it was.
Result<Again> go_on(const RerunFlags& flags, const std::string& pool, const pool::Job& job) {
  REMUDA_ASSIGN(const KeptLine line, read_kept_line(pool, job));
  REMUDA_ASSIGN(KeptEnvironment environment, read_kept_environment(pool, job.id));
  return Again{arguments_for(flags, line, {fmt::format("--take-over={}", job.id)}), line.folder,
               std::move(environment)};
}

Result<Again> again(const RerunFlags& flags) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  REMUDA_ASSIGN(const pool::Job job, find_job(caretaker, flags.job));
  if (job.unkept && job.uid == static_cast<int>(::getuid())) return go_on(flags, caretaker.folder(), job);
  REMUDA_ASSIGN(const Wanted wanted, wanted_of(caretaker, job));
  REMUDA_ASSIGN(const pool::Job first, find_job(caretaker, std::to_string(wanted.job)));
  REMUDA_ASSIGN(const KeptLine line, read_kept_line(caretaker.folder(), first));
  if (line.flag("tasks") == "-") return usage_error(fmt::format("the tasks of job {} came from stdin", job.id));
  REMUDA_ASSIGN(std::vector<std::string> added, awaited_flags(caretaker, first));
  if (!wanted.indices.empty()) added.push_back(array_flag(wanted.indices, line.flag("array").value_or("")));
  return Again{arguments_for(flags, line, std::move(added)), line.folder, std::nullopt};
}

/// For execve(2), which has them as C does.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

Result<int> rerun(const RerunFlags& flags) {
  REMUDA_ASSIGN(Again start, again(flags));
  if (::chdir(start.folder.c_str()) != 0)
    return usage_error(fmt::format("cannot go to {}, where it ran: {}", start.folder, errno_text(errno)));
  const std::vector<char*> argv = pointers_to(start.words);
  if (start.environment) {
    take_on(*start.environment);
    ::execve("/proc/self/exe", argv.data(), pointers_to(start.environment->entries).data());
  } else {
    ::execv("/proc/self/exe", argv.data());
  }
  return failed(fmt::format("cannot start remuda run: {}", errno_text(errno)));
}

}  // namespace

void add_rerun(Program& program) {
  auto flags = std::make_shared<RerunFlags>();
  CLI::App& command = program.add("rerun", "Run again what failed or was cancelled", [flags] { return rerun(*flags); });
  command.add_option("JOB", flags->job, "Number of the job, or 5.7: index 7 of array 5")->required();
  add_machine_options(command, flags->machine);
  command.footer(kRerunFooter);
}

}  // namespace remuda::cli
