#include "recorded/smi_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <span>

#include "recorded/text.h"

namespace remuda::recorded {
namespace {

constexpr size_t kLongestValue = 200;
constexpr size_t kLongestReason = 60;

const Element* first_of(const Element& element, Places places) {
  for (const char* place : places)
    if (const Element* found = element.child(place)) return found;
  return nullptr;
}

/// Why a text is no value; nothing when it may be one.
std::optional<Missing> missing_in(std::string_view text) {
  struct Phrase {
    const char* words;
    MissingReason reason;
  };
  constexpr std::array kPhrases{Phrase{"is lost", MissingReason::lost},
                                Phrase{"requires reset", MissingReason::lost},
                                Phrase{"Unknown Error", MissingReason::lost},
                                Phrase{"ERR!", MissingReason::lost},
                                Phrase{"Permission", MissingReason::denied},
                                Phrase{"N/A", MissingReason::unsupported},
                                Phrase{"Not Supported", MissingReason::unsupported},
                                Phrase{"Not Found", MissingReason::unsupported},
                                Phrase{"deprecated", MissingReason::unsupported}};
  for (const auto& [words, reason] : kPhrases)
    if (text.find(words) != std::string_view::npos)
      return Missing{reason, fmt::format("nvidia-smi says {}", brief(text, kLongestReason))};
  if (text.empty()) return Missing{MissingReason::unsupported, "nvidia-smi leaves it blank"};
  return std::nullopt;
}

Missing no_value(std::string_view text) {
  if (auto missing = missing_in(text)) return *missing;
  return {MissingReason::unsupported, fmt::format("nvidia-smi says {}", brief(text, kLongestReason))};
}

struct Quantity {
  double number = 0;
  std::string_view unit;
};
std::optional<Quantity> quantity(std::string_view text) {
  Quantity quantity;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quantity.number);
  if (error != std::errc{} || !std::isfinite(quantity.number)) return std::nullopt;
  quantity.unit = trim(text.substr(static_cast<size_t>(end - text.data())));
  return quantity;
}

/// The reading `convert` makes of a quantity; missing where it makes none.
template <typename T, typename Convert>
Reading<T> read(const Element& element, Places places, Convert convert) {
  const Element* found = first_of(element, places);
  if (!found) return {};
  const std::string_view text = trim(found->text);
  const auto known = quantity(text);
  const std::optional<T> value = known ? convert(*known) : std::nullopt;
  return value ? Reading<T>(*value) : Reading<T>(no_value(text));
}

std::string process_type(std::string_view letters) {
  if (letters.find('M') != std::string_view::npos) return "shared";
  if (letters.find('C') != std::string_view::npos) return "compute";
  return letters.find('G') != std::string_view::npos ? "graphics" : "";
}

std::optional<Process> process_of(const Element& info) {
  const auto pid = whole_of(info, {"pid"});
  if (!pid.has_value()) return std::nullopt;
  Process process;
  process.pid = pid.value();
  process.type = process_type(text_of(info, {"type"}).value_or(""));
  process.command = text_of(info, {"process_name"});
  process.memory_bytes = bytes_of(info, {"used_memory"});
  return process;
}

/// nvidia-smi lists a process that computes and draws once for each. It is one that computes.
void add_process(Process process, std::vector<Process>& processes) {
  constexpr std::array<std::string_view, 4> kTypes{"", "graphics", "compute", "shared"};
  const auto same = std::ranges::find(processes, process.pid, &Process::pid);
  if (same == processes.end()) return processes.push_back(std::move(process));
  if (std::ranges::find(kTypes, process.type) > std::ranges::find(kTypes, same->type)) same->type = process.type;
  if (!same->command.has_value()) same->command = process.command;
  if (process.memory_bytes.value_or(-1) > same->memory_bytes.value_or(-1)) same->memory_bytes = process.memory_bytes;
}

std::span<const Element> first_few(std::span<const Element> elements, size_t most) {
  return elements.first(std::min(elements.size(), most));
}

/// Whether `gpu` lists the partition a process says it runs in.
bool is_listed(const Element& gpu, const Reading<int>& instance, const Reading<int>& compute) {
  const Element* list = gpu.child("mig_devices");
  return list && instance.has_value() && compute.has_value() &&
         std::ranges::any_of(first_few(list->children, kMostPartitions), [&](const Element& part) {
           return whole_of(part, {"gpu_instance_id"}) == instance && whole_of(part, {"compute_instance_id"}) == compute;
         });
}

}  // namespace

Reading<std::string> text_of(const Element& element, Places places) {
  const Element* found = first_of(element, places);
  if (!found) return {};
  const std::string_view text = trim(found->text);
  if (auto missing = missing_in(text)) return *missing;
  return brief(text, kLongestValue);
}

