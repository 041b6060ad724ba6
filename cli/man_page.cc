#include "cli/man_page.h"

#include <fmt/format.h>

#include "base/env.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/help.h"

namespace remuda::cli {
namespace {

/// The text with everything escaped that roff would interpret.
std::string plain(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    const bool at_line_start = safe.empty() || safe.back() == '\n';
    if (at_line_start && (c == '.' || c == '\'')) safe += "\\&";
    if (c == '\\')
      safe += "\\e";
    else if (c == '-')
      safe += "\\-";
    else
      safe += c;
  }
  return safe;
}

std::string section(const char* title, const std::string& body) {
  return body.empty() ? "" : fmt::format(".SH {}\n{}", title, body);
}

std::string entry(const std::string& term, const std::string& meaning) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", plain(term), plain(meaning));
}

std::string names_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  std::string names = option.get_name(false, true);
  for (size_t comma = names.find(','); comma != std::string::npos; comma = names.find(',', comma + 2))
    names.replace(comma, 1, ", ");
  return option.get_items_expected_max() > 0 ? names + " " + value_label(option) : names;
}

std::string options_of(const CLI::App& command, bool positional) {
  std::string text;
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional() == positional && !option->get_group().empty())
      text += entry(names_of(*option), option->get_description());
  return text;
}

std::string subcommands_of(const CLI::App& command) {
  std::string text;
  for (const CLI::App* subcommand : command.get_subcommands(is_for_people))
    text += entry(man_name(*subcommand) + "(1)", subcommand->get_description());
  return text;
}

std::string synopsis_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  std::string line = parent ? parent->get_name() + " " + command.get_name() : command.get_name() + " SUBCOMMAND";
  line += " [OPTIONS]";
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional())
      line += option->get_required() ? " " + option->get_name(true) : fmt::format(" [{}]", option->get_name(true));
  return plain(line) + "\n";
}

/// The variables that the user may set; remuda sets the others for its own processes.
std::string environment() {
  std::string text;
  for (const env::Variable& variable : env::all()) text += entry(variable.name, variable.meaning);
  return text;
}

/// The footer as it is printed by --help.
std::string examples_of(const CLI::App& command) {
  const std::string footer = command.get_footer();
  return footer.empty() ? "" : fmt::format(".nf\n{}\n.fi\n", plain(footer));
}

}  // namespace

std::string man_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent ? parent->get_name() + "-" + command.get_name() : command.get_name();
}

std::string man_page(const CLI::App& command) {
  const bool is_program = command.get_parent() == nullptr;
  const std::string name = man_name(command);
  return fmt::format(".TH {} 1 \"\" \"remuda {}\" \"User Commands\"\n", plain(name), version()) +
         section("NAME", fmt::format("{} \\- {}\n", plain(name), plain(command.get_description()))) +
         section("SYNOPSIS", synopsis_of(command)) + section("SUBCOMMANDS", subcommands_of(command)) +
         section("ARGUMENTS", options_of(command, true)) + section("OPTIONS", options_of(command, false)) +
         section("EXAMPLES", examples_of(command)) + section("ENVIRONMENT", is_program ? environment() : "") +
         section(
             "EXIT STATUS",
             "0 when all is well, 1 when the work failed, 2 when the input is wrong, unless said otherwise above.\n") +
         section("SEE ALSO", is_program ? "" : "\\fBremuda\\fR(1)\n");
}

}  // namespace remuda::cli
