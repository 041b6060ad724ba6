// Families: samples of metrics, gathered by name in the order in which names first appear, as Prometheus reads them.
//
//   Families families;
//   families.gauge("remuda_gpu_power_watts", "Power drawn", {{"uuid", id}}, 250);
//   answer(families.text());   // text format 0.0.4
#pragma once

#include <map>
#include <prometheus/metric_family.h>
#include <string>
#include <vector>

#include "device/reading.h"

namespace remuda::monitor {

using Labels = std::vector<prometheus::ClientMetric::Label>;

/// One thread.
class Families {
 public:
  void gauge(const std::string& name, const char* help, const Labels& labels, double value);
  void counter(const std::string& name, const char* help, const Labels& labels, double value);
  /// Nothing where there is no value: a metric that is absent is unknown, and 0 would be a lie.
  template <typename T>
  void gauge(const std::string& name, const char* help, const Labels& labels, const Reading<T>& reading,
             double scale = 1) {
    if (reading.has_value()) gauge(name, help, labels, static_cast<double>(reading.value()) * scale);
  }
  template <typename T>
  void counter(const std::string& name, const char* help, const Labels& labels, const Reading<T>& reading,
               double scale = 1) {
    if (reading.has_value()) counter(name, help, labels, static_cast<double>(reading.value()) * scale);
  }

  std::string text() const;

 private:
  prometheus::ClientMetric& add(const std::string& name, const char* help, prometheus::MetricType type,
                                const Labels& labels);
  std::vector<prometheus::MetricFamily> families_;
  std::map<std::string, size_t> at_;
};

}  // namespace remuda::monitor
