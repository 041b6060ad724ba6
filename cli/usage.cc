#include "cli/usage.h"

#include <fmt/format.h>
#include <optional>
#include <vector>

#include "base/text.h"
#include "cli/command.h"

namespace remuda::cli {
namespace {

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(is_for_people)) names.push_back(command->get_name());
  return names;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string meant = nearest(word, known);
  return meant.empty() ? "" : fmt::format("; did you mean {}?", meant);
}

/// The first argument that no option took. Where the flags are followed by a command, arguments from -- on are not
/// flags of remuda.
std::optional<std::string> not_taken(const CLI::App& command) {
  const auto rest = command.remaining();
  if (rest.empty() || rest.front() == "--") return std::nullopt;
  if (command.get_prefix_command() && !rest.front().starts_with("-")) return std::nullopt;
  return rest.front();
}

std::string unknown(const CLI::App& command, const std::string& argument) {
  if (argument.starts_with("-")) {
    const std::string flag = argument.substr(0, argument.find('='));
    return fmt::format("unknown flag {}{}", flag, did_you_mean(flag, flag_names(command)));
  }
  if (subcommand_names(command).empty()) return fmt::format("unexpected argument {}", argument);
  return unknown_subcommand(command, argument);
}

/// CLI11's message, except where it does not say what would be right.
std::string sentence_of(const CLI::ParseError& error) {
  constexpr std::string_view kNoNumber = "Could not convert: ";  // "... JOB = x"; only numbers are converted here
  const std::string what = error.what();
  return what.starts_with(kNoNumber) ? what.substr(kNoNumber.size()) + " is no number" : what;
}

std::string text(const CLI::App& command, const std::string& sentence) {
  const CLI::App* parent = command.get_parent();
  const std::string name = parent ? parent->get_name() + " " + command.get_name() : command.get_name();
  return fmt::format("{}: {}\nSee {} --help.\n", name, printable(sentence), name);
}

}  // namespace

std::string unknown_subcommand(const CLI::App& app, const std::string& name) {
  return fmt::format("unknown subcommand {}{}", printable(name), did_you_mean(name, subcommand_names(app)));
}

std::string usage_text(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  for (const CLI::App* at : {&app, &command})
    if (const auto argument = not_taken(*at)) return text(*at, unknown(*at, *argument));
  return text(command, sentence_of(error));
}

}  // namespace remuda::cli
