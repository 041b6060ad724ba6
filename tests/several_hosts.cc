#include "tests/several_hosts.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/env.h"

namespace remuda::tests {
namespace {

bool succeeds(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  return run(arguments).exit.ok();
}
bool ip(const std::vector<std::string>& arguments) { return succeeds("ip", arguments); }

std::string name_of(const std::string& what) { return fmt::format("remuda-hosts-{}-{}", ::getpid(), what); }
std::string name_of(int host) { return name_of(std::to_string(host)); }
std::string the_switch() { return name_of("switch"); }

}  // namespace

SeveralHosts::SeveralHosts(int count, double bits_per_s) : count_(count) {
  works_ = ::geteuid() == 0 && ip({"netns", "add", the_switch()}) &&
           ip({"-n", the_switch(), "link", "add", "bridge", "type", "bridge"}) &&
           ip({"-n", the_switch(), "link", "set", "bridge", "up"});
  for (int host = 0; works_ && host < count; ++host) works_ = plug_in(host, bits_per_s);
}

SeveralHosts::~SeveralHosts() {
  for (int host = 0; host < count_; ++host) ip({"netns", "del", name_of(host)});
  ip({"netns", "del", the_switch()});
}

std::string SeveralHosts::address(int host) const { return fmt::format("10.98.0.{}", host + 1); }

bool SeveralHosts::plug_in(int host, double bits_per_s) const {
  const std::string name = name_of(host), port = fmt::format("port{}", host);
  const bool is_in =
      ip({"netns", "add", name}) &&
      ip({"-n", name, "link", "add", "cable", "type", "veth", "peer", "name", port, "netns", the_switch()}) &&
      ip({"-n", the_switch(), "link", "set", port, "master", "bridge", "up"}) &&
      ip({"-n", name, "address", "add", address(host) + "/24", "dev", "cable"}) &&
      ip({"-n", name, "link", "set", "cable", "up"}) && ip({"-n", name, "link", "set", "lo", "up"});
  if (!is_in || bits_per_s == 0) return is_in;
  return succeeds("tc", {"-n", name, "qdisc", "add", "dev", "cable", "root", "tbf", "rate",
                         fmt::format("{:.0f}bit", bits_per_s), "burst", "64kb", "latency", "50ms"});
}

void SeveralHosts::cut(int host) const { ip({"-n", name_of(host), "link", "set", "cable", "down"}); }

RunningProgram SeveralHosts::start(int host, const std::vector<std::string>& program,
                                   const process::Environment& environment) const {
  std::vector<std::string> command{"ip", "netns", "exec", name_of(host)};
  command.insert(command.end(), program.begin(), program.end());
  return RunningProgram(command, environment);
}

RunningProgram SeveralHosts::launch(int host, const ScratchFolder& folder, const ScratchFolder& home,
                                    const std::vector<std::string>& arguments, int ranks) const {
  std::vector<std::string> command =
      train_command(folder, {"--transport", "tcp", "--json", folder.path(fmt::format("report-{}.json", host))});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return start(host, command,
               {{env::rank.name, std::to_string(host)},
                {env::local_rank.name, "0"},
                {env::world_size.name, std::to_string(ranks > 0 ? ranks : count_)},
                {env::master_addr.name, address(0)},
                {env::master_port.name, std::to_string(kHostsPort)},
                {env::run_id.name, "several hosts"},
                {env::state_home.name, home.path()}});
}

}  // namespace remuda::tests
