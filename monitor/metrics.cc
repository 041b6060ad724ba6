#include "monitor/metrics.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string_view>

#include "device/throttle.h"
#include "monitor/families.h"
#include "monitor/money.h"
#include "monitor/pod_claims.h"
#include "monitor/pod_labels.h"

namespace remuda::monitor {
namespace {

Labels labels_of(const Device& device) { return {{"uuid", device.id}, {"gpu", device.label()}}; }

Labels with(Labels labels, const char* name, std::string value) {
  labels.push_back({name, std::move(value)});
  return labels;
}

void add_identity(const Device& device, const Inventory& machine, Families& families) {
  std::string driver;
  for (const Driver& one : machine.drivers)
    if (one.vendor == device.vendor) driver = one.version.value_or("");
  families.gauge("remuda_gpu_info", "A device, by what it is; always 1",
                 {{"uuid", device.id},
                  {"gpu", device.label()},
                  {"vendor", device.vendor},
                  {"model", device.model},
                  {"pci", device.pci.value_or("")},
                  {"parent", device.parent},
                  {"driver", driver}},
                 1);
}

void add_readings(const Device& device, Families& families) {
  const Labels labels = labels_of(device);
  const Status& status = device.status;
  families.gauge("remuda_gpu_busy_ratio", "Share of the last second in which a kernel ran", labels, status.busy);
  families.gauge("remuda_gpu_memory_busy_ratio", "Share of the last second in which device memory was read or written",
                 labels, status.memory_busy);
  families.gauge("remuda_gpu_sm_active_ratio", "Share of multiprocessors with work", labels, status.sm_active);
  families.gauge("remuda_gpu_tensor_active_ratio", "Share of time in which the tensor cores worked", labels,
                 status.tensor_active);
  families.gauge("remuda_gpu_dram_active_ratio", "Share of the memory bandwidth in use", labels, status.dram_active);
  families.gauge(
      "remuda_gpu_effective_ratio",
      "How much of the device the work uses: tensor cores or memory bandwidth, else power of its limit, at most busy",
      labels, effectiveness(device));
  families.gauge("remuda_gpu_memory_bytes", "Memory of the device", labels, device.memory_bytes);
  families.gauge("remuda_gpu_memory_used_bytes", "Memory in use, without what the driver reserves", labels,
                 status.memory_used_bytes);
  families.gauge("remuda_gpu_power_watts", "Power drawn", labels, status.power_watts);
  families.gauge("remuda_gpu_power_limit_watts", "Power limit in force", labels, device.power_limit_watts);
  families.counter("remuda_gpu_energy_joules_total", "Energy used since the driver was loaded", labels,
                   status.energy_joules);
  families.gauge("remuda_gpu_temperature_celsius", "Temperature of the chip", labels, status.temperature_c);
  families.gauge("remuda_gpu_sm_clock_hertz", "Clock of the multiprocessors", labels, status.sm_clock_mhz, 1e6);
  families.gauge("remuda_gpu_memory_clock_hertz", "Clock of the memory", labels, status.memory_clock_mhz, 1e6);
  families.gauge("remuda_gpu_throttled", "Whether heat, power or hardware holds its clocks down", labels,
                 is_throttled(status));
  families.gauge("remuda_gpu_pcie_generation", "PCIe generation now", labels, status.pcie_generation);
  families.gauge("remuda_gpu_pcie_width", "PCIe lanes now", labels, status.pcie_width);
  families.gauge("remuda_gpu_pcie_width_max", "PCIe lanes of card and slot together", labels, device.pcie_width_max);
}

void add_faults(const Device& device, Families& families) {
  const Labels labels = labels_of(device);
  const Status& status = device.status;
  const char* const kEcc = "Memory errors since the driver was loaded";
  families.counter("remuda_gpu_ecc_errors_total", kEcc, with(labels, "kind", "corrected"), status.ecc_corrected);
  families.counter("remuda_gpu_ecc_errors_total", kEcc, with(labels, "kind", "uncorrected"), status.ecc_uncorrected);
  families.counter("remuda_gpu_remapped_rows_total", "Memory rows replaced by spare ones", labels,
                   status.remapped_rows);
  families.gauge("remuda_gpu_last_error_code", "The driver's code of the last fatal error seen while watching; 0: none",
                 labels, status.xid);
  if (status.recovery_action.has_value())
    families.gauge("remuda_gpu_needs_recovery", "What the driver asks for after an error; 1 unless that is none",
                   with(labels, "action", to_string(status.recovery_action.value())),
                   status.recovery_action.value() != RecoveryAction::none);
}

/// Of those readings that most people look at.
void add_missing(const Device& device, Families& families) {
  const auto add = [&](const char* reading, const auto& value) {
    if (value.has_value() || !value.was_read()) return;
    families.gauge("remuda_gpu_reading_missing", "A reading that has no value, and why; always 1",
                   with(with(labels_of(device), "reading", reading), "reason", to_string(value.missing().reason)), 1);
  };
  const Status& status = device.status;
  add("busy", status.busy);
  add("memory_used_bytes", status.memory_used_bytes);
  add("power_watts", status.power_watts);
  add("energy_joules", status.energy_joules);
  add("temperature_c", status.temperature_c);
  add("sm_clock_mhz", status.sm_clock_mhz);
  add("tensor_active", status.tensor_active);
  add("dram_active", status.dram_active);
}

/// "job" is the name that Prometheus gives to what it scrapes: it would rename a label of ours.
Labels lease_labels(int64_t job, const std::string& device, const Moment& moment) {
  const Device* const found = moment.machine.find(device);
  return {{"job_id", std::to_string(job)}, {"uuid", device}, {"gpu", found ? found->label() : ""}};
}

/// What the pool says of it: whoever looks at the pool knows that, whether or not he keeps the history.
void add_lease(const pool::Lease& lease, const Moment& moment, Families& families) {
  const Device* const device = moment.machine.find(lease.device);
  if (device && device->kind == DeviceKind::cpu) return;
  const Labels labels = lease_labels(lease.job, lease.device, moment);
  const pool::Job* const job = moment.pool.find(lease.job);
  families.gauge("remuda_lease_share", "A lease: the part of the device that the job holds",
                 with(with(labels, "user", job ? job->user : ""), "name", job ? job->name : ""), lease.share);
  if (lease.until_s > 0)
    families.gauge("remuda_lease_until_seconds", "When its time limit ends the lease, in seconds since 1970", labels,
                   lease.until_s);
  if (job && job->idle.step != pool::IdleStep::none)
    families.gauge("remuda_lease_idle_step", "What the policy has done about its idle devices; always 1",
                   with(labels, "step", to_string(job->idle.step)), 1);
}

/// What became of the time for which a job, or a pod, had a device. Metrics of pods are called as those of leases, with
/// remuda_pod_ in place of remuda_lease_.
void add_use(const LeaseUse& use, const Labels& labels, const Moment& moment, Families& families) {
  const auto name = [&](std::string_view of_lease) {
    constexpr std::string_view kLease = "remuda_lease_";
    return is_pod(use.job) ? fmt::format("remuda_pod_{}", of_lease.substr(kLease.size())) : std::string(of_lease);
  };
  const auto count = [&](std::string_view of_lease, const char* help, double value) {
    families.counter(name(of_lease), help, labels, value);
  };
  count("remuda_lease_held_seconds_total", "How long the device was held while it was watched", use.held_s);
  if (use.busy_known_s > 0) count("remuda_lease_busy_seconds_total", "How much of that a kernel ran", use.busy_s);
  count("remuda_lease_busy_known_seconds_total", "For how much of the held time that is known", use.busy_known_s);
  if (use.effective_known_s > 0)
    count("remuda_lease_effective_seconds_total", "The held time, weighted by how much of the device the work used",
          use.effective_s);
  count("remuda_lease_effective_known_seconds_total", "For how much of the held time that is known",
        use.effective_known_s);
  if (use.waiting_known_s > 0) {
    count("remuda_lease_waiting_seconds_total", "How much of the known time it waited for others of its run",
          use.waiting_s);
    count("remuda_lease_waiting_known_seconds_total", "For how much of the held time that is known",
          use.waiting_known_s);
  }
  if (use.energy_known_s > 0)
    count("remuda_lease_energy_joules_total", "Energy that the device used for that", use.energy_joules);
  const Amount cost = money_of(use, moment.policy ? moment.policy->tariffs : std::vector<policy::Tariff>()).cost;
  if (cost.is_known)
    families.counter(name("remuda_lease_cost_total"), "What it costs by the policy's tariff, as far as that is known",
                     with(labels, "currency", moment.policy->currency), cost.value);
  if (use.memory_peak_bytes > 0)
    families.gauge(name("remuda_lease_memory_peak_bytes"), "The most device memory that was in use", labels,
                   static_cast<double>(use.memory_peak_bytes));
}

/// Those of the pod that has the device, under any of its containers; nothing where it has it no more.
std::optional<Labels> pod_use_labels(const LeaseUse& use, const Moment& moment) {
  const Device* const device = moment.machine.find(use.device);
  for (const pool::Allocation& allocation : moment.pool.allocations)
    for (const pool::Pod& pod : allocation.pods)
      if (device && allocation.device == use.device && pod_number(pod.uid) == use.job) {
        Labels labels = labels_of(*device);
        labels.insert(labels.end(), {{"namespace", pod.name_space}, {"pod", pod.name}, {"pod_uid", pod.uid}});
        return labels;
      }
  return std::nullopt;
}

void add_run(const pool::Job& job, const Moment& moment, Families& families) {
  const pool::RunNotice& run = job.run;
  const Labels labels{{"job_id", std::to_string(job.id)}, {"user", job.user}, {"name", job.name}};
  if (const auto waiting = waiting_of(job, moment.wall_s))
    families.gauge("remuda_run_waiting_ratio",
                   "For how much of their time the devices of a job's run wait for others, as the run reports it",
                   labels, *waiting);
  if (!run.is_fresh(moment.wall_s) || run.checkpoint_every_s <= 0) return;
  families.gauge("remuda_run_checkpoint_time_seconds",
                 "When a job's run has written its last checkpoint, else when it began, in seconds since 1970", labels,
                 run.at_s - run.checkpoint_age_s);
  families.gauge("remuda_run_checkpoint_interval_seconds", "How often a job's run wants a checkpoint", labels,
                 run.checkpoint_every_s);
}

/// With the labels of dcgm-exporter: the pool knows no more of those whom a kubelet has given a device.
void add_pods(const pool::Allocation& allocation, const Moment& moment, Families& families) {
  const Device* const device = moment.machine.find(allocation.device);
  if (!device) return;
  for (const pool::Pod& pod : allocation.pods) {
    Labels labels = labels_of(*device);
    std::ranges::move(pod_labels(pod), std::back_inserter(labels));
    families.gauge("remuda_gpu_pod", "A container of a pod that has the device of a kubelet; always 1", labels, 1);
  }
}

void add_disk(const DiskRoom& disk, Families& families) {
  const Labels labels{{"folder", disk.folder}};
  families.gauge("remuda_disk_bytes", "Size of a disk that remuda writes to, without what is kept for root", labels,
                 static_cast<double>(disk.bytes));
  families.gauge("remuda_disk_free_bytes", "What is free of that", labels, static_cast<double>(disk.free_bytes));
}

void add_pool(const Moment& moment, Families& families) {
  const auto add_jobs = [&](pool::JobState state, size_t count) {
    families.gauge("remuda_jobs", "Jobs in the pool, by state", {{"state", to_string(state)}},
                   static_cast<double>(count));
  };
  add_jobs(pool::JobState::waiting, moment.waiting);
  add_jobs(pool::JobState::running,
           static_cast<size_t>(std::ranges::count(moment.pool.jobs, pool::JobState::running, &pool::Job::state)));
  for (const Device& device : moment.machine.devices) {
    if (device.kind == DeviceKind::cpu) continue;
    double held = 0;
    for (const pool::Lease& lease : moment.pool.leases)
      if (lease.device == device.id) held += lease.share;
    families.gauge("remuda_gpu_held_ratio", "Part of the device that jobs hold", labels_of(device), held);
    const bool is_drained =
        std::ranges::find(moment.pool.drains, device.id, &pool::Drain::device) != moment.pool.drains.end();
    const bool is_taken = std::ranges::find(moment.used_without_lease, device.id) != moment.used_without_lease.end();
    families.gauge("remuda_gpu_used_without_lease", "Whether processes without a lease use it", labels_of(device),
                   is_taken);
    const bool is_shared = std::ranges::find(moment.used_by_strangers, device.id) != moment.used_by_strangers.end();
    families.gauge("remuda_gpu_used_by_strangers", "Whether processes of no job use it while a job holds it",
                   labels_of(device), is_shared);
    families.gauge("remuda_gpu_drained", "Whether it is granted to nobody, as somebody said", labels_of(device),
                   is_drained);
  }
}

}  // namespace

std::string metrics_text(const Moment& moment) {
  Families families;
  families.gauge("remuda_reading_time_seconds", "When the machine was read, in seconds since 1970", {},
                 moment.machine.time_s);
  for (const Device& device : moment.machine.devices) {
    if (device.kind == DeviceKind::cpu) continue;
    add_identity(device, moment.machine, families);
    add_readings(device, families);
    add_faults(device, families);
    add_missing(device, families);
  }
  if (moment.agent_answers)
    families.gauge("remuda_agent_answers", "Whether the agent of the machine answers; 0: nothing of the pool is known",
                   {}, *moment.agent_answers);
  for (const DiskRoom& disk : moment.disks) add_disk(disk, families);
  if (!moment.knows_pool()) return families.text();
  add_pool(moment, families);
  for (const pool::Lease& lease : moment.pool.leases) add_lease(lease, moment, families);
  for (const auto& [_, use] : moment.uses) {
    if (!is_pod(use.job))
      add_use(use, lease_labels(use.job, use.device, moment), moment, families);
    else if (const auto labels = pod_use_labels(use, moment))
      add_use(use, *labels, moment, families);
  }
  for (const pool::Job& job : moment.pool.jobs) add_run(job, moment, families);
  for (const pool::Allocation& allocation : moment.pool.allocations) add_pods(allocation, moment, families);
  return families.text();
}

}  // namespace remuda::monitor
