#include "cli/jobs/hold_export.h"

#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "base/env.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/jobs/job_progress.h"
#include "cli/jobs/pool_machine.h"
#include "cli/jobs/run.h"
#include "process/stat.h"
#include "process/status.h"
#include "process/user_name.h"
#include "run/hold.h"

namespace remuda::cli {
namespace {

/// One word of sh: between single quotes all characters are literal, except the single quote.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'')
      word += R"('\'')";
    else
      word += c;
  }
  return word + "'";
}

bool was_only_forked(const process::ProcessStat& stat) {
  constexpr unsigned kForkedNoExec = 0x40;  // PF_FORKNOEXEC, linux/sched.h
  return (stat.flags & kForkedNoExec) != 0;
}

/// The parent; where that was forked from a shell and never became a program of its own, as in $(...) and (...), the
/// shell that it was forked from. A usage error where the parent has ended or cannot be seen.
Result<process::ProcessId> calling_shell() {
  int pid = ::getppid();
  for (auto stat = process::process_stat(pid); stat && was_only_forked(*stat) && stat->parent > 1;
       stat = process::process_stat(pid))
    pid = stat->parent;
  if (const auto shell = process::process_id(pid); shell && pid > 0) return *shell;
  return usage_error("the shell that this ran in has ended or cannot be seen; name one with --for PID");
}

Result<process::ProcessId> shell_of(int pid) {
  if (pid == 0) return calling_shell();
  const auto process = process::process_id(pid);
  if (!process) return usage_error(fmt::format("--for: there is no process {}", pid));
  const auto user = process::sole_user_of(pid);
  if (user == static_cast<int>(::getuid())) return *process;
  return usage_error(fmt::format("--for: process {} is not yours{}", pid,
                                 user ? fmt::format(", but {}'s", process::user_name(*user)) : ""));
}

Result<int> hold(run::RunSpec spec, const MachineFlags& machine, int pid) {
  REMUDA_ASSIGN(const process::ProcessId shell, shell_of(pid));
  MachineFlags anywhere = machine;  // the keeper does not run in this folder
  if (!machine.file.empty()) anywhere.file = std::filesystem::absolute(machine.file).string();
  spec.job.command = {fmt::format("(process {})", shell.pid)};
  REMUDA_ASSIGN(const run::RunSpec complete, for_caller(std::move(spec), anywhere));
  note_ignored_variable(complete);
  note_within_job(complete);
  return hold_for(complete, opener_of(anywhere), shell, export_text,
                  job_progress(false, "eval \"$(remuda release --export)\" gives them back"));
}

}  // namespace

std::string export_text(const confine::Visibility& environment) {
  std::string text;
  for (const auto& [name, value] : environment.set) text += fmt::format("export {}={};\n", name, quoted(value));
  for (const std::string& name : environment.unset) text += fmt::format("unset {};\n", name);
  return text;
}

std::string unset_text(const confine::Visibility& environment) {
  std::string text;
  for (const auto& [name, value] : environment.set) text += fmt::format("unset {};\n", name);
  for (const std::string& name : environment.unset) text += fmt::format("unset {};\n", name);
  return text;
}

Result<int> hold_for_shell(run::RunSpec spec, const MachineFlags& machine, int pid) {
  const Result<int> status = hold(std::move(spec), machine, pid);
  const int code = status ? *status : exit_status(status.error().kind);
  if (code != 0) fmt::print("(exit {});\n", code);
  return status;
}

Result<int64_t> held_job(const MachineFlags& machine) {
  const std::string number = env::get(env::job).value_or(""), pool = env::get(env::job_pool).value_or("");
  const auto job = parse_number<int64_t>(number);
  if (!job) return usage_error(fmt::format("which job? {} names none here; `remuda ps` lists them", env::job.name));
  REMUDA_ASSIGN(const PoolPlace own, place_of_pool(machine));
  if (pool == own.folder) return *job;
  return usage_error(fmt::format("job {} is one of another pool, {}; name its machine with --machine", *job,
                                 printable(pool.empty() ? "which nothing names" : pool)));
}

}  // namespace remuda::cli
