// Partitions: makes and takes away partitions of GPUs, where the policy allows it ([sharing] mig), one at a time, by a
// program of its own (`remuda partition`), so that a driver that hangs holds up nobody. When the agent is killed, that
// goes on; the next agent waits for its end, and knows what was made by its mark (partition_marks.h). Where that
// program was killed, it is started again to settle what is half done (partition_intent.h). A GPU's mode is never
// changed.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/partition_intent.h"
#include "agent/partition_plan.h"
#include "base/clock.h"
#include "base/result.h"
#include "process/child.h"

namespace remuda::agent {

/// One thread. Never waits. Times are those of the steady clock.
class Partitions {
 public:
  using Start = std::function<Result<process::ChildProcess>(const PartitionChange&)>;
  /// None are made.
  Partitions() = default;
  /// `marks`: folder of the marks.
  Partitions(std::string marks, Start start, std::function<void(const std::string&)> say)
      : marks_(std::move(marks)), start_(std::move(start)), say_(std::move(say)), left_(left_changes(marks_)) {}

  /// Whether a change can begin now, where nothing was refused: none is going on, and the newest reading of the machine
  /// shows the last one.
  bool can_begin() const { return start_ && !running_ && !is_stale_; }
  void begin(const PartitionChange& change, double now_s);
  void reading_has_begun() { is_stale_ = false; }
  /// Looks whether it is done. True once, when it has ended: then the machine is to be read.
  bool step(double now_s);
  double next_s() const { return running_ || !left_.empty() ? next_look_s_ : kNever_s; }

  /// Those that agents of this pool have made and that are there.
  std::set<std::string> own(const Inventory& machine) const;
  /// What is being taken away.
  std::vector<place::Held> held() const;
  /// What has failed, and is not tried again yet; and, as What::settle, the GPUs that have a change to be settled
  /// first.
  std::vector<PartitionChange> refused(double now_s) const;

 private:
  struct Running {
    PartitionChange change;
    process::ChildProcess process;
    std::string said;
    double until_s = 0;
  };
  bool see_running(double now_s);
  bool see_left(double now_s);
  void fail(const PartitionChange& change, const std::string& why, double now_s);

  std::string marks_;
  Start start_;
  std::function<void(const std::string&)> say_;
  std::optional<Running> running_;
  std::vector<LeftChange> left_;  ///< by processes of an agent before, given up, or killed; one of a GPU at most
  bool is_stale_ = false;         ///< one has ended since a reading began
  struct Refused {
    PartitionChange change;
    double until_s = 0;
  };
  std::vector<Refused> refused_;
  double next_look_s_ = 0;
};

/// As an agent of this pool does it, by its own program.
Partitions::Start partition_starter(const std::string& program, const std::string& marks);
std::string partition_marks_of(const std::string& pool);

}  // namespace remuda::agent
