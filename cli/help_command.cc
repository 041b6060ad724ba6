#include <algorithm>
#include <memory>

#include "cli/help.h"
#include "cli/subcommands.h"
#include "cli/usage.h"

namespace remuda::cli {

void add_help(Program& program) {
  auto name = std::make_shared<std::string>();
  CLI::App& help = program.add("help", "Show how a command is used", [name, &program]() -> Result<int> {
    const auto commands = program.app.get_subcommands(is_for_people);
    const auto command = std::ranges::find(commands, *name, &CLI::App::get_name);
    if (!name->empty() && command == commands.end()) return usage_error(unknown_subcommand(program.app, *name));
    print_help(name->empty() ? program.app.help() : (*command)->help(program.app.get_name()));
    return 0;
  });
  help.add_option("COMMAND", *name, "One of them; all, unless given");
  help.footer("Examples:\n  remuda help      what there is\n  remuda help run  the same as remuda run --help\n");
}

}  // namespace remuda::cli
