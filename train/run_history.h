// RunHistory: how a run went, as the report keeps it: a bounded number of points, whatever its length. Each stands for
// as many steps as the others (the last one may have fewer), with the extremes that a mean would hide. Pure.
#pragma once

#include <vector>

#include "base/json.h"
#include "train/step_report.h"

namespace remuda::train {

class RunHistory {
 public:
  /// Steps in order. `samples`: what each rank took; `times`: of this step, on each rank.
  void add(int step, double loss, const std::vector<int>& samples, const StepTotals& times);
  bool empty() const { return points_.empty(); }
  /// The run goes on after this step with other ranks, each by its place among those before: forgets the points of
  /// steps that are made again, and the columns of those that were lost. One that joins has had no samples so far.
  void go_on(int after_step, const std::vector<size_t>& left);
  /// docs/run-report.md says what is in it.
  Json to_json() const;

 private:
  /// Where the time of a step goes, as means over the ranks, in seconds.
  struct Phases {
    double data = 0, compute = 0, update = 0, communication = 0, wait = 0;
  };
  struct Point {
    int last_step = 0, steps = 0;
    double loss_sum = 0, loss_low = 0, loss_high = 0;
    int losses = 0;  ///< finite ones
    Phases sum;
    double longest_s = 0;
    std::vector<double> samples;  ///< of each rank
    double samples_in_all = 0;    ///< of those, too, that were lost since

    void take(const Point& next);
  };
  static Phases phases_of(const StepTotals& times);
  void halve();

  std::vector<Point> points_;
  int steps_per_point_ = 1;
};

}  // namespace remuda::train
