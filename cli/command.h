// Program: the command line of `remuda` and its subcommands.
//
// Each subcommand is in one file that exports one function, `void add_NAME(Program&)`, listed in cli/subcommands.h: it
// declares the flags and the action. Nothing runs while the line is parsed; main runs the action of the chosen
// subcommand.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <utility>

#include "base/result.h"

namespace remuda::cli {

/// What a subcommand does. The value is the exit status (0 ok); an error is printed by main as `remuda: sentence` and
/// ends the program with exit_status(kind).
using Action = std::function<Result<int>()>;

/// Whether --help, manual pages and completion show it: those that the agent starts have the group "".
inline bool is_for_people(const CLI::App* command) { return !command->get_group().empty(); }

class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;

  /// Adds a subcommand. Its flags are added to the returned App; flag values must live as long as `action` (capture a
  /// shared_ptr to them).
  CLI::App& add(const std::string& name, const std::string& summary, Action action) {
    CLI::App* command = app.add_subcommand(name, summary);
    command->callback([this, action = std::move(action)] { chosen = action; });
    return *command;
  }

  CLI::App app{"Makes the unlike GPUs of a machine one pool", "remuda"};
  Action chosen;  ///< empty until a subcommand was parsed
};

}  // namespace remuda::cli
