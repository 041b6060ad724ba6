#include "place/candidate.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "base/quantity.h"
#include "base/text.h"
#include "place/glob.h"
#include "place/health.h"

namespace remuda::place {
namespace {

using State = Candidate::State;

constexpr double kRounding = 1e-9;  // shares are sums of decimal fractions

/// Whether the request includes partitions: it asks for part of a device, or its condition asks about partitions.
bool means_partitions(const Request& request) {
  if (request.share < 1) return true;
  return request.where && (request.where->names("type") || request.where->names("kind") ||
                           request.where->names("profile") || request.where->names("parentUUID"));
}

class Judge {
 public:
  Judge(const Inventory& inventory, const Request& request, std::span<const Held> held)
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

  Candidate judge(const Device& device) const {
    Candidate one{.device = &device, .room = room(device)};
    const auto ill = ailment(inventory_, device);
    one.is_whole = is_meant_whole(device) && !ill && !is_cut(device) && one.room > 1 - kRounding;
    const auto set = [&](State state, std::string reason) {
      one.state = state;
      one.reason = std::move(reason);
      return one;
    };
    if (!is_asked(device)) return set(State::not_asked, "");
    if (ill && is_unknown(device)) return set(State::unwell, *ill);
    if (auto flaw = this->flaw(device); flaw && !(ill && !flaw->unknown.empty())) {
      one.unknown = std::move(flaw->unknown);
      return set(State::unfit, std::move(flaw->reason));
    }
    if (ill) return set(State::unwell, *ill);
    if (std::string why = holders(device, one.room); !why.empty()) return set(State::held, std::move(why));
    if (std::string why = full(device); !why.empty()) return set(State::full, std::move(why));
    return one;
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

  /// The fraction of its GPU that a device is, by memory; nothing where that is not known.
  std::optional<double> part(const Device& device) const {
    const Device* parent = device.parent.empty() ? nullptr : inventory_.find(device.parent);
    if (!parent) return 1;
    if (!device.memory_bytes.has_value() || parent->memory_bytes.value_or(0) <= 0) return std::nullopt;
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
    return is_held ? 0 : part(device).value_or(1);
  }

  /// Why a device is not what is asked for.
  struct Flaw {
    std::string reason;
    std::vector<std::string> unknown;  ///< the readings that are missing to decide; empty: it is certain
  };
  using MaybeFlaw = std::optional<Flaw>;

  /// Returns a certain flaw first; otherwise everything that is not known.
  MaybeFlaw flaw(const Device& device) const {
    MaybeFlaw uncertain;
    for (const auto check : {&Judge::use_flaw, &Judge::model_flaw, &Judge::part_flaw, &Judge::memory_flaw,
                             &Judge::capability_flaw, &Judge::condition_flaw}) {
      MaybeFlaw found = (this->*check)(device);
      if (!found) continue;
      if (found->unknown.empty()) return found;
      if (uncertain)
        std::ranges::move(found->unknown, std::back_inserter(uncertain->unknown));
      else
        uncertain = std::move(found);
    }
    return uncertain;
  }

  MaybeFlaw use_flaw(const Device& device) const {
    if (is_cut(device)) return Flaw{"is cut into partitions; ask for one of them by name, or for a share", {}};
    if (device.compute_mode.has_value() && device.compute_mode.value() == ComputeMode::prohibited)
      return Flaw{"lets no process compute on it (compute mode prohibited)", {}};
    return std::nullopt;
  }

  MaybeFlaw model_flaw(const Device& device) const {
    if (request_.model.empty() || model_matches(request_.model, device.vendor, device.model)) return std::nullopt;
    if (device.model.empty()) return Flaw{"has no recorded model", {"model"}};
    return Flaw{fmt::format("is a {}", printable(device.model)), {}};
  }

  MaybeFlaw part_flaw(const Device& device) const {
    if (device.kind != DeviceKind::partition || request_.share == 1) return std::nullopt;
    const auto part = this->part(device);
    if (!part) return Flaw{"is a part of its GPU whose size is not recorded", {"memory"}};
    if (*part >= request_.share - kRounding) return std::nullopt;
    return Flaw{fmt::format("is only {:.0f} % of its GPU", 100 * *part), {}};
  }

  MaybeFlaw memory_flaw(const Device& device) const {
    if (request_.memory_bytes == 0) return std::nullopt;
    if (!device.memory_bytes.has_value())
      return Flaw{fmt::format("has no recorded memory size ({})", device.memory_bytes.missing().detail), {"memory"}};
    if (device.memory_bytes.value() >= request_.memory_bytes) return std::nullopt;
    return Flaw{fmt::format("has only {}", amount_text(device.memory_bytes.value())), {}};
  }

  MaybeFlaw capability_flaw(const Device& device) const {
    if (!request_.capability) return std::nullopt;
    const Reading<bool> has = request_.capability->of(device);
    if (!has.has_value())
      return Flaw{fmt::format("is not known to do {} ({})", request_.capability->text(), has.missing().detail),
                  {"compute capability"}};
    if (has.value()) return std::nullopt;
    return Flaw{fmt::format("cannot do {}", request_.capability->text()), {}};
  }

  MaybeFlaw condition_flaw(const Device& device) const {
    if (!request_.where) return std::nullopt;
    const Where::Verdict verdict = request_.where->test(inventory_, device);
    if (verdict.holds) return std::nullopt;
    if (verdict.unknown.empty()) return Flaw{"does not meet the condition", {}};
    Flaw flaw{"is not known to meet the condition: ", {}};
    for (const auto& [attribute, why] : verdict.unknown) {
      flaw.reason += fmt::format("{}{} is not known ({})", flaw.unknown.empty() ? "" : ", ", attribute, why);
      flaw.unknown.push_back(attribute);
    }
    return flaw;
  }

  std::string holders(const Device& device, double room) const {
    const bool is_partition = device.kind == DeviceKind::partition;
    if (is_partition ? room > 0 : room >= request_.share - kRounding) return "";
    std::string names, barred;
    for (const std::string& id : {device.id, device.parent}) {
      const auto found = held_.find(id);
      if (id.empty() || found == held_.end()) continue;
      for (const Held* held : found->second) {
        if (held->barred.empty())
          names += (names.empty() ? "" : ", ") + printable(held->holder);
        else
          barred = printable(held->barred);
      }
    }
    if (!barred.empty()) return barred;
    const std::string left = room > kRounding ? fmt::format(", which leaves {:.0f} %", 100 * room) : "";
    return fmt::format("is held by {}{}", names, left);
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

Result<std::vector<Candidate>> find_candidates(const Inventory& inventory, const Request& request,
                                               std::span<const Held> held) {
  Judge judge(inventory, request, held);
  REMUDA_TRY(judge.resolve_names());
  std::vector<Candidate> candidates;
  for (const Device& device : inventory.devices) candidates.push_back(judge.judge(device));
  return candidates;
}

}  // namespace remuda::place
