// The `remuda` program: parses the command line and runs the chosen subcommand.
#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <system_error>

#include "base/standard_streams.h"
#include "base/text.h"
#include "cli/subcommands.h"
#include "cli/usage.h"

namespace {

int fail(const remuda::Error& error) {
  std::fputs(fmt::format("remuda: {}\n", remuda::printable(error.message)).c_str(), stderr);  // and if not, not
  return exit_status(error.kind);
}

/// What could not be written must not look as if it had been.
int finish(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  const int code = fail({remuda::ErrorKind::failed, "cannot write the output: " + remuda::errno_text(errno)});
  return status == 0 ? code : status;
}

int run(const remuda::Action& action) {
  try {
    const remuda::Result<int> status = action();
    return finish(status ? *status : fail(status.error()));
  } catch (const std::system_error& error) {  // what fmt throws when stdout cannot be written
    return fail({remuda::ErrorKind::failed, error.what()});
  }
}

}  // namespace

int main(int argc, char** argv) {
  remuda::open_standard_streams();
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
