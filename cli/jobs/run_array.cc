#include "cli/jobs/run_array.h"

namespace remuda::cli {

void add_array_option(CLI::App& command, std::string& text, const char* group) {
  command.add_option("--array", text, "A job for each index, with a log of its own: 0-9, 1,3,5 or 0-9%2 (two at once)")
      ->type_name("INDICES")
      ->group(group);
}

Result<void> add_array(const std::string& text, run::RunSpec& spec) {
  if (text.empty()) return {};
  if (!spec.tasks.empty())
    return usage_error(
        "--array and --tasks do not go together: one asks for devices for each index, the other keeps them");
  REMUDA_ASSIGN(spec.array, run::parse_array(text));
  return {};
}

}  // namespace remuda::cli
