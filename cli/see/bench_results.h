// BenchResults: the events of a measurement, combined into figures of devices and pairs. No IO, no clock.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "measure/plan.h"

namespace remuda::cli {

class BenchResults {
 public:
  /// `time_s`: when it is measured, in seconds since 1970.
  BenchResults(measure::Plan plan, double time_s);

  /// Takes an event of any rank (measure/plan.h); one that makes no sense counts as a missing figure.
  void take(const Json& event);

  /// "measuring cpu:0 from cpu:1", and the part of the phases that has begun.
  std::string status() const;
  double done() const;

  /// What was measured, in the order of the plan. A pair is included when both directions were measured.
  std::vector<MeasuredDevice> devices() const;
  std::vector<MeasuredLink> links() const;
  /// A copy within the memory of a CPU device, by its own cores.
  std::optional<double> memory_copy_gbps(const std::string& id) const;
  /// Why figures are missing, by device or pair ("gpu:0, gpu:1"). A pair is left out where one of its devices has the
  /// same reason.
  std::map<std::string, std::string> unmeasured() const;

 private:
  struct PhaseResult {
    bool ended = false;
    MeasuredDevice device;
    std::optional<double> memory_copy_gbps, gbps, latency_us;
    std::string why;  ///< why there are no figures
  };
  void take_figures(const Json& event, const measure::Phase& phase, PhaseResult& result);
  std::string names_where(const std::string& why) const;

  measure::Plan plan_;
  double time_s_;
  std::vector<measure::Phase> phases_;
  std::vector<PhaseResult> results_;  ///< one for each phase
  size_t current_ = 0;
};

}  // namespace remuda::cli
