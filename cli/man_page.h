// Manual pages, made from the command line itself so that they cannot differ from --help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace remuda::cli {

/// "remuda" for the program, "remuda-list" for its subcommand list.
std::string man_name(const CLI::App& command);

/// The page in man(7) of the program or of one subcommand.
std::string man_page(const CLI::App& command);

}  // namespace remuda::cli
