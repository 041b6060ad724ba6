#include <filesystem>
#include <fmt/format.h>
#include <memory>

#include "cli/completion_script.h"
#include "cli/jobs/pool_machine.h"
#include "cli/machine.h"
#include "cli/subcommands.h"
#include "pool/pool.h"
#include "wire/client.h"

namespace remuda::cli {
namespace {

struct CompletionFlags {
  MachineFlags machine;
  std::string shell;
  bool jobs = false;
};

/// The jobs that have not ended, then the newest that have, one a line.
template <typename Pool>
Result<int> print_jobs(Pool& pool) {
  constexpr int kEnded = 50;
  REMUDA_ASSIGN(const pool::PoolState state, pool.read());
  REMUDA_ASSIGN(const std::vector<pool::Job> ended, pool.ended(kEnded));
  for (const pool::Job& job : state.jobs)
    if (job.state != pool::JobState::ended) fmt::print("{}\n", name_of(job));
  for (const pool::Job& job : ended) fmt::print("{}\n", name_of(job));
  return 0;
}

/// Does not read the devices: a shell that completes a word cannot wait for them.
Result<int> print_jobs_of(const CompletionFlags& flags) {
  REMUDA_ASSIGN(const PoolPlace place, place_of_pool(flags.machine));
  if (place.agent) {
    REMUDA_ASSIGN(const auto client, wire::Client::connect(*place.agent, place.logs));
    return print_jobs(*client);
  }
  if (!std::filesystem::exists(place.folder)) return 0;
  REMUDA_ASSIGN(pool::Pool pool, pool::Pool::open(place.folder));
  return print_jobs(pool);
}

Result<int> completion(const CompletionFlags& flags, const Program& program) {
  if (flags.jobs) return print_jobs_of(flags);
  if (flags.shell.empty()) return usage_error("which shell? write remuda completion bash, zsh or fish");
  fmt::print("{}", completion_script(program.app, flags.shell));
  return 0;
}

}  // namespace

void add_completion(Program& program) {
  auto flags = std::make_shared<CompletionFlags>();
  CLI::App& command = program.add("completion", "Print a completion script for a shell",
                                  [flags, &program] { return completion(*flags, program); });
  command.add_option("SHELL", flags->shell, "Your shell")->check(CLI::IsMember(completion_shells()));
  command.add_flag("--jobs", flags->jobs, "Print the numbers of jobs, for these scripts");
  add_machine_options(command, flags->machine);
  command.footer(
      "To use it, where it was not installed with remuda:\n"
      "  bash  source <(remuda completion bash)          in ~/.bashrc\n"
      "  zsh   source <(remuda completion zsh)           in ~/.zshrc, after compinit\n"
      "  fish  remuda completion fish > ~/.config/fish/completions/remuda.fish\n");
}

}  // namespace remuda::cli
