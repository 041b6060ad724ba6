// The `remuda` program: parses the command line and runs the chosen subcommand.
#include <fmt/format.h>

#include "base/version.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/list.h"
#include "cli/report.h"
#include "cli/train.h"
#include "cli/usage.h"

namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  remuda list                                      the devices of this machine\n"
    "  remuda list --cpu-devices 2                      the same, with the CPU split in two\n"
    "  remuda train job.toml                            train as the file says\n"
    "  remuda train job.toml --set balance.policy=even  the same, with one value changed\n"
    "  remuda report one.json two.json                  the reports of two runs side by side\n"
    "  remuda completion bash                           completion for your shell\n";

void declare(remuda::Program& program) {
  program.app.set_version_flag("--version", std::string("remuda ") + remuda::version());
  program.app.require_subcommand(0, 1);
  program.app.footer(kExamples);
  add_list(program);
  add_train(program);
  add_report(program);
  add_completion(program);
}

int run(const remuda::Action& action) {
  const remuda::Result<int> status = action();
  if (status) return *status;
  fmt::print(stderr, "remuda: {}\n", status.error().message);
  return exit_status(status.error().kind);
}

}  // namespace

int main(int argc, char** argv) {
  remuda::Program program;
  declare(program);
  try {
    program.app.parse(argc, argv);
  } catch (const CLI::Success& wish) {
    return program.app.exit(wish);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}", remuda::usage_text(program.app, error));
    return exit_status(remuda::ErrorKind::usage);
  }
  if (program.chosen) return run(program.chosen);
  fmt::print("{}", program.app.help());
  return 0;
}
