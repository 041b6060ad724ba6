#include "doctor/checks/judge.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/letter_case.h"

namespace remuda::doctor {
namespace {

bool holds(std::string_view text, std::string_view word) { return lower(text).find(word) != std::string::npos; }

}  // namespace

Diagnosis pass(std::string sentence) { return {.verdict = Verdict::pass, .sentence = std::move(sentence)}; }

Diagnosis warn(std::string sentence, std::string remedy, std::string device) {
  return {Verdict::warn, std::move(sentence), std::move(remedy), std::move(device)};
}

Diagnosis fail(std::string sentence, std::string remedy, std::string device) {
  return {Verdict::fail, std::move(sentence), std::move(remedy), std::move(device)};
}

Diagnosis skip(std::string sentence) { return {.verdict = Verdict::skip, .sentence = std::move(sentence)}; }

Diagnosis skip(const Missing& missing) {
  return skip(missing.detail.empty() ? std::string(to_string(missing.reason)) : missing.detail);
}

std::string counted(size_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string listed(const std::vector<std::string>& words) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(words.size(), kShown); ++i) text += (i ? ", " : "") + words[i];
  return words.size() > kShown ? fmt::format("{} and {} more", text, words.size() - kShown) : text;
}

std::string called(const Device& device) {
  return device.model.empty() ? device.label() : fmt::format("{} ({})", device.label(), device.model);
}

std::string address(const Device& device) { return device.pci.value_or(std::to_string(device.index)); }

Diagnosis no_gpu(const Inventory& inventory) {
  return skip(inventory.unseen().empty() ? "no GPU here" : "no GPU can be seen");
}

std::vector<const Device*> gpus(const Inventory& inventory) {
  std::vector<const Device*> found;
  for (const Device& device : inventory.devices)
    if (device.kind == DeviceKind::gpu) found.push_back(&device);
  return found;
}

bool is_nvidia(std::string_view vendor) { return holds(vendor, "nvidia"); }
bool is_amd(std::string_view vendor) { return holds(vendor, "amd") || holds(vendor, "advanced micro"); }

Diagnoses over_gpus(const Inventory& inventory, const std::string& well,
                    const std::function<Diagnosis(const Device&)>& judge) {
  const auto all = gpus(inventory);
  if (all.empty()) return {no_gpu(inventory)};
  Diagnoses bad, skipped;
  size_t passed = 0;
  for (const Device* device : all) {
    Diagnosis diagnosis = judge(*device);
    diagnosis.device = device->id;
    if (diagnosis.verdict == Verdict::pass)
      ++passed;
    else
      (diagnosis.verdict == Verdict::skip ? skipped : bad).push_back(std::move(diagnosis));
  }
  if (!bad.empty()) return bad;
  if (passed == 0) return {skip(skipped.front().sentence)};
  if (passed == all.size()) return {pass(fmt::format("{}: {}", counted(passed, "GPU"), well))};
  return {pass(fmt::format("{} of {}: {}; of the others it is not known", passed, counted(all.size(), "GPU"), well))};
}

}  // namespace remuda::doctor
