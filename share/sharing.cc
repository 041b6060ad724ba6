#include "share/sharing.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/text.h"

namespace remuda::share {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

std::string percent(double share) { return fmt::format("{:.4g} %", 100 * share); }

bool lets_one_in(const Device& device) {
  return device.compute_mode.has_value() && device.compute_mode.value() == ComputeMode::exclusive;
}

/// The part of the line after the devices' names.
std::string terms(const Device& device, const Shared& shared, double share) {
  if (shared.how == Sharing::partition) return "with memory and multiprocessors of its own: both limits are hard";
  if (shared.how == Sharing::time_slices)
    return fmt::format("in time slices: the limits of memory and computing are advisory, nothing enforces them ({}){}",
                       shared.why, lets_one_in(device) ? ", and its compute mode lets only one process in" : "");
  return fmt::format("through MPS: at most {} for each process (hard), {} of the multiprocessors (advisory)",
                     human_bytes(static_cast<double>(shared_memory_bytes(device, share))), percent(share));
}

std::string name(const Device& device, const Shared& shared, double share) {
  if (shared.how != Sharing::partition) return fmt::format("{} of {}", percent(share), device.label());
  return device.profile.has_value() ? fmt::format("{} ({})", device.label(), printable(device.profile.value()))
                                    : device.label();
}

}  // namespace

Shared decide_sharing(const Device& device, const ShareWish& wish) {
  if (device.kind == DeviceKind::partition) return {device.id, Sharing::partition, ""};
  if (wish.share >= 1) return {device.id, Sharing::whole, ""};
  const auto slices = [&](std::string why) { return Shared{device.id, Sharing::time_slices, std::move(why)}; };
  if (!wish.no_daemon.empty()) return slices(wish.no_daemon);
  if (shared_memory_bytes(device, wish.share) == 0) return slices("how much memory it has is not known");
  if (wish.devices > 1)
    return slices(
        fmt::format("a process with {} devices cannot use MPS on them; --each gives each process one", wish.devices));
  if (!wish.other_holder.empty())
    return slices(fmt::format("{} shares it already, and MPS serves one user at a time", printable(wish.other_holder)));
  return {device.id, Sharing::daemon, ""};
}

int64_t shared_memory_bytes(const Device& device, double share) {
  const double bytes = std::floor(share * static_cast<double>(std::max<int64_t>(0, device.memory_bytes.value_or(0))));
  return static_cast<int64_t>(bytes) / kMiB * kMiB;
}

Limits limits_of(Sharing how) {
  const bool own = how == Sharing::whole || how == Sharing::partition;
  return {.memory_hard = own || how == Sharing::daemon, .compute_hard = own};
}

std::string sharing_text(const Inventory& inventory, const std::vector<Shared>& devices, double share) {
  std::string text, told;
  for (const Shared& shared : devices) {
    const Device* device = inventory.find(shared.device);
    if (!device || shared.how == Sharing::whole) continue;
    const std::string own = terms(*device, shared, share);
    if (own == told) {  // the same terms as for the device before: adds only its name
      text.insert(text.size() - own.size() - 1, ", " + name(*device, shared, share));
      continue;
    }
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", name(*device, shared, share), own);
    told = own;
  }
  return text;
}

}  // namespace remuda::share
