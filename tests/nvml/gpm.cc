// The profiling counters of Hopper and newer: available when the recording has the load of the multiprocessors.
#include "tests/nvml/answer.h"

namespace remuda::tests::nvml {

/// The device of a sample.
struct GpmSample {
  Handle device = nullptr;
};

namespace {

bool has_counters(const Gpu& gpu) { return gpu.device.status.sm_active.has_value(); }

const Reading<double>* counter_of(const Status& status, unsigned id) {
  enum Counter : unsigned { kSmActive = 2, kSmOccupancy = 3, kAnyTensor = 5, kDramBandwidth = 10 };
  switch (id) {
    case kSmActive:
      return &status.sm_active;
    case kSmOccupancy:
      return &status.sm_occupancy;
    case kAnyTensor:
      return &status.tensor_active;
    case kDramBandwidth:
      return &status.dram_active;
    default:
      return nullptr;
  }
}

void fill_metric(const Status& status, GpmMetric& metric) {
  constexpr double kPercent = 100;
  const Reading<double>* counter = counter_of(status, metric.id);
  metric.code = counter && counter->has_value() ? kSuccess : kNotSupported;
  metric.value = metric.code == kSuccess ? counter->value() * kPercent : 0;
  metric.short_name = metric.long_name = metric.unit = nullptr;
}

}  // namespace

NVML_EXPORT Code nvmlGpmQueryDeviceSupport(Handle handle, GpmSupport* support) {
  return ask(handle, support, [&](const Gpu& gpu) {
    if (support->version != 1) return kArgumentVersionMismatch;
    support->supported = has_counters(gpu) ? 1 : 0;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlGpmSampleAlloc(GpmSample** sample) {
  if (!sample) return kInvalidArgument;
  *sample = new GpmSample;
  return kSuccess;
}

NVML_EXPORT Code nvmlGpmSampleFree(GpmSample* sample) {
  if (!sample) return kInvalidArgument;
  delete sample;
  return kSuccess;
}

NVML_EXPORT Code nvmlGpmSampleGet(Handle handle, GpmSample* sample) {
  return ask(handle, sample, [&](const Gpu& gpu) {
    if (!has_counters(gpu)) return kNotSupported;
    sample->device = &gpu;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlGpmMigSampleGet(Handle handle, unsigned gpu_instance, GpmSample* sample) {
  return ask(handle, sample, [&](const Gpu& gpu) {
    for (const auto& instance : gpu.instances)
      if (instance->gpu_instance == gpu_instance && has_counters(*instance))
        return sample->device = instance.get(), kSuccess;
    return kNotSupported;
  });
}

NVML_EXPORT Code nvmlGpmMetricsGet(GpmMetrics* metrics) {
  constexpr unsigned kMostMetrics = 333;
  if (!metrics || metrics->count > kMostMetrics) return kInvalidArgument;
  if (metrics->version != 1) return kArgumentVersionMismatch;
  const GpmSample *first = metrics->first, *second = metrics->second;
  if (!first || !second || !first->device || first->device != second->device) return kInvalidArgument;
  GpmMetric* at = metrics->metrics;
  for (unsigned i = 0; i < metrics->count; ++i) fill_metric(first->device->device.status, at[i]);
  return kSuccess;
}

}  // namespace remuda::tests::nvml
