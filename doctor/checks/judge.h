// Helpers for checks: short functions for verdicts, and one verdict over all GPUs.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "device/inventory.h"
#include "doctor/diagnosis.h"

namespace remuda::doctor {

using Diagnoses = std::vector<Diagnosis>;

Diagnosis pass(std::string sentence);
Diagnosis warn(std::string sentence, std::string remedy, std::string device = "");
Diagnosis fail(std::string sentence, std::string remedy, std::string device = "");
Diagnosis skip(std::string sentence);

/// SKIP with the reason why a reading is missing; "a recorded machine does not report it" for one that was not taken.
Diagnosis skip(const Missing& missing);
template <typename T>
Diagnosis skip_for(const Reading<T>& reading) {
  return reading.was_read() ? skip(reading.missing()) : skip("a recorded machine does not report it");
}

/// "1 GPU", "2 GPUs".
std::string counted(size_t count, std::string_view thing);
/// "a, b, c"; after the third " and 5 more".
std::string listed(const std::vector<std::string>& words);
/// "gpu:0 (NVIDIA A100)".
std::string called(const Device& device);
/// What nvidia-smi -i takes: the PCI address, else the index.
std::string address(const Device& device);

/// For a check of GPUs on a machine without one: none is there, or none can be seen.
Diagnosis no_gpu(const Inventory& inventory);
std::vector<const Device*> gpus(const Inventory& inventory);
bool is_nvidia(std::string_view vendor);
bool is_amd(std::string_view vendor);

/// Calls `judge` for each GPU, and returns its WARNs and FAILs; if there are none, one PASS with `well` for those it
/// passes; if there are none, one SKIP with the first reason. Sentences and remedies of `judge` are not changed; device
/// is filled in.
Diagnoses over_gpus(const Inventory& inventory, const std::string& well,
                    const std::function<Diagnosis(const Device&)>& judge);

}  // namespace remuda::doctor
