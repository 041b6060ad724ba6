#include "cli/help.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "base/text.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "cli/usage.h"

namespace remuda::cli {
namespace {

class ShortHelp : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string label = option->get_positional() ? "" : value_label(*option);
    const bool takes_many = option->get_expected_max() == CLI::detail::expected_max_vector_size;
    const std::string standard =
        label.empty() || option->get_default_str().empty() ? "" : "=" + option->get_default_str();
    return (label.empty() ? "" : " " + label) + standard + (takes_many ? " ..." : "");
  }
};

}  // namespace

/// CLI11 has "N:INT in [1 - 256]", "TEXT:{any,p2p,nvlink}", "JOB:FILE".
std::string value_label(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  if (open != std::string::npos && close != std::string::npos) return type.substr(open, close - open + 1);
  return type.substr(0, type.find(':'));
}

void print_help(const std::string& text) { print_fitted(terminal_width(STDOUT_FILENO) ? unbroken(text) : text); }

void add_help(Program& program) {
  auto name = std::make_shared<std::string>();
  CLI::App& help = program.add("help", "Show how a command is used", [name, &program]() -> Result<int> {
    const auto commands = program.app.get_subcommands({});
    const auto command = std::ranges::find(commands, *name, &CLI::App::get_name);
    if (!name->empty() && command == commands.end()) return usage_error(unknown_subcommand(program.app, *name));
    print_help(name->empty() ? program.app.help() : (*command)->help());
    return 0;
  });
  help.add_option("COMMAND", *name, "One of them; all, unless given");
  help.footer("Examples:\n  remuda help      what there is\n  remuda help run  the same as remuda run --help\n");
}

void use_short_help(CLI::App& app) {
  const auto help = std::make_shared<ShortHelp>();
  app.formatter(help);
  for (CLI::App* command : app.get_subcommands({})) command->formatter(help);
}

}  // namespace remuda::cli
