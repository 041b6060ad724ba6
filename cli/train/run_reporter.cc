#include "cli/train/run_reporter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pool/run_notice.h"
#include "run/run_board.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

/// NaN counts as nothing.
void add(const std::vector<double>& values, std::vector<double>& sums) {
  sums.resize(std::max(sums.size(), values.size()));
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) sums[i] += values[i];
}

}  // namespace

void RunReporter::take(const Json& event, double now_s) {
  if (fd_ < 0 || workers::text_field(event, "event") != "step") return;
  add(workers::numbers_field(event, "compute_s"), compute_s_);
  add(workers::numbers_field(event, "wait_s"), wait_s_);
  ++steps_;
  if (now_s - told_s_ < kEvery_s) return;
  told_s_ = now_s;
  pool::RunNotice notice{.step = static_cast<int64_t>(workers::number_field(event, "step")),
                         .steps = static_cast<int64_t>(workers::number_field(event, "steps"))};
  const std::vector<double> samples = workers::numbers_field(event, "shares");
  const double all = std::reduce(samples.begin(), samples.end());
  for (size_t i = 0; i < devices_.size(); ++i) {
    const size_t rank = first_ + i;
    if (rank >= compute_s_.size() || rank >= wait_s_.size()) break;
    const double all_s = compute_s_[rank] + wait_s_[rank];
    notice.step_s = std::max(notice.step_s, all_s / steps_);
    notice.parts.push_back({.device = devices_[i],
                            .share = rank < samples.size() && all > 0 ? samples[rank] / all : 0,
                            .waiting = all_s > 0 ? wait_s_[rank] / all_s : 0});
  }
  run::write_notice(fd_, notice);
  compute_s_.clear();
  wait_s_.clear();
  steps_ = 0;
}

}  // namespace remuda::cli
