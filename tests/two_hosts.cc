#include "tests/two_hosts.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/env.h"

namespace remuda::tests {
namespace {

constexpr const char* kPort = "29500";

bool succeeds(std::vector<std::string> program, const std::vector<std::string>& arguments) {
  program.insert(program.end(), arguments.begin(), arguments.end());
  return run(program).exit.ok();
}
bool ip(const std::vector<std::string>& arguments) { return succeeds({"ip"}, arguments); }

std::string name_of(int host) { return fmt::format("remuda-test-{}-{}", ::getpid(), host); }

}  // namespace

TwoHosts::TwoHosts(double bits_per_s) {
  works_ =
      ::geteuid() == 0 && ip({"netns", "add", name_of(0)}) && ip({"netns", "add", name_of(1)}) &&
      ip({"-n", name_of(0), "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", name_of(1)}) &&
      plug_in(0, bits_per_s) && plug_in(1, bits_per_s);
}

TwoHosts::~TwoHosts() {
  for (const int host : {0, 1}) ip({"netns", "del", name_of(host)});
}

std::string TwoHosts::address(int host) const { return fmt::format("10.99.0.{}", host + 1); }

bool TwoHosts::plug_in(int host, double bits_per_s) const {
  if (!ip({"-n", name_of(host), "address", "add", address(host) + "/24", "dev", "cable"}) ||
      !ip({"-n", name_of(host), "link", "set", "cable", "up"}) || !ip({"-n", name_of(host), "link", "set", "lo", "up"}))
    return false;
  if (bits_per_s == 0) return true;
  return succeeds({"tc", "-n", name_of(host), "qdisc", "add", "dev", "cable", "root", "tbf"},
                  {"rate", fmt::format("{:.0f}bit", bits_per_s), "burst", "64kb", "latency", "50ms"});
}

RunningProgram TwoHosts::start(int rank, const ScratchFolder& folder, const std::string& secret, int timeout_s) const {
  process::Environment environment = HandStarted{.rank = rank,
                                                 .size = 2,
                                                 .port = std::stoi(kPort),
                                                 .master = address(0),
                                                 .bind = address(rank),
                                                 .secret = secret}
                                         .environment();
  environment.emplace_back(env::transport.name, "tcp");
  environment.emplace_back(env::connect_timeout.name, std::to_string(timeout_s));
  return start(rank, worker_command(folder), environment);
}

RunningProgram TwoHosts::launch(int rank, const ScratchFolder& folder, const ScratchFolder& home,
                                const std::vector<std::string>& arguments) const {
  std::vector<std::string> command = train_command(
      folder, {"--devices", "cpu:0", "--transport", "tcp", "--json", folder.path(fmt::format("report-{}.json", rank))});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return start(rank, command,
               {{env::rank.name, std::to_string(rank)},
                {env::local_rank.name, "0"},
                {env::world_size.name, "2"},
                {env::master_addr.name, address(0)},
                {env::master_port.name, kPort},
                {env::run_id.name, "two hosts"},
                {env::state_home.name, home.path()}});
}

RunningProgram TwoHosts::start(int host, const std::vector<std::string>& program,
                               const process::Environment& environment) const {
  std::vector<std::string> command{"ip", "netns", "exec", name_of(host)};
  command.insert(command.end(), program.begin(), program.end());
  return RunningProgram(command, environment);
}

}  // namespace remuda::tests