Reading<double> number_of(const Element& element, Places places) {
  return read<double>(element, places, [](const Quantity& q) { return std::optional(q.number); });
}

Reading<int> whole_of(const Element& element, Places places) {
  return read<int>(element, places, [](const Quantity& q) {
    const bool whole = q.number >= 0 && q.number <= 1e9 && q.number == std::floor(q.number);
    return whole ? std::optional(static_cast<int>(q.number)) : std::nullopt;
  });
}

Reading<double> share_of(const Element& element, Places places) {
  return read<double>(element, places, [](const Quantity& q) {
    return q.number >= 0 && q.number <= 100 ? std::optional(q.number / 100) : std::nullopt;
  });
}

Reading<int64_t> bytes_of(const Element& element, Places places) {
  return read<int64_t>(element, places, [](const Quantity& q) -> std::optional<int64_t> {
    constexpr std::array<std::pair<std::string_view, double>, 4> kUnits{
        {{"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}}};
    constexpr double kMost = 1e15;
    for (const auto& [unit, bytes] : kUnits)
      if (q.unit == unit && q.number >= 0 && q.number * bytes <= kMost)
        return static_cast<int64_t>(std::llround(q.number * bytes));
    return std::nullopt;
  });
}

Reading<bool> flag_of(const Element& element, Places places) {
  const Reading<std::string> text = text_of(element, places);
  if (!text.was_read()) return {};
  if (!text.has_value()) return text.missing();
  if (text.value() == "Enabled" || text.value() == "Yes") return true;
  if (text.value() == "Disabled" || text.value() == "No") return false;
  return no_value(text.value());
}

Reading<int64_t> sum_of(const Element& element, Places places) {
  Reading<int64_t> sum;
  for (const char* place : places) {
    const Reading<int> part = whole_of(element, {place});
    if (part.has_value())
      sum = sum.value_or(0) + part.value();
    else if (part.was_read() && !sum.was_read())
      sum = part.missing();
  }
  return sum;
}

Reading<ComputeMode> compute_mode_of(const Element& gpu) {
  const Reading<std::string> text = text_of(gpu, {"compute_mode"});
  if (!text.was_read()) return {};
  if (!text.has_value()) return text.missing();
  if (text.value() == "Default") return ComputeMode::shared;
  if (text.value().starts_with("Exclusive")) return ComputeMode::exclusive;
  if (text.value() == "Prohibited") return ComputeMode::prohibited;
  return no_value(text.value());
}

Reading<std::vector<std::string>> throttle_of(const Element& gpu) {
  struct Word {
    std::string_view end;
    const char* word;
  };
  constexpr std::array kWords{Word{"_hw_thermal_slowdown", "hardware_thermal"},
                              Word{"_hw_power_brake_slowdown", "power_brake"},
                              Word{"_hw_slowdown", "hardware"},
                              Word{"_sw_power_cap", "power_cap"},
                              Word{"_sw_thermal_slowdown", "thermal"},
                              Word{"_gpu_idle", "idle"},
                              Word{"_applications_clocks_setting", "application_clocks"},
                              Word{"_sync_boost", "sync_boost"},
                              Word{"_display_clocks_setting", "display"},
                              Word{"", "other"}};
  const Element* list = first_of(gpu, {"clocks_event_reasons", "clocks_throttle_reasons"});
  if (!list) return {};
  if (list->children.empty()) return no_value(trim(list->text));
  std::vector<std::string> reasons;
  std::optional<Missing> missing;
  for (const Element& reason : list->children) {
    const std::string_view text = trim(reason.text);
    const auto known = std::ranges::find_if(kWords, [&](const Word& word) { return reason.name.ends_with(word.end); });
    if (text == "Active" && std::ranges::find(reasons, known->word) == reasons.end()) reasons.emplace_back(known->word);
    if (text != "Active" && text != "Not Active" && !missing) missing = no_value(text);
  }
  if (reasons.empty() && missing) return *missing;
  return reasons;
}

Reading<std::vector<Process>> processes_of(const Element& gpu, std::optional<Instance> wanted) {
  const Element* list = gpu.child("processes");
  if (!list) return {};
  if (auto missing = missing_in(trim(list->text)); missing && list->children.empty() && !trim(list->text).empty())
    return *missing;
  std::vector<Process> processes;
  for (const Element& info : first_few(list->children, kMostProcesses)) {
    if (info.name != "process_info") continue;
    const auto instance = whole_of(info, {"gpu_instance_id"}), compute = whole_of(info, {"compute_instance_id"});
    const bool here = wanted ? instance.value_or(-1) == wanted->gpu && compute.value_or(-1) == wanted->compute
                             : !is_listed(gpu, instance, compute);
    auto process = here ? process_of(info) : std::nullopt;
    if (process) add_process(std::move(*process), processes);
  }
  return processes;
}

}  // namespace remuda::recorded
