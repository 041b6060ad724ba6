// /metrics/dcgm: the same readings under the names, labels and units of dcgm-exporter, so that dashboards made for it
// (Grafana 12239) show devices of every maker, without DCGM. Pure.
//
// Names, order of labels and units: dcgm-exporter's etc/default-counters.csv and internal/pkg/rendermetrics of 2026-05.
// Its label `gpu` is a number that is unique on a host: here that of the device's label. What a device does not count
// is left out, as there: tensor activity is never filled in with utilisation.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "monitor/metrics.h"

namespace remuda::monitor {

std::string dcgm_text(const Moment& moment);

/// The jobs that hold each device that dcgm-exporter knows, by the number that it has there: that among NVIDIA's own,
/// by PCI address, as an inventory has them. Files of the folder of its option --hpc-job-mapping-dir, one job to a
/// line.
std::vector<std::pair<std::string, std::string>> job_mapping(const Moment& moment);

}  // namespace remuda::monitor
