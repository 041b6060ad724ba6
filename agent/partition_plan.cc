#include "agent/partition_plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "place/place.h"
#include "pool/admission.h"
#include "pool/transitions.h"

namespace remuda::agent {
namespace {

/// How many jobs are looked at in a round, and for how many of those that could have a partition it is tried.
constexpr int kMostLooked = 256, kMostTried = 32;

class Planner {
 public:
  Planner(const pool::PoolState& state, const OfferedPartitions& offered, const std::vector<place::Held>& held,
          const policy::Policy& policy, double now_s, std::set<std::string> refusing_gpus)
      : state_(state),
        offered_(offered),
        layout_(offered.machine()),
        policy_(policy),
        now_s_(now_s),
        refusing_gpus_(std::move(refusing_gpus)),
        held_(held) {
    std::ranges::move(pool::held_by_leases(state), std::back_inserter(held_));
    std::ranges::move(pool::held_by_drains(state), std::back_inserter(held_));
  }

  void find_idle(const std::set<std::string>& own) {
    const auto is_held = [&](const Device& device) {
      return std::ranges::find(held_, device.id, &place::Held::device) != held_.end();
    };
    for (const Device& device : offered_.machine().devices) {
      const auto& processes = device.status.processes;
      if (own.contains(device.id) && !is_held(device) && processes.has_value() && processes.value().empty())
        idle_.push_back(&device);
    }
  }

  std::optional<PartitionChange> remove_if(const auto& is_unwanted) const {
    const auto found = std::ranges::find_if(idle_, [&](const Device* device) { return is_unwanted(device->parent); });
    if (found == idle_.end()) return std::nullopt;
    return PartitionChange{PartitionChange::What::remove, (*found)->parent, "", (*found)->uuid.value_or("")};
  }

  std::optional<PartitionChange> plan() const {
    int looked = 0, tried = 0;
    for (const pool::Job* job : pool::waiting_jobs(state_, policy_, now_s_)) {
      if (is_array(*job) || !pool::waits_first(state_, *job, policy_, now_s_).empty()) continue;
      if (++looked > kMostLooked) break;
      if (!may_have_partition(job->request)) continue;
      if (++tried > kMostTried) break;
      if (auto change = plan_for(*job)) return change;
      if (now_s_ - std::max(job->submitted_s, job->begin_s) >= policy_.patience_s) break;
    }
    return std::nullopt;
  }

 private:
  using Offer = OfferedPartitions::Offer;

  /// At any time. A job that may not waits for other devices, and is in nobody's way here.
  bool may_have_partition(place::Request request) const {
    request.count = 1;
    request.link = place::LinkNeed::any;
    std::vector<place::Held> others;
    for (const Device& device : offered_.machine().devices)
      if (device.kind != DeviceKind::partition && !device.partitioned.value_or(false))
        others.push_back({.device = device.id, .barred = "is no partition"});
    return place::fits(layout_, request, others).value_or(false);
  }

  bool may_make(const Offer& offer) const { return !refusing_gpus_.contains(offer.gpu); }

  std::optional<PartitionChange> plan_for(const pool::Job& job) const {
    if (first_offer(job, [](const Offer&) { return false; }, {}).is_possible) return std::nullopt;  // it needs none
    const auto made = first_offer(job, [&](const Offer& offer) { return offer.is_free && may_make(offer); }, {});
    if (made.offer) return PartitionChange{PartitionChange::What::make, made.offer->gpu, made.offer->profile, ""};
    const auto is_idle_on = [&](const std::string& gpu) {
      return std::ranges::any_of(idle_, [&](const Device* device) { return device->parent == gpu; });
    };
    std::vector<place::Held> gone;
    for (const Device* device : idle_) gone.push_back({.device = device->id, .barred = "goes"});
    const auto can_come = [&](const Offer& offer) {
      return (offer.is_free || is_idle_on(offer.gpu)) && may_make(offer);
    };
    const auto comes = first_offer(job, can_come, gone);
    if (!comes.offer) return std::nullopt;
    return remove_if([&](const std::string& gpu) { return gpu == comes.offer->gpu; });
  }

