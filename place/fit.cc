#include "place/fit.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "base/text.h"
#include "place/glob.h"
#include "place/health.h"
#include "place/quantity.h"

namespace remuda::place {
namespace {

using State = Fit::State;

constexpr double kRounding = 1e-9;  // shares are sums of decimal fractions

class Fitter {
 public:
  Fitter(const Inventory& inventory, const Request& request, std::span<const Held> held)
      : inventory_(inventory), request_(request) {
    for (const Held& one : held) held_[one.device].push_back(&one);
  }

  Result<void> resolve_names() {
    for (const std::string& name : request_.devices) {
      REMUDA_ASSIGN(const Device* device, inventory_.resolve(name));
      if (!named_.insert(device).second) return usage_error(fmt::format("{} is named twice", device->label()));
    }
    return {};
  }

  Fit fit(const Device& device) const {
    Fit fit;
    fit.room = room(device);
    const auto ill = ailment(inventory_, device);
    fit.whole = is_meant_whole(device) && !ill && !is_cut(device) && fit.room > 1 - kRounding;
    const auto set = [&](State state, std::string reason) {
      fit.state = state;
      fit.reason = std::move(reason);
      return fit;
    };
    if (!is_asked(device)) return set(State::not_asked, "");
    if (ill && is_unknown(device)) return set(State::unwell, *ill);
    if (std::string why = unfit(device); !why.empty()) return set(State::unfit, std::move(why));
    if (ill) return set(State::unwell, *ill);
    if (std::string why = taken(device, fit.room); !why.empty()) return set(State::taken, std::move(why));
    if (std::string why = full(device); !why.empty()) return set(State::full, std::move(why));
    return fit;
  }

 private:
  static bool is_cut(const Device& device) {
    return device.kind == DeviceKind::gpu && device.partitioned.value_or(false);
  }

  bool is_meant_whole(const Device& device) const {
    return device.kind == DeviceKind::gpu || (device.kind == DeviceKind::cpu && request_.cpu);
  }

  bool is_asked(const Device& device) const {
    if (!named_.empty()) return named_.contains(&device);
    return is_meant_whole(device) || (device.kind == DeviceKind::partition && means_partitions(request_));
  }

  /// What part of its GPU a device is, by memory; 1 of a whole one and where that is not known.
  double part(const Device& device) const {
    const Device* parent = device.parent.empty() ? nullptr : inventory_.find(device.parent);
    if (!parent || !device.memory_bytes.has_value() || parent->memory_bytes.value_or(0) <= 0) return 1;
    return std::min(
        1.0, static_cast<double>(device.memory_bytes.value()) / static_cast<double>(parent->memory_bytes.value()));
  }

  double held_share(const std::string& id) const {
    const auto found = held_.find(id);
    double share = 0;
    if (found != held_.end())
      for (const Held* held : found->second) share += held->share;
    return share;
  }

  double room(const Device& device) const {
    if (device.kind != DeviceKind::partition) return std::max(0.0, 1 - held_share(device.id));
    const bool is_held = held_share(device.id) > 0 || held_share(device.parent) > 0;
    return is_held ? 0 : part(device);
  }

  std::string unfit(const Device& device) const {
    if (is_cut(device)) return "is cut into partitions; ask for one of them by name, or for a share";
    if (device.compute_mode.has_value() && device.compute_mode.value() == ComputeMode::prohibited)
      return "lets no process compute on it (compute mode prohibited)";
    if (!request_.model.empty() && !model_matches(request_.model, device.vendor, device.model))
      return device.model.empty() ? "has no recorded model" : fmt::format("is a {}", printable(device.model));
    if (std::string why = too_small(device); !why.empty()) return why;
    if (request_.capability) {
      const Reading<bool> has = request_.capability->of(device);
      if (!has.has_value()) return fmt::format("may not do {} ({})", request_.capability->text(), has.missing().detail);
      if (!has.value()) return fmt::format("cannot do {}", request_.capability->text());
    }
    return outside(device);
  }

  std::string too_small(const Device& device) const {
    if (device.kind == DeviceKind::partition && request_.share < 1 && part(device) < request_.share - kRounding)
      return fmt::format("is only {:.0f} % of its GPU", 100 * part(device));
    if (request_.memory_bytes == 0) return "";
    if (!device.memory_bytes.has_value())
      return fmt::format("tells no memory size ({})", device.memory_bytes.missing().detail);
    if (device.memory_bytes.value() >= request_.memory_bytes) return "";
    return fmt::format("has only {}", amount_text(device.memory_bytes.value()));
  }

  std::string outside(const Device& device) const {
    if (!request_.where) return "";
    const Where::Verdict verdict = request_.where->test(inventory_, device);
    if (verdict.holds) return "";
    std::string why = "does not meet the condition";
    for (size_t i = 0; i < verdict.unknown.size(); ++i) why += (i == 0 ? ": " : ", ") + verdict.unknown[i];
    return why;
  }

  std::string taken(const Device& device, double room) const {
    const bool is_partition = device.kind == DeviceKind::partition;
    if (is_partition ? room > 0 : room >= request_.share - kRounding) return "";
    std::string holders;
    for (const std::string& id : {device.id, device.parent}) {
      const auto found = held_.find(id);
      if (id.empty() || found == held_.end()) continue;
      for (const Held* held : found->second) holders += (holders.empty() ? "" : ", ") + printable(held->holder);
    }
    const std::string left = room > kRounding ? fmt::format(", which leaves {:.0f} %", 100 * room) : "";
    return fmt::format("is held by {}{}", holders, left);
  }

  std::string full(const Device& device) const {
    if (request_.memory_bytes == 0 || !device.status.memory_used_bytes.has_value()) return "";
    const int64_t free = device.memory_bytes.value() - device.status.memory_used_bytes.value() -
                         device.status.memory_reserved_bytes.value_or(0);
    if (free >= request_.memory_bytes) return "";
    return fmt::format("has only {} of {} free", amount_text(std::max<int64_t>(free, 0)),
                       amount_text(device.memory_bytes.value()));
  }

  const Inventory& inventory_;
  const Request& request_;
  std::map<std::string, std::vector<const Held*>> held_;
  std::set<const Device*> named_;
};

}  // namespace

bool means_partitions(const Request& request) {
  if (request.share < 1) return true;
  return request.where && (request.where->names("type") || request.where->names("kind") ||
                           request.where->names("profile") || request.where->names("parentUUID"));
}

Result<std::vector<Fit>> fit_all(const Inventory& inventory, const Request& request, std::span<const Held> held) {
  Fitter fitter(inventory, request, held);
  REMUDA_TRY(fitter.resolve_names());
  std::vector<Fit> fits;
  for (const Device& device : inventory.devices) fits.push_back(fitter.fit(device));
  return fits;
}

}  // namespace remuda::place
