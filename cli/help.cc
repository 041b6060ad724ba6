#include "cli/help.h"

#include <memory>
#include <unistd.h>

#include "cli/terminal.h"

namespace remuda::cli {
namespace {

class ShortHelp : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string label = option->get_positional() ? "" : value_label(*option);
    const bool takes_many = option->get_expected_max() == CLI::detail::expected_max_vector_size;
    const bool goes_on = option->get_positional() || option->get_allow_extra_args();  // else "--device gpu:0,gpu:1"
    const char* more = !takes_many ? "" : goes_on ? " ..." : option->get_delimiter() == ',' ? ",..." : "";
    const std::string standard =
        label.empty() || option->get_default_str().empty() ? "" : "=" + option->get_default_str();
    return (label.empty() ? "" : " " + label) + standard + more;
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

void use_short_help(CLI::App& app) {
  const auto help = std::make_shared<ShortHelp>();
  app.formatter(help);
  for (CLI::App* command : app.get_subcommands({})) command->formatter(help);
}

}  // namespace remuda::cli
