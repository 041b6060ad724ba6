#include "probe/nvml/gpm.h"

#include <cmath>
#include <utility>

#include "probe/nvml/ask.h"

namespace remuda::probe::nvml {
namespace {

constexpr const char* kGpmCounters = "profiling counters";

/// Nothing when the counters can be read; otherwise the reason.
std::optional<Missing> unsupported(const Lib& lib, Handle gpu) {
  if (!lib.gpm_support || !lib.gpm_alloc || !lib.gpm_metrics || !lib.gpm_sample) return no_call(kGpmCounters);
  GpmSupport support{.version = 1, .supported = 0};
  const Code code = lib.gpm_support(gpu, &support);
  if (code == kSuccess && support.supported) return std::nullopt;
  return why(code == kSuccess ? kNotSupported : code, kGpmCounters);
}

Code sample(const Lib& lib, Handle gpu, unsigned instance, GpmSample into) {
  if (instance == kWholeGpu) return lib.gpm_sample(gpu, into);
  return lib.gpm_sample_instance ? lib.gpm_sample_instance(gpu, instance, into) : kFunctionNotFound;
}

Reading<double> metric(const Reading<GpmRequest>& request, size_t place) {
  return then(request, [place](const GpmRequest& answered) -> Reading<double> {
    const GpmMetric& entry = answered.metrics[place];
    if (entry.code != kSuccess) return why(entry.code, kGpmCounters);
    if (!std::isfinite(entry.value) || entry.value < 0) return no_sense(kGpmCounters);
    return std::min(entry.value / 100, 1.0);
  });
}

}  // namespace

Reading<GpmRequest> Gpm::measure(const Lib& lib, Handle gpu, unsigned instance, double now_s) {
  const Missing too_early{MissingReason::unsupported, "profiling counters need two readings, at least 0.1 s apart"};
  if (auto reason = unsupported(lib, gpu)) return *reason;
  for (GpmSample* buffer : {&earlier_, &later_})
    if (!*buffer)
      if (const Code code = lib.gpm_alloc(buffer); code != kSuccess || !*buffer)
        return *buffer = nullptr, why(code == kSuccess ? kUnknown : code, kGpmCounters);
  if (taken_s_ >= 0 && now_s - taken_s_ < kShortest) return too_early;
  if (const Code code = sample(lib, gpu, instance, later_); code != kSuccess)
    return taken_s_ = -1, why(code, kGpmCounters);
  const bool first = std::exchange(taken_s_, now_s) < 0;
  GpmRequest request{.version = 1, .count = 4, .earlier = earlier_, .later = later_};
  std::swap(earlier_, later_);
  if (first) return too_early;
  const std::array ids{kGpmSmActive, kGpmSmOccupancy, kGpmTensorActive, kGpmDramActive};
  for (size_t i = 0; i < ids.size(); ++i) request.metrics[i].id = ids[i];
  if (const Code code = lib.gpm_metrics(&request); code != kSuccess) return why(code, kGpmCounters);
  return request;
}

void Gpm::read(const Lib& lib, Handle gpu, unsigned instance, double now_s, Status& status) {
  const auto request = measure(lib, gpu, instance, now_s);
  status.sm_active = metric(request, 0);
  status.sm_occupancy = metric(request, 1);
  status.tensor_active = metric(request, 2);
  status.dram_active = metric(request, 3);
}

}  // namespace remuda::probe::nvml
