// RunNotice: how a run within a job goes, as the run itself says it: how far it has come, for how much of its steps
// each device waited for others, and how old its last checkpoint is. Plain data. It is for people and for rules about
// idle devices, never for rights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace remuda::pool {

struct RunPart {
  std::string device;  ///< its id
  double share = 0;    ///< of the samples of a step, 0 to 1
  double waiting = 0;  ///< part of the time of its steps in which it waited for others, 0 to 1

  static constexpr const char* kName = "run_part";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("device", self.device, "id of the device", true);
    visit("share", self.share, "of the samples of a step, 0 to 1");
    visit("waiting", self.waiting, "part of the time in which it waited for others, 0 to 1");
  }
  bool operator==(const RunPart&) const = default;
};

struct RunNotice {
  static constexpr size_t kMostParts = 256;
  static constexpr double kLongestStep_s = 3600;          ///< a longer one counts as so long
  static constexpr double kLongestAge_s = 366 * 86400.0;  ///< of a checkpoint, likewise

  double at_s = 0;  ///< when it was heard of, in seconds since 1970; 0: never
  int64_t step = 0, steps = 0;
  double step_s = 0;
  std::vector<RunPart> parts;     ///< one for each device with ranks of the run; all since the notice before
  int64_t checkpoint_step = 0;    ///< after which its last checkpoint was taken; 0: it has written none
  double checkpoint_age_s = 0;    ///< since that was written, else since it began; as it was heard of
  double checkpoint_every_s = 0;  ///< how often one is wanted; 0: it wants none

  static constexpr const char* kName = "run_notice";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("at_s", self.at_s, "when it was heard of, in seconds since 1970");
    visit("step", self.step, "the last step that it has made");
    visit("steps", self.steps, "how many it is to make");
    visit("step_s", self.step_s, "how long a step takes");
    visit("parts", self.parts, "of each device with ranks of the run");
    visit("checkpoint_step", self.checkpoint_step, "after which step its last checkpoint was taken; absent: none yet");
    visit("checkpoint_age_s", self.checkpoint_age_s, "seconds since that was written, else since it began");
    visit("checkpoint_every_s", self.checkpoint_every_s, "seconds after which another one is wanted");
  }
  /// Whether it still says how the run goes. One of a time that is yet to come is of a clock that was set back since.
  bool is_fresh(double wall_s) const {
    constexpr double kFresh_s = 90, kSteps = 3;
    const double age_s = wall_s - at_s;
    return at_s > 0 && age_s > -kFresh_s && age_s < std::max(kFresh_s, kSteps * step_s);
  }
  /// How old its last checkpoint is by now.
  double checkpoint_age_at(double wall_s) const { return checkpoint_age_s + std::max(0.0, wall_s - at_s); }
  /// Whether that was older than twice what is wanted when it was heard of: no clock that is set can make it so.
  bool is_checkpoint_late() const { return checkpoint_every_s > 0 && checkpoint_age_s > 2 * checkpoint_every_s; }
  /// Of what a run has said, what can be.
  void bound() {
    const auto within = [](double value, double most) {
      return std::isfinite(value) ? std::clamp(value, 0.0, most) : 0;
    };
    step = std::max<int64_t>(0, step);
    steps = std::max<int64_t>(0, steps);
    step_s = within(step_s, kLongestStep_s);
    checkpoint_step = std::max<int64_t>(0, checkpoint_step);
    checkpoint_age_s = within(checkpoint_age_s, kLongestAge_s);
    checkpoint_every_s = within(checkpoint_every_s, kLongestAge_s);
    if (parts.size() > kMostParts) parts.resize(kMostParts);
    for (RunPart& part : parts) part.share = within(part.share, 1), part.waiting = within(part.waiting, 1);
    merge_parts();
  }
  /// Of several ranks on one device: it works on the samples of all, and waits only while each of them does.
  void merge_parts() {
    std::vector<RunPart> merged;
    for (const RunPart& part : parts) {
      const auto known = std::ranges::find(merged, part.device, &RunPart::device);
      if (known == merged.end()) {
        merged.push_back(part);
        continue;
      }
      known->share = std::min(1.0, known->share + part.share);
      known->waiting = std::min(known->waiting, part.waiting);
    }
    parts = std::move(merged);
  }
  bool operator==(const RunNotice&) const = default;
};

}  // namespace remuda::pool
