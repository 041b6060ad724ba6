#include "cli/jobs/run_tasks.h"

#include <utility>

#include "base/text.h"

namespace remuda::cli {

void add_task_options(CLI::App& command, TaskFlags& flags, const char* group) {
  command.add_option("--tasks", flags.file, "Commands, one a line, run one at a time on each device; - is stdin")
      ->type_name("FILE")
      ->group(group);
  command.add_flag("--fail-fast", flags.fail_fast, "The first task that fails ends the others")->group(group);
}

Result<void> add_tasks(const TaskFlags& flags, run::RunSpec& spec) {
  if (flags.file.empty() && flags.fail_fast) return usage_error("--fail-fast is for --tasks; --each ends so anyway");
  if (flags.file.empty()) return {};
  if (spec.each)
    return usage_error("--each and --tasks do not go together: one runs ranks that meet, the other single commands");
  REMUDA_ASSIGN(const std::string text, run::read_task_file(flags.file));
  const std::string name = flags.file == "-" ? "stdin" : printable(flags.file);
  REMUDA_ASSIGN(spec.tasks.tasks, run::parse_tasks(text, name));
  spec.tasks.command = spec.job.command;
  spec.job.command.insert(spec.job.command.begin(), {"--tasks", name});
  spec.fail_fast = flags.fail_fast;
  return {};
}

}  // namespace remuda::cli
