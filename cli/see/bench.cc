#include <fmt/format.h>
#include <memory>

#include "cli/see/bench_links.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"

namespace remuda::cli {
namespace {

constexpr const char* kLinks = "links";

constexpr const char* kWhatThereIs =
    "What can be measured:\n"
    "  links  bandwidth and latency between host and devices, and pair by pair;\n"
    "         and each device's rate of matrix products by precision\n"
    "Measure it with `remuda bench NAME`.\n";

constexpr const char* kBenchExamples =
    "Examples:\n"
    "  remuda bench                               what can be measured\n"
    "  remuda bench links                         measure every device and pair, and keep the figures\n"
    "  remuda bench links --devices cpu:0,cpu:1   of these devices only\n"
    "  remuda bench links --seconds 60            take more time, for figures that vary less\n"
    "The figures are kept in $XDG_STATE_HOME/remuda/measured.json, ~/.local/state/remuda/measured.json unless set;\n"
    "`remuda topo` and everything that places work uses them from then on. LIMIT is what memory or bus can carry.\n"
    "Exit status: 0 done, 1 something could not be measured, 2 wrong input, 130 after Ctrl-C, which keeps nothing.\n";

struct BenchFlags {
  std::string name;
  BenchLinksFlags links;
};

Result<int> bench(const BenchFlags& flags) {
  if (flags.name == kLinks) return bench_links(flags.links);
  print_fitted(kWhatThereIs);
  return 0;
}

}  // namespace

void add_bench(Program& program) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App& command = program.add("bench", "Measure this machine", [flags] { return bench(*flags); });
  command.add_option("NAME", flags->name, "What to measure; without it, what there is to measure")
      ->check(CLI::IsMember({kLinks}));
  command.add_option("--devices", flags->links.devices, "Devices to measure, such as gpu:0,gpu:1; all unless given")
      ->type_name("DEVICES")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--seconds", flags->links.seconds, "About how long to measure in all")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  command.add_flag("--json", flags->links.json, "Print the figures as JSON");
  add_machine_options(command, flags->links.machine);
  command.footer(kBenchExamples);
}

}  // namespace remuda::cli
