// Errors in a command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace remuda::cli {

/// "unknown subcommand hep; did you mean help?"
std::string unknown_subcommand(const CLI::App& app, const std::string& name);

/// The text to print for a line that `app` could not parse: a sentence that names the subcommand, and a pointer to the
/// help. Subcommands, flags and arguments that do not exist are reported first, with the nearest known one; then
/// `error`.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error);

}  // namespace remuda::cli
