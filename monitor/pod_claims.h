// PodClaims: pods to which a kubelet has given devices, as if they were jobs with leases, so that what is counted of
// leases (use.h) is counted of pods, too: each has an equal part of its device.
//
//   const auto claimed = claims.beside(pool, wall_s);
//   meter.add(now_s, wall_s, machine, claimed ? *claimed : pool, ...);
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pool/state.h"

namespace remuda::monitor {

/// Stands for a pod among the numbers of jobs: negative, made of its uid.
int64_t pod_number(const std::string& uid);
inline bool is_pod(int64_t job) { return job < 0; }

/// Whether a cgroup, by its path from the root of its tree, is the pod's, as kubelets name them, or within it. Only
/// root makes cgroups at that place.
bool is_cgroup_of_pod(std::string_view path, const std::string& uid);

/// One thread.
class PodClaims {
 public:
  /// `pool`, and for each pod that has devices a job, whose name is the pod's ("namespace/name"; its uid where that is
  /// not known), whose cgroup is the pod's uid, and leases since it was first seen here. Nothing where there are none.
  std::optional<pool::PoolState> beside(const pool::PoolState& pool, double wall_s);

 private:
  std::map<std::pair<int64_t, std::string>, double> since_;  ///< by pod and device
};

}  // namespace remuda::monitor
