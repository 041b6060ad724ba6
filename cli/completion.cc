#include "cli/completion.h"

#include <fmt/format.h>
#include <memory>

#include "cli/completion_script.h"

namespace remuda::cli {

void add_completion(Program& program) {
  auto shell = std::make_shared<std::string>();
  CLI::App& command = program.add("completion", "Print a completion script for a shell", [shell, &program] {
    fmt::print("{}", completion_script(program.app, *shell));
    return 0;
  });
  command.add_option("SHELL", *shell, "Your shell")->required()->check(CLI::IsMember(completion_shells()));
  command.footer(
      "To use it:\n"
      "  bash  source <(remuda completion bash)          in ~/.bashrc\n"
      "  zsh   source <(remuda completion zsh)           in ~/.zshrc, after compinit\n"
      "  fish  remuda completion fish > ~/.config/fish/completions/remuda.fish\n");
}

}  // namespace remuda::cli
