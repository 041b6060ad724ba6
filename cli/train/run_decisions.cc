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
  if (name == "checkpoint") ++(workers::text_field(event, "failed").empty() ? written_ : failed_);
  // When they split, they did not know yet where they would go on.
  if (name == "regrouped" && since_loss_ < decisions_.size())
    decisions_[since_loss_]["step"] = workers::number_field(event, "resumed_from");
}

void RunDecisions::take_loss() {
  since_loss_ = decisions_.size();
  splits_next_ = true;
}

void RunDecisions::take_change(const Json& event) {
  if (workers::text_field(event, "event") != "joined") return take_loss();
  if (decisions_.empty()) return;
  ++splits_;  // they have split before they knew that the newcomer stays
  decisions_.back()["step"] = workers::number_field(event, "step");
}

void RunDecisions::complete(Json& report) const {
  if (!report.is_object() || !(report.contains("lost_ranks") || report.contains("joined_ranks"))) return;
  report["balance"]["decisions"] = decisions_;
  report["share_changes"] = decisions_.size() - splits_;
  if (written_ + failed_ == 0) return;
  Json kept = report.value("checkpoints", Json{{"resumed_from", 0}});
  kept.update({{"written", written_}, {"failed", failed_}});
  report["checkpoints"] = std::move(kept);
}

}  // namespace remuda::cli
