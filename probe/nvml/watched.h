// Watched: the probe with the library as a parameter, so that tests can pass one that hangs. See probe.h for its
// contract.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "probe/nvml/probe.h"
#include "probe/nvml/process_lists.h"
#include "probe/nvml/session.h"
#include "process/guarded_child.h"

namespace remuda::probe::nvml {

class Watched final : public Probe {
 public:
  /// `load` runs in the child. step_s and start_s of `options` are set.
  Watched(NvmlOptions options, std::function<Result<Lib>()> load, Clock& clock = steady_clock());

  const char* name() const override { return "nvml"; }
  std::optional<std::string> unviable() override;
  bool is_blind() const override { return blind_; }
  std::string_view vendor() const override { return "NVIDIA"; }
  Result<Finding> find() override;

 private:
  /// The result of one request.
  struct Answer {
    std::optional<Inventory> found;
    std::string step;     ///< the last one that began
    std::string failure;  ///< "did not answer within 5 s"
  };

  std::optional<std::string> start();
  Answer ask();
  bool blame(const Answer& answer);
  std::string drop(process::GuardedChild::Received received, double waited_s);
  void forgive();
  Result<Inventory> unpack(std::string_view changes, std::string_view found);
  Finding remember(Inventory found);
  Finding all_lost(const std::string& why) const;

  const NvmlOptions options_;
  const KernelFiles files_;
  const std::function<Result<Lib>()> load_;
  Clock& clock_;
  Avoid avoid_;
  double forgive_s_ = 0;        ///< when avoid_ is emptied, if it is not empty
  bool blind_ = false;          ///< no child could be started, for another reason than that no driver is installed
  std::map<int, Device> seen_;  ///< GPUs as they were when last read, by index; without processes
  std::optional<process::GuardedChild> child_;
  ProcessLists lists_;                        ///< that the child has told
  std::vector<process::GuardedChild> dying_;  ///< killed, but not ended yet
};

}  // namespace remuda::probe::nvml
