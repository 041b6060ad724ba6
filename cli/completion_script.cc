#include "cli/completion_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/text.h"
#include "cli/command.h"

namespace remuda::cli {
namespace {

/// A flag, or a positional argument, which has no names.
struct Argument {
  std::vector<std::string> names;  ///< with their dashes
  std::string label, summary;
  bool takes_value = false;
  std::vector<std::string> choices;  ///< the only valid values; empty when there are others
};

/// Prints the jobs that may be named, when the user asks for them.
constexpr const char* kJobs = "$(remuda completion --jobs 2>/dev/null)";
bool names_jobs(const Argument& positional) { return positional.label == "JOB"; }

struct Command {
  std::string name, summary;
  std::vector<Argument> flags, positionals;
};

/// The words of a type name such as "TEXT:{auto,shm,tcp}", which is how CLI11 shows a fixed set.
std::vector<std::string> choices_in(const std::string& type) {
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return split(std::string_view(type).substr(open + 1, close - open - 1), ',');
}

Argument argument_of(const CLI::Option& option) {
  Argument argument{.label = option.get_positional() ? option.get_name(true) : "value",
                    .summary = option.get_description()};
  for (const auto& name : option.get_snames()) argument.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) argument.names.push_back("--" + name);
  argument.takes_value = option.get_items_expected_max() > 0;
  if (argument.takes_value) argument.choices = choices_in(option.get_type_name());
  return argument;
}

Command command_of(const CLI::App& app) {
  Command command{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty())
      (option->get_positional() ? command.positionals : command.flags).push_back(argument_of(*option));
  return command;
}

std::string joined(const std::vector<std::string>& words, const char* separator = " ") {
  return fmt::format("{}", fmt::join(words, separator));
}

std::string names_of(const std::vector<Argument>& flags) {
  std::vector<std::string> all;
  for (const Argument& flag : flags) all.insert(all.end(), flag.names.begin(), flag.names.end());
  return joined(all);
}

std::string escaped(const std::string& text, const std::string& special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) result += '\\';
    result += c;
  }
  return result;
}

// bash: words[1] is the subcommand; the word before the cursor decides between values, flags and arguments.

constexpr const char* kBash = R"(_remuda() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
  local words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{top}"
  else
    case "${{COMP_WORDS[1]}} $before $word" in
{cases}    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
complete -o bashdefault -o default -F _remuda remuda
)";

std::string bash_cases(const Command& command) {
  std::string text;
  const auto add = [&](const std::string& pattern, const std::string& words) {
    text += fmt::format("      \"{} {} words=\"{}\" ;;\n", command.name, pattern, words);
  };
  for (const Argument& flag : command.flags)
    for (const std::string& name : flag.names)
      if (flag.takes_value) add(name + " \"*)", joined(flag.choices));
  add("\"*\" -\"*)", names_of(command.flags));
  for (const Argument& positional : command.positionals)
    add("\"*)", names_jobs(positional) ? kJobs : joined(positional.choices));
  return text;
}

std::string bash(const Command& top, const std::vector<Command>& commands) {
  std::vector<std::string> first{names_of(top.flags)};
  std::string cases;
  for (const Command& command : commands) {
    first.push_back(command.name);
    cases += bash_cases(command);
  }
  return fmt::format(kBash, fmt::arg("top", joined(first)), fmt::arg("cases", cases));
}

// zsh: _describe for subcommands, _arguments for their flags and arguments.

constexpr const char* kZsh = R"(#compdef remuda
_remuda() {{
  if (( CURRENT == 2 )); then
    local -a commands=({commands})
    _describe subcommand commands
    _arguments {flags}
    return
  fi
  shift words
  (( CURRENT-- ))
  case ${{words[1]}} in
{cases}  esac
}}
if [[ ${{funcstack[1]}} == _remuda ]]; then _remuda; else compdef _remuda remuda; fi
)";

std::string zsh_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

std::string zsh_value(const Argument& argument) {
  if (!argument.takes_value) return "";
  const std::string values = argument.choices.empty() ? "_files" : fmt::format("({})", joined(argument.choices));
  return fmt::format(":{}:{}", escaped(argument.label, ":"), values);
}

std::string zsh_arguments(const Command& command) {
  std::vector<std::string> specs;
  for (const Argument& flag : command.flags)
    for (const std::string& name : flag.names)
      specs.push_back(zsh_quoted(fmt::format("*{}[{}]{}", name, escaped(flag.summary, "[]\\"), zsh_value(flag))));
  for (const Argument& positional : command.positionals)
    specs.push_back(
        zsh_quoted(names_jobs(positional) ? fmt::format("*:JOB:{{compadd -- {}}}", kJobs) : zsh_value(positional)));
  return joined(specs);
}

std::string zsh(const Command& top, const std::vector<Command>& commands) {
  std::vector<std::string> described;
  std::string cases;
  for (const Command& command : commands) {
    described.push_back(zsh_quoted(fmt::format("{}:{}", command.name, escaped(command.summary, ":\\"))));
    cases += fmt::format("    {}) _arguments {} ;;\n", command.name, zsh_arguments(command));
  }
  return fmt::format(kZsh, fmt::arg("commands", joined(described)), fmt::arg("flags", zsh_arguments(top)),
                     fmt::arg("cases", cases));
}

// fish: one `complete` line for each word.

std::string fish_quoted(const std::string& text) { return "'" + escaped(text, "'\\") + "'"; }

std::string fish_flag(const std::string& when, const Argument& flag) {
  std::string line = fmt::format("complete -c remuda -n {}", when);
  for (const std::string& name : flag.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (flag.takes_value)
    line += flag.choices.empty() ? " -r" : fmt::format(" -x -a {}", fish_quoted(joined(flag.choices)));
  return fmt::format("{} -d {}\n", line, fish_quoted(flag.summary));
}

std::string fish(const Command& top, const std::vector<Command>& commands) {
  std::string text;
  for (const Argument& flag : top.flags) text += fish_flag("__fish_use_subcommand", flag);
  for (const Command& command : commands)
    text += fmt::format("complete -c remuda -f -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        fish_quoted(command.summary));
  for (const Command& command : commands) {
    const std::string when = fmt::format("'__fish_seen_subcommand_from {}'", command.name);
    for (const Argument& flag : command.flags) text += fish_flag(when, flag);
    for (const Argument& positional : command.positionals)
      if (names_jobs(positional))
        text += fmt::format("complete -c remuda -f -n {} -a '(remuda completion --jobs 2>/dev/null)'\n", when);
      else if (!positional.choices.empty())
        text += fmt::format("complete -c remuda -f -n {} -a {}\n", when, fish_quoted(joined(positional.choices)));
  }
  return text;
}

}  // namespace

const std::vector<std::string>& completion_shells() {
  static const std::vector<std::string> shells{"bash", "zsh", "fish"};
  return shells;
}

std::string completion_script(const CLI::App& app, const std::string& shell) {
  std::vector<Command> commands;
  for (const CLI::App* subcommand : app.get_subcommands(is_for_people)) commands.push_back(command_of(*subcommand));
  const Command top = command_of(app);
  if (shell == "bash") return bash(top, commands);
  if (shell == "zsh") return zsh(top, commands);
  REMUDA_CHECK(shell == "fish", "the shell is one of completion_shells()");
  return fish(top, commands);
}

}  // namespace remuda::cli
