// Values of `nvidia-smi -q -x`: "40960 MiB", "Enabled", "N/A", "[GPU is lost]". Pure.
//
// Each function takes the first of several places that is there, as the places moved over the years. An absent place is
// a reading that was not taken; a place without a value says why: lost (GPU is lost, Unknown Error), denied
// (Insufficient Permissions), else unsupported.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "recorded/xml.h"

namespace remuda::recorded {

/// Of one GPU; further ones are not read.
inline constexpr size_t kMostPartitions = 64;
inline constexpr size_t kMostProcesses = 4096;

using Places = std::initializer_list<const char*>;

Reading<std::string> text_of(const Element& element, Places places);
/// "85.50 W" is 85.5.
Reading<double> number_of(const Element& element, Places places);
/// "16x" and "1410 MHz" are 16 and 1410.
Reading<int> whole_of(const Element& element, Places places);
/// "15 %" is 0.15.
Reading<double> share_of(const Element& element, Places places);
/// "40960 MiB".
Reading<int64_t> bytes_of(const Element& element, Places places);
/// Enabled or Yes; Disabled or No.
Reading<bool> flag_of(const Element& element, Places places);
/// The sum of all places that have a number.
Reading<int64_t> sum_of(const Element& element, Places places);

Reading<ComputeMode> compute_mode_of(const Element& gpu);
Reading<std::vector<std::string>> throttle_of(const Element& gpu);

/// A partition: ids of its GPU instance and its compute instance.
struct Instance {
  int gpu = 0;
  int compute = 0;
};
/// Those of the whole GPU (or of partitions the file does not list), or those of one partition; each once.
Reading<std::vector<Process>> processes_of(const Element& gpu, std::optional<Instance> instance = {});

}  // namespace remuda::recorded
