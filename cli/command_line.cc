#include "cli/command_line.h"

#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <sstream>
#include <system_error>

#include "base/standard_streams.h"
#include "base/text.h"
#include "cli/help.h"
#include "cli/subcommands.h"
#include "cli/usage.h"

namespace remuda::cli {
namespace {

int fail(const Error& error) {
  std::fputs(fmt::format("remuda: {}\n", printable(error.message)).c_str(), stderr);  // a failure is ignored
  return exit_status(error.kind);
}

/// Output that could not be written must not look like success.
int finish(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  const int code = fail({ErrorKind::failed, "cannot write the output: " + errno_text(errno)});
  return status == 0 ? code : status;
}

int run(const Action& action) {
  try {
    const Result<int> status = action();
    return finish(status ? *status : fail(status.error()));
  } catch (const std::system_error& error) {  // thrown by fmt when stdout cannot be written
    return fail({ErrorKind::failed, error.what()});
  }
}

}  // namespace

int run_command_line(int argc, char** argv) {
  open_standard_streams();
  Program program;
  add_subcommands(program);
  try {
    program.app.parse(argc, argv);
  } catch (const CLI::Success& wish) {
    std::ostringstream text;
    const int status = program.app.exit(wish, text, text);
    print_help(text.str());
    return finish(status);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}", usage_text(program.app, error));
    return exit_status(ErrorKind::usage);
  }
  if (program.chosen) return run(program.chosen);
  print_help(program.app.help());
  return finish(0);
}

}  // namespace remuda::cli
