#include "cli/jobs/job_command.h"

#include <fmt/format.h>

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

}  // namespace remuda::cli
