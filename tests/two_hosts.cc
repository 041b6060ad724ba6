#include "tests/two_hosts.h"

#include "base/env.h"

namespace remuda::tests {

RunningProgram TwoHosts::start(int rank, const ScratchFolder& folder, const std::string& secret, int timeout_s) const {
  process::Environment environment =
      HandStarted{
          .rank = rank, .size = 2, .port = kHostsPort, .master = address(0), .bind = address(rank), .secret = secret}
          .environment();
  environment.emplace_back(env::transport.name, "tcp");
  environment.emplace_back(env::connect_timeout.name, std::to_string(timeout_s));
  return start(rank, worker_command(folder), environment);
}

RunningProgram TwoHosts::launch(int rank, const ScratchFolder& folder, const ScratchFolder& home,
                                const std::vector<std::string>& arguments) const {
  std::vector<std::string> all{"--devices", "cpu:0"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return SeveralHosts::launch(rank, folder, home, all);
}

}  // namespace remuda::tests
