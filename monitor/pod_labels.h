// Labels of a pod's container, as dcgm-exporter names and sorts them.
#pragma once

#include "monitor/families.h"
#include "pool/job.h"

namespace remuda::monitor {

inline Labels pod_labels(const pool::Pod& pod) {
  return {{"container", pod.container}, {"namespace", pod.name_space}, {"pod", pod.name}, {"pod_uid", pod.uid}};
}

}  // namespace remuda::monitor
