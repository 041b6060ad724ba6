#include "probe/nvml/process_lists.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "device/fields.h"

namespace remuda::probe::nvml {

std::vector<Stretch> changes(const std::vector<Process>& before, const std::vector<Process>& now) {
  std::vector<Stretch> stretches;
  auto old = before.begin();
  auto next = now.begin();
  while (old != before.end() || next != now.end()) {
    Stretch& stretch = stretches.emplace_back();
    const auto [differs, other] = std::ranges::mismatch(old, before.end(), next, now.end());
    stretch.stay = static_cast<size_t>(differs - old);
    old = differs, next = other;
    while ((old != before.end() || next != now.end()) && !(old != before.end() && next != now.end() && *old == *next)) {
      const bool goes = old != before.end() && (next == now.end() || old->pid <= next->pid);
      const bool comes = next != now.end() && (old == before.end() || next->pid <= old->pid);
      if (goes) ++stretch.go, ++old;
      if (comes) stretch.come.push_back(*next++);
    }
  }
  return stretches;
}

bool change(std::vector<Process>& list, std::vector<Stretch> stretches) {
  const bool stays = stretches.size() == 1 && stretches[0].go == 0 && stretches[0].come.empty();
  if (stays) return stretches[0].stay == list.size();
  std::vector<Process> changed;
  auto old = list.begin();
  for (Stretch& stretch : stretches) {
    const auto left = static_cast<size_t>(list.end() - old);
    if (stretch.stay > left || stretch.go > left - stretch.stay) return false;
    const auto end = old + static_cast<std::ptrdiff_t>(stretch.stay);
    std::move(old, end, std::back_inserter(changed));
    std::ranges::move(stretch.come, std::back_inserter(changed));
    old = end + static_cast<std::ptrdiff_t>(stretch.go);
  }
  if (old != list.end() || changed.size() > fields::kLongestList) return false;
  list = std::move(changed);
  return true;
}

ProcessLists::Changes ProcessLists::take(std::vector<Device>& devices) {
  Changes all;
  lists_.resize(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    Reading<std::vector<Process>>& processes = devices[i].status.processes;
    std::vector<Process> now = processes.value_or({});
    if (processes.has_value()) processes = std::vector<Process>();
    all.push_back(changes(lists_[i], now));
    lists_[i] = std::move(now);
  }
  return all;
}

bool ProcessLists::put(Changes changes, std::vector<Device>& devices) {
  if (changes.size() != devices.size()) return false;
  lists_.resize(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!change(lists_[i], std::move(changes[i]))) return false;
    if (Reading<std::vector<Process>>& processes = devices[i].status.processes; processes.has_value())
      processes = lists_[i];
  }
  return true;
}

}  // namespace remuda::probe::nvml
