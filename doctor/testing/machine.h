// Machines made in code, for the tests of the checks.
#pragma once

#include <fmt/format.h>
#include <string>

#include "doctor/checks/judge.h"

namespace remuda::doctor {

inline Device made_gpu(int index, const std::string& vendor = "NVIDIA", const std::string& model = "A100") {
  Device device;
  device.id = fmt::format("GPU-{}", index);
  device.kind = DeviceKind::gpu;
  device.index = index;
  device.vendor = vendor;
  device.model = model;
  device.pci = fmt::format("0000:{:02x}:00.0", 0x20 + index);
  device.memory_bytes = int64_t{80} << 30;
  return device;
}

inline Inventory made_machine(int gpus, const std::string& vendor = "NVIDIA") {
  Inventory inventory;
  inventory.host = "node1";
  for (int i = 0; i < gpus; ++i) inventory.devices.push_back(made_gpu(i, vendor));
  return inventory;
}

/// The verdicts in one word each: "PASS", "WARN FAIL".
inline std::string verdicts(const Diagnoses& diagnoses) {
  std::string text;
  for (const Diagnosis& diagnosis : diagnoses)
    text += (text.empty() ? "" : " ") + std::string(to_string(diagnosis.verdict));
  return text;
}

/// All that a person would read.
inline std::string words_of(const Diagnoses& diagnoses) {
  std::string text;
  for (const Diagnosis& diagnosis : diagnoses) text += diagnosis.sentence + " | " + diagnosis.remedy + "\n";
  return text;
}

inline const Missing kForbidden{MissingReason::denied, "only root may ask"};

}  // namespace remuda::doctor
