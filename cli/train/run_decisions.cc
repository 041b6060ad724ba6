#include "cli/train/run_decisions.h"

#include <utility>

#include "workers/event.h"

namespace remuda::cli {

void RunDecisions::take(const Json& event) {
  const std::string name = workers::text_field(event, "event");
  if (name == "balance") {
    if (std::exchange(splits_next_, false)) ++splits_;
    decisions_.push_back(event);
    decisions_.back().erase("event");
  }
  // When they split, they did not know yet where they would go on.
  if (name == "regrouped" && since_loss_ < decisions_.size())
    decisions_[since_loss_]["step"] = workers::number_field(event, "resumed_from");
}

void RunDecisions::take_loss() {
  since_loss_ = decisions_.size();
  splits_next_ = true;
}

void RunDecisions::complete(Json& report) const {
  if (!report.is_object() || !report.contains("lost_ranks")) return;
  report["balance"]["decisions"] = decisions_;
  report["share_changes"] = decisions_.size() - splits_;
}

}  // namespace remuda::cli
