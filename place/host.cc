#include "place/host.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <set>

#include "base/quantity.h"
#include "base/text.h"

namespace remuda::place {
namespace {

constexpr size_t kNamed = 3;

std::vector<const Device*> cpu_devices(const Inventory& inventory) {
  std::vector<const Device*> devices;
  for (const Device& device : inventory.devices)
    if (device.kind == DeviceKind::cpu) devices.push_back(&device);
  return devices;
}

void add_cores(const Reading<std::vector<int>>& cores, std::set<int>& all) {
  const std::vector<int> some = cores.value_or({});
  all.insert(some.begin(), some.end());
}

std::string cores_text(size_t count) { return counted(double(count), "core"); }

bool has_ended_by(const Held& held, std::optional<double> at_s) {
  return at_s && held.until_s && *held.until_s <= *at_s;
}

/// ": alice (job 3) holds 16, bob (job 4) holds 8"; those that hold nothing are left out.
std::string holders_text(std::span<const Held> held, const std::function<std::string(const Held&)>& amount) {
  std::string text;
  size_t named = 0;
  for (const Held& one : held) {
    const std::string has = amount(one);
    if (has.empty() || ++named > kNamed) continue;
    text += fmt::format("{} {} holds {}", text.empty() ? ":" : ",", printable(one.holder), has);
  }
  return named > kNamed ? text + fmt::format(", and {} more", named - kNamed) : text;
}

std::string held_amount(const Held& held) {
  return host_text({.cores = static_cast<int>(held.cores.size()), .host_memory_bytes = held.host_memory_bytes});
}

Refusal never_by(std::string sentence) { return {.never = true, .sentence = std::move(sentence)}; }

}  // namespace

Reading<std::vector<int>> host_cores(const Inventory& inventory) {
  std::set<int> all;
  for (const Device* device : cpu_devices(inventory)) add_cores(device->cores, all);
  if (all.empty())
    for (const NumaNode& node : inventory.numa) add_cores(node.cores, all);
  if (all.empty()) return Missing{MissingReason::unsupported, "the cores of the host are not recorded"};
  return std::vector<int>(all.begin(), all.end());
}

Reading<int64_t> host_memory(const Inventory& inventory) {
  int64_t devices = 0, nodes = 0;
  for (const Device* device : cpu_devices(inventory)) devices += device->memory_bytes.value_or(0);
  for (const NumaNode& node : inventory.numa) nodes += node.memory_bytes.value_or(0);
  if (devices + nodes == 0) return Missing{MissingReason::unsupported, "the memory of the host is not recorded"};
  return devices > 0 ? devices : nodes;
}

std::vector<Held> with_held_cores(const Inventory& inventory, std::span<const Held> held) {
  std::vector<Held> all(held.begin(), held.end());
  for (const Held& one : held) {
    if (one.cores.empty()) continue;
    for (const Device* device : cpu_devices(inventory)) {
      const std::vector<int> cores = device->cores.value_or({});
      const auto is_held = [&](int core) { return std::ranges::find(one.cores, core) != one.cores.end(); };
      const auto count = std::ranges::count_if(cores, is_held);
      if (count == 0) continue;
      Held part = one;
      part.device = device->id;
      part.share = static_cast<double>(count) / static_cast<double>(cores.size());
      part.cores.clear();
      part.host_memory_bytes = 0;
      all.push_back(std::move(part));
    }
  }
  return all;
}

Held host_part(std::vector<int> cores, const Request& request, std::string holder) {
  return {.device = "",
          .share = 0,
          .holder = std::move(holder),
          .since_s = {},
          .until_s = {},
          .barred = "",
          .cores = std::move(cores),
          .host_memory_bytes = request.host_memory_bytes};
}

HostRoom::HostRoom(const Inventory& inventory, std::span<const Held> held)
    : inventory_(inventory), held_(held), cores_(host_cores(inventory)), bytes_(host_memory(inventory)) {}

/// At that time, when all that ends before it has ended; now without one.
std::vector<int> HostRoom::free_cores(std::optional<double> at_s) const {
  std::set<int> taken;
  for (const Held& held : held_) {
    if (has_ended_by(held, at_s)) continue;
    taken.insert(held.cores.begin(), held.cores.end());
    const Device* device = held.barred.empty() ? inventory_.find(held.device) : nullptr;
    if (device && device->kind == DeviceKind::cpu) add_cores(device->cores, taken);
  }
  std::vector<int> free;
  std::ranges::set_difference(cores_.value_or({}), taken, std::back_inserter(free));
  return free;
}

int64_t HostRoom::free_bytes(std::optional<double> at_s) const {
  int64_t bytes = bytes_.value_or(0);
  for (const Held& held : held_)
    if (!has_ended_by(held, at_s)) bytes -= held.host_memory_bytes;
  return std::max<int64_t>(bytes, 0);
}

bool HostRoom::fits(const Request& request) const {
  return (request.cores == 0 || free_cores().size() >= static_cast<size_t>(request.cores)) &&
         (request.host_memory_bytes == 0 || free_bytes() >= request.host_memory_bytes);
}

std::optional<Refusal> HostRoom::never(const Request& request) const {
  const size_t cores = static_cast<size_t>(request.cores);
  if (cores > 0 && !cores_.has_value())
    return never_by(fmt::format("{}, so none can be kept for a job", cores_.missing().detail));
  if (cores > 0 && cores > cores_.value().size())
    return never_by(fmt::format("the host has {}; {} {} wanted", cores_text(cores_.value().size()), cores,
                                cores == 1 ? "is" : "are"));
  const int64_t bytes = request.host_memory_bytes;
  if (bytes > 0 && !bytes_.has_value())
    return never_by(fmt::format("{}, so none can be kept for a job", bytes_.missing().detail));
  if (bytes > 0 && bytes > bytes_.value())
    return never_by(
        fmt::format("the host has {} of memory; {} are wanted", amount_text(bytes_.value()), amount_text(bytes)));
  return std::nullopt;
}

std::optional<Refusal> HostRoom::not_now(const Request& request) const {
  if (fits(request)) return std::nullopt;
  Refusal refusal;
  const std::vector<int> free = free_cores();
  if (free.size() < static_cast<size_t>(request.cores)) {
    const auto amount = [](const Held& held) {
      return held.cores.empty() ? std::string() : std::to_string(held.cores.size());
    };
    refusal.sentence =
        fmt::format("{} of the host {} wanted, and {} of {} {} free{}", cores_text(request.cores),
                    request.cores == 1 ? "is" : "are", free.empty() ? "none" : std::to_string(free.size()),
                    cores_.value().size(), free.size() <= 1 ? "is" : "are", holders_text(held_, amount));
  } else {
    const auto amount = [](const Held& held) {
      return held.host_memory_bytes == 0 ? std::string() : amount_text(held.host_memory_bytes);
    };
    refusal.sentence = fmt::format("{} of the host's memory are wanted, and {} of {} are free{}",
                                   amount_text(request.host_memory_bytes), amount_text(free_bytes()),
                                   amount_text(bytes_.value()), holders_text(held_, amount));
  }
  for (const Held& held : held_)
    if (const std::string amount = held_amount(held); !amount.empty())
      refusal.blockers.push_back({amount, printable(held.holder), 1, held.since_s, held.until_s});
  refusal.earliest_s = earliest(request);
  return refusal;
}

std::string HostRoom::shortage(const Request& request) const {
  const size_t free = free_cores().size();
  if (free < static_cast<size_t>(request.cores))
    return fmt::format("{} wanted, {} free", cores_text(request.cores), free);
  return fmt::format("{} of the host wanted, {} free", amount_text(request.host_memory_bytes),
                     amount_text(free_bytes()));
}

std::optional<double> HostRoom::earliest(const Request& request) const {
  std::vector<double> ends;
  for (const Held& held : held_)
    if (held.until_s) ends.push_back(*held.until_s);
  std::ranges::sort(ends);
  const auto enough = [&](double at_s) {
    return free_cores(at_s).size() >= static_cast<size_t>(request.cores) &&
           free_bytes(at_s) >= request.host_memory_bytes;
  };
  const auto first = std::ranges::partition_point(ends, [&](double at_s) { return !enough(at_s); });
  return first == ends.end() ? std::nullopt : std::optional(*first);
}

std::vector<int> HostRoom::choose_cores(const Request& request, const std::vector<std::string>& devices) const {
  std::set<int> near;
  for (const std::string& id : devices)
    if (const Device* device = inventory_.find(id)) add_cores(device->cores, near);
  std::vector<int> chosen = free_cores();
  std::ranges::stable_partition(chosen, [&](int core) { return near.contains(core); });
  chosen.resize(std::min(chosen.size(), static_cast<size_t>(request.cores)));
  std::ranges::sort(chosen);
  return chosen;
}

std::string host_text(const Request& request) {
  std::string text = request.cores > 0 ? cores_text(static_cast<size_t>(request.cores)) : "";
  if (request.host_memory_bytes > 0)
    text += fmt::format("{}{}", text.empty() ? "" : " and ", amount_text(request.host_memory_bytes));
  return text.empty() ? "" : text + " of the host";
}

}  // namespace remuda::place
