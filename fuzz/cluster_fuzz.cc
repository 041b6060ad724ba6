// Any bytes, as what Slurm prints or a kubelet keeps, are devices in bounded number and names that can be shown.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "cluster/kubelet_text.h"
#include "cluster/slurm_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace remuda::cluster;
  constexpr size_t kMost = 4096;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  REMUDA_CHECK(parse_gres_files(text).size() <= kMost, "a machine has so many device files");
  const auto used = parse_used_gpus(text);
  REMUDA_CHECK(used.size() <= kMost && std::ranges::is_sorted(used), "and so many GPUs");
  const SlurmJob job = parse_slurm_job(text, 1, "box");
  REMUDA_CHECK(std::ranges::is_sorted(job.gpus) && remuda::printable(job.user) == job.user, "a job has users and GPUs");
  (void)has_node(text, "box07");
  (void)job_of_cgroup(text);
  if (const auto pod = parse_pod_folder(text)) REMUDA_CHECK(remuda::printable(pod->name) == pod->name, "and a name");
  if (const auto checkpoint = parse_device_checkpoint(text, "it")) {
    REMUDA_CHECK(checkpoint->pods.size() <= kMost && checkpoint->registered.size() <= size, "as many as were given");
    for (const PodDevices& pod : checkpoint->pods) REMUDA_CHECK(!pod.devices.empty(), "a pod has devices");
  } else {
    REMUDA_CHECK(checkpoint.error().message.find('\n') == std::string::npos, "an error is one line");
  }
  return 0;
}
