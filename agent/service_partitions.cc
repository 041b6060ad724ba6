// Partitions of GPUs, which are made for jobs that wait and taken away for others.
#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "agent/service.h"
#include "place/place.h"

namespace remuda::agent {

/// Where the policy has changed, so may what is to be taken away.
void Service::note_offers() {
  std::vector<std::string> cut;
  if (view_.policy()) cut = cut_by_policy(*view_.policy());
  is_due_ = is_due_ || cut != offered_.gpus();
  offered_ = OfferedPartitions(view_.inventory(), std::move(cut));
}

/// By a reading that has just come, after it has started what it can. What is looked over between two jobs counts as
/// free, as it soon is, and is left alone.
void Service::change_partitions(double now_s) {
  if (!view_.policy() || !partitions_.can_begin()) return;
  std::set<std::string> own = partitions_.own(view_.inventory());
  for (const place::Held& one : handover_.held(pool_.seen())) own.erase(one.device);
  const auto change = plan_partitions(pool_.seen(), offered_, view_.held_without_lease(pool_.seen()), own,
                                      *view_.policy(), wall_s(), partitions_.refused(now_s));
  if (change) partitions_.begin(*change, now_s);
}

/// What was refused could be, if the policy allowed more GPUs to be cut.
Error Service::with_rule_of_partitions(Error refused, const place::Request& request) const {
  std::vector<std::string> more = offered_.gpus();
  std::string labels;
  for (const Device& device : view_.inventory().devices) {
    const bool is_cut = std::ranges::any_of(offered_.offers(), [&](const auto& one) { return one.gpu == device.id; });
    if (is_cut || !device.offers.has_value() || device.offers.value().empty()) continue;
    more.push_back(device.id);
    labels += (labels.empty() ? "" : ", ") + device.label();
  }
  if (labels.empty() || !view_.policy()) return refused;
  const OfferedPartitions wider(view_.inventory(), std::move(more));
  if (!place::fits(place::Layout(wider.machine()), request, {}).value_or(false)) return refused;
  if (place::fits(place::Layout(offered_.machine()), request, {}).value_or(false)) return refused;
  const auto& rule = view_.policy()->mig;
  refused.message += fmt::format("; the agent would make partitions of {} for it, if [sharing] mig allowed that ({})",
                                 labels, rule ? rule->where : "the policy has no such rule");
  return refused;
}

}  // namespace remuda::agent
