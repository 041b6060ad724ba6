// Switches of the engine: each one another way to do the same, whose gain depends on the device and is to be measured
// there. What is learned is the same with each.
#include "job/schema.h"

namespace remuda::job {

std::vector<Key> engine_keys() {
  const auto on_off = [](const char* name, Member<Switch> member, const char* meaning) {
    return Key{name, choice<Switch>({"off", "on"}, member), Need::optional, std::nullopt, meaning};
  };
  return {
      on_off(
          "engine.separate_streams", [](TrainJob& job) -> auto& { return job.engine.separate_streams; },
          "copies to a GPU, copies from it and its maker's library each have a stream, in place of one for all"),
      on_off(
          "engine.equal_parts", [](TrainJob& job) -> auto& { return job.engine.equal_parts; },
          "where all devices own as much of a bucket, their maker's library makes one call of it, in place of one "
          "for each part"),
      on_off(
          "engine.bucket_by_latency", [](TrainJob& job) -> auto& { return job.engine.bucket_by_latency; },
          "buckets that go from device to device are so large that the latency of a call, which is measured, is a "
          "tenth of its time; train.bucket_mib is the least"),
      on_off(
          "engine.fused_attention", [](TrainJob& job) -> auto& { return job.engine.fused_attention; },
          "gpt: libtorch's scaled_dot_product_attention, on GPUs for which it has a kernel"),
      on_off(
          "engine.script_fusers", [](TrainJob& job) -> auto& { return job.engine.script_fusers; },
          "TorchScript: libtorch may fuse operators, which it compiles anew for each size of a batch"),
      on_off(
          "engine.pinned_copies", [](TrainJob& job) -> auto& { return job.engine.pinned_copies; },
          "memory for copies of the state, of buddies and checkpoints, is registered with the driver, and all "
          "tensors are under way at once"),
      on_off(
          "engine.fewer_waits", [](TrainJob& job) -> auto& { return job.engine.fewer_waits; },
          "the host waits for a device once at the end of a backward pass, for all losses together, and not for its "
          "update, whose time is then counted as waiting"),
  };
}

}  // namespace remuda::job
