#include "monitor/dcgm.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "monitor/families.h"
#include "monitor/pod_labels.h"

namespace remuda::monitor {
namespace {

bool is_shown(const Device& device) { return device.kind == DeviceKind::gpu; }

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

/// As dcgm-exporter does for what one job holds alone; a device that jobs share has no such label.
std::string job_of(const Device& device, const Moment& moment) {
  std::string job;
  for (const pool::Lease& lease : moment.pool.leases) {
    if (lease.device != device.id) continue;
    if (!job.empty()) return "";
    job = std::to_string(lease.job);
  }
  return job;
}

/// Likewise: that exporter repeats the readings of a shared device for each pod, and sums over pods are wrong there.
const pool::Pod* pod_of(const Device& device, const Moment& moment) {
  const auto& all = moment.pool.allocations;
  const auto found = std::ranges::find(all, device.id, &pool::Allocation::device);
  return found != all.end() && found->pods.size() == 1 ? &found->pods[0] : nullptr;
}

Labels labels_of(const Device& device, const Moment& moment) {
  Labels labels = {{"gpu", std::to_string(device.index)},
                   {"UUID", device.uuid.value_or(device.id)},
                   {"pci_bus_id", device.pci.value_or("")},
                   {"device", lower_case(device.vendor) + std::to_string(device.minor.value_or(device.index))},
                   {"modelName", device.model},
                   {"Hostname", moment.machine.host}};
  for (const Driver& driver : moment.machine.drivers)
    if (driver.vendor == device.vendor && driver.version.has_value())
      labels.push_back({"DCGM_FI_DRIVER_VERSION", driver.version.value()});
  if (std::string job = job_of(device, moment); !job.empty()) labels.push_back({"hpc_job", std::move(job)});
  if (const pool::Pod* const pod = pod_of(device, moment))
    std::ranges::move(pod_labels(*pod), std::back_inserter(labels));
  return labels;
}

/// As DCGM counts memory: without what is beyond the last whole one.
Reading<int64_t> whole_mib(const Reading<int64_t>& bytes) {
  constexpr int64_t kMiB = 1 << 20;
  return bytes.has_value() ? Reading<int64_t>(bytes.value() / kMiB) : bytes;
}

void add(const Device& device, const Moment& moment, Families& families) {
  const Labels labels = labels_of(device, moment);
  const Status& status = device.status;
  families.gauge("DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", labels, status.sm_clock_mhz);
  families.gauge("DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", labels, status.memory_clock_mhz);
  families.gauge("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", labels, status.temperature_c);
  families.gauge("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", labels, status.power_watts);
  families.counter("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Total energy consumption since boot (in mJ).", labels,
                   status.energy_joules, 1000);
  families.gauge("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", labels, status.busy, 100);
  families.gauge("DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", labels, status.memory_busy, 100);
  families.gauge("DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error encountered.", labels, status.xid);
  if (device.memory_bytes.has_value() && status.memory_used_bytes.has_value())
    families.gauge("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", labels,
                   whole_mib(device.memory_bytes.value() - status.memory_used_bytes.value() -
                             status.memory_reserved_bytes.value_or(0)));
  families.gauge("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", labels,
                 whole_mib(status.memory_used_bytes));
  families.gauge("DCGM_FI_DEV_FB_RESERVED", "Framebuffer memory reserved (in MiB).", labels,
                 whole_mib(status.memory_reserved_bytes));
  families.counter("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "Number of remapped rows.", labels, status.remapped_rows);
  families.gauge("DCGM_FI_DEV_ROW_REMAP_FAILURE", "Whether remapping of rows has failed.", labels, status.remap_failed);
  families.gauge("DCGM_FI_PROF_SM_ACTIVE", "The ratio of cycles an SM has at least 1 warp assigned.", labels,
                 status.sm_active);
  families.gauge("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Ratio of cycles the tensor (HMMA) pipe is active.", labels,
                 status.tensor_active);
  families.gauge("DCGM_FI_PROF_DRAM_ACTIVE",
                 "Ratio of cycles the device memory interface is active sending or receiving data.", labels,
                 status.dram_active);
}

}  // namespace

std::string dcgm_text(const Moment& moment) {
  Families families;
  for (const Device& device : moment.machine.devices)
    if (is_shown(device)) add(device, moment, families);
  return families.text();
}

std::vector<std::pair<std::string, std::string>> job_mapping(const Moment& moment) {
  std::vector<std::pair<std::string, std::string>> files;
  int number = 0;
  for (const Device& device : moment.machine.devices) {
    if (!is_shown(device) || device.vendor != "NVIDIA") continue;
    std::string jobs;
    for (const pool::Lease& lease : moment.pool.leases)
      if (lease.device == device.id) jobs += fmt::format("{}\n", lease.job);
    files.emplace_back(std::to_string(number++), std::move(jobs));
  }
  return files;
}

}  // namespace remuda::monitor
