// The `remuda` program: parses the command line and runs the chosen subcommand.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/subcommands.h"
#include "cli/usage.h"

namespace {

int run(const remuda::Action& action) {
  const remuda::Result<int> status = action();
  if (status) return *status;
  fmt::print(stderr, "remuda: {}\n", remuda::printable(status.error().message));
  return exit_status(status.error().kind);
}

}  // namespace

int main(int argc, char** argv) {
  remuda::Program program;
  add_subcommands(program);
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
