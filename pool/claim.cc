#include "pool/claim.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/env.h"
#include "process/abstract_socket.h"
#include "process/process_id.h"
#include "process/user_name.h"

namespace remuda::pool {
namespace {

// The name of a claim: PREFIX/POOL/NAMESPACE.PID.FREE/DEVICE, of the process that made it. With a pool of 16 digits
// and a device of at most 40 characters it fits into a name of 107.

std::string hash_text(const std::string& text) { return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size())); }

std::string claim_prefix() {
  const std::string space = env::get(env::claims).value_or("");
  return space.empty() ? "remuda-claim/" : fmt::format("remuda-claim-{}/", hash_text(space).substr(0, 8));
}

/// A pool's part of the name: the same for every path that leads to the pool.
std::string pool_word(const std::string& folder) {
  struct stat info{};
  if (::stat(folder.c_str(), &info) != 0) return hash_text(folder);
  return hash_text(fmt::format("{}:{}", info.st_dev, info.st_ino));
}

std::string device_word(const std::string& id) {
  constexpr size_t kLongest = 40;  // GPU- or MIG- and a UUID
  const bool is_plain =
      std::ranges::all_of(id, [](unsigned char c) { return std::isalnum(c) || c == '-' || c == ':' || c == '.'; });
  return is_plain && !id.empty() && id.size() <= kLongest ? id : hash_text(id);
}

bool is_claimed_at_all(const std::string& id) { return !id.starts_with("cpu:"); }

struct OtherClaim {
  std::string pool, process, device;
  std::optional<int> user;
};

std::vector<OtherClaim> claims_of_others(const std::string& pool) {
  const std::string prefix = claim_prefix();
  std::vector<OtherClaim> others;
  const auto names = process::held_names(prefix);
  if (!names) return others;
  for (const process::HeldName& held : *names) {
    const std::string rest = held.name.substr(prefix.size());
    const size_t first = rest.find('/'), second = rest.find('/', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    OtherClaim claim{rest.substr(0, first), rest.substr(first + 1, second - first - 1), rest.substr(second + 1),
                     held.user};
    if (claim.pool != pool) others.push_back(std::move(claim));
  }
  return others;
}

/// "alice (a job of another pool, process 4711)". The process says its number itself, the kernel says its user.
std::string holder_text(const OtherClaim& claim) {
  const size_t first = claim.process.find('.') + 1;
  const std::string pid = claim.process.substr(first, claim.process.find('.', first) - first);
  const bool is_number = !pid.empty() && std::ranges::all_of(pid, [](unsigned char c) { return std::isdigit(c); });
  return fmt::format("{} (a job of another pool{})",
                     claim.user ? process::user_name(*claim.user) : "a user who is not known",
                     is_number ? ", process " + pid : "");
}

struct Conflict {
  std::string device;
  OtherClaim other;
};

std::optional<Conflict> find_conflict(const std::string& pool, const std::vector<std::string>& devices) {
  for (OtherClaim& other : claims_of_others(pool))
    for (const std::string& device : devices)
      if (is_claimed_at_all(device) && other.device == device_word(device)) return Conflict{device, std::move(other)};
  return std::nullopt;
}

/// Another user may hold the name that this process would use: a name has a free part, which nobody can guess.
Result<Fd> hold_claim(const std::string& pool, const std::string& device) {
  constexpr int kTries = 8;
  const process::ProcessId self = process::own_process_id();
  for (int tries = 0;; ++tries) {
    uint32_t free_part = 0;
    if (::getrandom(&free_part, sizeof free_part, GRND_NONBLOCK) != sizeof free_part) free_part += uint32_t(tries);
    auto socket = process::hold_name(fmt::format("{}{}/{}.{}.{:08x}/{}", claim_prefix(), pool, self.pid_namespace,
                                                 self.pid, free_part, device_word(device)));
    if (socket || tries == kTries) return socket;
  }
}

Fd above_those_of_shells(Fd fd) {
  constexpr int kLowest = 100;
  Fd above(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kLowest));
  return above ? std::move(above) : std::move(fd);
}

}  // namespace

tl::expected<Claim, NotClaimed> Claim::take(const std::string& folder, const std::vector<std::string>& devices,
                                            OthersClaims others) {
  constexpr double kOthersGiveWay_s = 1, kPause_s = 0.02;
  const std::string pool = pool_word(folder);
  Claim claim;
  for (const std::string& device : devices) {
    if (!is_claimed_at_all(device)) continue;
    auto socket = hold_claim(pool, device);
    if (!socket) return tl::unexpected(NotClaimed{"", socket.error().message});
    claim.sockets_.push_back(above_those_of_shells(std::move(*socket)));
  }
  if (others == OthersClaims::mean_nothing) return claim;
  // Where two pools try for a device at the same moment, both have claimed it before they check for others: the one
  // with the greater pool word releases its claim at once, and the other waits for that.
  for (const double end_s = monotonic_s() + kOthersGiveWay_s;;) {
    const auto conflict = find_conflict(pool, devices);
    if (!conflict) return claim;
    if (pool > conflict->other.pool || monotonic_s() >= end_s)
      return tl::unexpected(NotClaimed{conflict->device, holder_text(conflict->other)});
    ::usleep(static_cast<useconds_t>(kPause_s * 1e6));
  }
}

std::vector<int> Claim::fds() const {
  std::vector<int> fds;
  for (const Fd& socket : sockets_) fds.push_back(socket.get());
  return fds;
}

std::vector<place::Held> claimed_by_others(const std::string& folder, const Inventory& inventory) {
  const std::vector<OtherClaim> others = claims_of_others(pool_word(folder));
  std::vector<place::Held> held;
  for (const Device& device : inventory.devices) {
    const auto claimed = std::ranges::find(others, device_word(device.id), &OtherClaim::device);
    if (is_claimed_at_all(device.id) && claimed != others.end())
      held.push_back({.device = device.id, .share = 1, .holder = holder_text(*claimed)});
  }
  return held;
}

}  // namespace remuda::pool
