#include "cli/jobs/job_command.h"

#include <cerrno>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

#include "base/text.h"
#include "process/spawn.h"

namespace remuda::cli {

void add_job_command(CLI::App& command, const char* name, const char* meaning) {
  // The positional takes no value itself: prefix_command() keeps all that no option takes.
  command.prefix_command()->validate_positionals();
  const std::string description = meaning;
  command.add_option(name, description)->check([](const std::string&) -> std::string {
    return "stands for what follows";
  });
}

Result<std::vector<std::string>> job_command(const CLI::App& command) {
  std::vector<std::string> rest = command.remaining();
  if (rest.empty()) return rest;
  if (rest.front() == "--") {
    rest.erase(rest.begin());
  } else if (rest.front().starts_with("-")) {
    return usage_error(fmt::format("there is no flag {}; see remuda {} --help", rest.front(), command.get_name()));
  }
  return rest;
}

int become(std::vector<std::string> command, const confine::Visibility& environment,
           const process::Affinity& affinity) {
  for (const std::string& name : environment.unset) ::unsetenv(name.c_str());
  for (const auto& [name, value] : environment.set) ::setenv(name.c_str(), value.c_str(), 1);
  process::AffinityPlan(affinity).apply();
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  const int error = errno;
  fmt::print(stderr, "remuda: cannot execute {}: {}\n", printable(command[0]), errno_text(error));
  return error == ENOENT ? process::kNotFound : process::kCannotExecute;
}

}  // namespace remuda::cli