  struct Found {
    bool is_possible = false;
    const Offer* offer = nullptr;  ///< the first that the job would get
  };
  Found first_offer(const pool::Job& job, const auto& can_be, std::vector<place::Held> held) const {
    std::ranges::copy(held_, std::back_inserter(held));
    std::ranges::move(pool::barred_devices(job, offered_.machine(), policy_, now_s_), std::back_inserter(held));
    for (const Offer& offer : offered_.offers())
      if (!can_be(offer)) held.push_back({.device = offer.device, .barred = "is not there"});
    const auto answer = place::place(layout_, job.request, held);
    const auto* placement = answer ? std::get_if<place::Placement>(&*answer) : nullptr;
    if (!placement) return {};
    for (const std::string& device : placement->devices)
      if (const auto offer = std::ranges::find(offered_.offers(), device, &Offer::device);
          offer != offered_.offers().end())
        return {true, &*offer};
    return {true, nullptr};
  }

  const pool::PoolState& state_;
  const OfferedPartitions& offered_;
  const place::Layout layout_;
  const policy::Policy& policy_;
  const double now_s_;
  const std::set<std::string> refusing_gpus_;
  std::vector<place::Held> held_;
  std::vector<const Device*> idle_;
};

}  // namespace

OfferedPartitions::OfferedPartitions(Inventory machine, std::vector<std::string> gpus)
    : machine_(std::move(machine)), gpus_(std::move(gpus)) {
  std::vector<Device> added;
  int index = static_cast<int>(std::ranges::count(machine_.devices, DeviceKind::partition, &Device::kind));
  for (const std::string& name : gpus_) {
    const auto gpu = machine_.resolve(name);
    if (!gpu || (*gpu)->kind != DeviceKind::gpu || !(*gpu)->partitioned.value_or(false) || !(*gpu)->offers.has_value())
      continue;
    for (const PartitionOffer& offer : (*gpu)->offers.value())
      for (int i = 0; i < offer.most; ++i) {
        Device device{
            .kind = DeviceKind::partition, .index = index++, .vendor = (*gpu)->vendor, .model = (*gpu)->model};
        device.id = fmt::format("offer {} {} {}", (*gpu)->id, offer.profile, i);
        device.parent = (*gpu)->id;
        device.profile = offer.profile;
        device.architecture = (*gpu)->architecture;
        device.compute_capability = (*gpu)->compute_capability;
        device.cores = (*gpu)->cores;
        device.numa_node = (*gpu)->numa_node;
        device.memory_bytes = offer.memory_bytes;
        device.multiprocessors = offer.multiprocessors;
        offers_.push_back({device.id, (*gpu)->id, offer.profile, i < offer.free});
        added.push_back(std::move(device));
      }
  }
  std::ranges::move(added, std::back_inserter(machine_.devices));
}

std::vector<place::Held> OfferedPartitions::held() const {
  std::vector<place::Held> held;
  for (const Offer& offer : offers_)
    held.push_back({.device = offer.device,
                    .barred = fmt::format("would be a {} of {}, and is not there yet", offer.profile,
                                          machine_.find(offer.gpu)->label())});
  return held;
}

std::optional<PartitionChange> plan_partitions(const pool::PoolState& state, const OfferedPartitions& offered,
                                               const std::vector<place::Held>& held, const std::set<std::string>& own,
                                               const policy::Policy& policy, double now_s,
                                               const std::vector<PartitionChange>& refused) {
  std::set<std::string> refusing_gpus, removable = own;
  for (const PartitionChange& one : refused) {
    using What = PartitionChange::What;
    if (one.what != What::remove) refusing_gpus.insert(one.gpu);
    if (one.what == What::remove) removable.erase(one.partition);
    if (one.what == What::settle)
      for (const Device& device : offered.machine().devices)
        if (device.parent == one.gpu) removable.erase(device.id);
  }
  Planner planner(state, offered, held, policy, now_s, std::move(refusing_gpus));
  planner.find_idle(removable);
  std::set<std::string> cut;
  for (const std::string& name : offered.gpus())
    if (const auto gpu = offered.machine().resolve(name)) cut.insert((*gpu)->id);
  if (auto change = planner.remove_if([&](const std::string& gpu) { return !cut.contains(gpu); })) return change;
  return offered.offers().empty() ? std::nullopt : planner.plan();
}

std::vector<std::string> cut_by_policy(const policy::Policy& policy) {
  return policy.mig ? policy.mig->value : std::vector<std::string>();
}

}  // namespace remuda::agent
