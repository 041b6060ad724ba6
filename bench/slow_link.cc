#include "bench/slow_link.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>
#include <utility>

#include "base/file.h"

namespace remuda::bench {
namespace {

Result<void> shell(const std::string& command) {
  if (std::system((command + " 2>/dev/null").c_str()) == 0) return {};
  return failed(fmt::format("'{}' failed", command));
}

}  // namespace

Result<SlowLink> SlowLink::create(double bits_per_s) {
  if (::geteuid() != 0) return failed("network namespaces need root");
  SlowLink link;
  link.id_ = ::getpid();
  for (const int host : {0, 1}) REMUDA_TRY(shell(fmt::format("ip netns add {}", link.name(host))));
  REMUDA_TRY(
      shell(fmt::format("ip -n {} link add cable type veth peer name cable netns {}", link.name(0), link.name(1))));
  for (const int host : {0, 1}) REMUDA_TRY(link.plug_in(host, bits_per_s));
  return link;
}

// A burst of what the link carries in 2 ms: the smallest with which tbf reaches its rate.
Result<void> SlowLink::plug_in(int host, double bits_per_s) const {
  REMUDA_TRY(shell(fmt::format("ip -n {} address add {}/24 dev cable", name(host), address(host))));
  REMUDA_TRY(shell(fmt::format("ip -n {} link set cable up", name(host))));
  return shell(fmt::format("tc -n {} qdisc add dev cable root tbf rate {:.0f}bit burst {:.0f} latency 50ms", name(host),
                           bits_per_s, bits_per_s / 8 * 0.002));
}

SlowLink::SlowLink(SlowLink&& other) noexcept : id_(std::exchange(other.id_, 0)) {}

SlowLink::~SlowLink() {
  if (id_ == 0) return;
  for (const int host : {0, 1}) static_cast<void>(shell(fmt::format("ip netns del {}", name(host))));
}

std::string SlowLink::name(int host) const { return fmt::format("remuda-bench-{}-{}", id_, host); }
std::string SlowLink::address(int host) const { return fmt::format("10.98.0.{}", host + 1); }

Result<void> SlowLink::enter(int host) const {
  const Fd ns(::open(fmt::format("/run/netns/{}", name(host)).c_str(), O_RDONLY | O_CLOEXEC));
  if (!ns || ::setns(ns.get(), CLONE_NEWNET) != 0)
    return failed(fmt::format("cannot enter {}: {}", name(host), errno_text(errno)));
  return {};
}

}  // namespace remuda::bench
