#include "monitor/families.h"

#include <prometheus/text_serializer.h>

namespace remuda::monitor {

prometheus::ClientMetric& Families::add(const std::string& name, const char* help, prometheus::MetricType type,
                                        const Labels& labels) {
  const auto [found, is_new] = at_.try_emplace(name, families_.size());
  if (is_new) families_.push_back({name, help, type, {}});
  prometheus::ClientMetric& metric = families_[found->second].metric.emplace_back();
  metric.label = labels;
  return metric;
}

void Families::gauge(const std::string& name, const char* help, const Labels& labels, double value) {
  add(name, help, prometheus::MetricType::Gauge, labels).gauge.value = value;
}

void Families::counter(const std::string& name, const char* help, const Labels& labels, double value) {
  add(name, help, prometheus::MetricType::Counter, labels).counter.value = value;
}

std::string Families::text() const { return prometheus::TextSerializer().Serialize(families_); }

}  // namespace remuda::monitor
