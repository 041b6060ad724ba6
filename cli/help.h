// Help: the text of --help, with labels and widths that suit a terminal.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace remuda::cli {

/// The placeholder for the value of an option: "N", "FILE", "{any,p2p,nvlink}". Empty where it takes none.
std::string value_label(const CLI::Option& option);

/// Prints such a text; on a terminal its paragraphs are broken for the width of that.
void print_help(const std::string& text);

/// Makes the program and its subcommands print their help with these labels, and without CLI11's notes on checks and on
/// flags that exclude each other: an error names them when it matters.
void use_short_help(CLI::App& app);

}  // namespace remuda::cli
