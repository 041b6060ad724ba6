// Completion scripts for shells, made by walking a CLI11 command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace remuda::cli {

/// bash, zsh, fish.
const std::vector<std::string>& completion_shells();

/// A script for one of completion_shells() to source. It covers the flags of `app`, its subcommands, and their flags,
/// with the values of flags and arguments that have a fixed set of them.
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace remuda::cli
