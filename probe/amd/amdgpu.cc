#include "probe/amd/amdgpu.h"

#include <algorithm>
#include <fmt/format.h>
#include <initializer_list>
#include <sstream>

#include "base/number.h"
#include "base/text.h"
#include "probe/sysfs.h"

namespace remuda::probe::amd {
namespace {

constexpr double kMicro = 1e-6, kMilli = 1e-3, kPercent = 0.01;

/// The number in the first of these files that holds one; if none does, the reason for the first file.
Reading<int64_t> read_first(const std::string& folder, std::initializer_list<const char*> files) {
  Reading<int64_t> first;
  for (const char* file : files) {
    const auto reading = sysfs::read_integer(folder + "/" + file);
    if (reading.has_value()) return reading;
    if (!first.was_read()) first = reading;
  }
  return first;
}

Reading<double> read_share(const std::string& path) {
  constexpr int kAll = 100;
  return sysfs::scaled(sysfs::read_integer(path, 0, kAll), kPercent);
}

Reading<int> read_highest_clock(const std::string& path) {
  const auto table = sysfs::read(path);
  if (!table.has_value()) return table.missing();
  if (const auto clock = highest_clock_mhz(table.value())) return *clock;
  return Missing{MissingReason::unsupported, fmt::format("{} holds no clocks", path)};
}

Reading<int> read_clock(const std::string& path) {
  constexpr int64_t kMegahertz = 1'000'000, kMost = 100'000 * kMegahertz;
  return sysfs::map(sysfs::read_integer(path, 0, kMost),
                    [](int64_t hertz) { return static_cast<int>(hertz / kMegahertz); });
}

/// "ue: 0\nce: 12"
Reading<int64_t> read_errors(const std::string& path, std::string_view key) {
  const auto text = sysfs::read(path);
  if (!text.has_value()) return text.missing();
  for (const std::string& line : split(text.value(), '\n'))
    if (line.starts_with(key))
      if (const auto count = parse_number<int64_t>(std::string_view(line).substr(key.size())); count && *count >= 0)
        return *count;
  return Missing{MissingReason::unsupported, fmt::format("{} holds no count", path)};
}

void read_hwmon(const std::string& folder, Device& device) {
  const std::vector<int> numbers = sysfs::numbered(folder + "/hwmon", "hwmon");
  const std::string hwmon = fmt::format("{}/hwmon/hwmon{}", folder, numbers.empty() ? 0 : numbers.front());
  Status& status = device.status;
  status.power_watts = sysfs::scaled(read_first(hwmon, {"power1_average", "power1_input"}), kMicro);
  device.power_limit_watts = sysfs::scaled(read_first(hwmon, {"power1_cap"}), kMicro);
  device.power_limit_max_watts = sysfs::scaled(read_first(hwmon, {"power1_cap_max"}), kMicro);
  status.temperature_c = sysfs::scaled(read_first(hwmon, {"temp1_input", "temp2_input"}), kMilli);
  status.sm_clock_mhz = read_clock(hwmon + "/freq1_input");
  status.memory_clock_mhz = read_clock(hwmon + "/freq2_input");
}

}  // namespace

std::optional<int> highest_clock_mhz(std::string_view table) {
  constexpr int64_t kMost = 100'000;
  std::istringstream words{std::string(table)};
  std::optional<int> highest;
  for (std::string word; words >> word;) {
    if (!word.ends_with("Mhz") && !word.ends_with("MHz")) continue;
    const auto clock = parse_number<int64_t>(std::string_view(word).substr(0, word.size() - 3));
    if (clock && *clock > highest.value_or(0) && *clock <= kMost) highest = static_cast<int>(*clock);
  }
  return highest;
}

Reading<std::string> read_compute_partition(const std::string& folder) {
  return sysfs::read_word(folder + "/current_compute_partition");
}

void read_amdgpu(const std::string& folder, Device& device) {
  Status& status = device.status;
  device.model = sysfs::read_word(folder + "/product_name").value_or("");
  device.serial = sysfs::read_word(folder + "/serial_number");
  device.memory_bytes = sysfs::read_integer(folder + "/mem_info_vram_total", 1);
  status.memory_used_bytes = sysfs::read_integer(folder + "/mem_info_vram_used");
  status.busy = read_share(folder + "/gpu_busy_percent");
  status.memory_busy = read_share(folder + "/mem_busy_percent");
  device.sm_clock_max_mhz = read_highest_clock(folder + "/pp_dpm_sclk");
  device.memory_clock_max_mhz = read_highest_clock(folder + "/pp_dpm_mclk");
  status.ecc_uncorrected = read_errors(folder + "/ras/umc_err_count", "ue: ");
  status.ecc_corrected = read_errors(folder + "/ras/umc_err_count", "ce: ");
  device.ecc = sysfs::map(status.ecc_corrected, [](int64_t) { return true; });
  read_hwmon(folder, device);
}

}  // namespace remuda::probe::amd
