#include "train/run_history.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace remuda::train {
namespace {

constexpr size_t kMostPoints = 512;  // more than half of a picture's columns; 50 KiB of a report, and 4 for each rank
constexpr double kMicroseconds = 1e6, kShareDigits = 1e5;  // a report is no longer than it has to be

double rounded(double value, double unit) { return std::round(value * unit) / unit; }

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

}  // namespace

/// All ranks' steps take equally long: what the one that waits least waits for is the exchange, the others wait for it.
RunHistory::Phases RunHistory::phases_of(const StepTotals& times) {
  const auto ranks = double(times.compute_s.size());
  Phases phases{.data = sum_of(times.data_s) / ranks,
                .update = sum_of(times.update_s) / ranks,
                .communication = std::ranges::min(times.wait_s)};
  phases.compute = std::max(0.0, sum_of(times.compute_s) / ranks - phases.data - phases.update);
  phases.wait = sum_of(times.wait_s) / ranks - phases.communication;
  return phases;
}

void RunHistory::Point::take(const Point& next) {
  if (next.losses > 0) {
    loss_low = losses > 0 ? std::min(loss_low, next.loss_low) : next.loss_low;
    loss_high = losses > 0 ? std::max(loss_high, next.loss_high) : next.loss_high;
  }
  last_step = next.last_step;
  steps += next.steps;
  loss_sum += next.loss_sum;
  losses += next.losses;
  for (auto phase : {&Phases::data, &Phases::compute, &Phases::update, &Phases::communication, &Phases::wait})
    sum.*phase += next.sum.*phase;
  longest_s = std::max(longest_s, next.longest_s);
  for (size_t rank = 0; rank < samples.size(); ++rank) samples[rank] += next.samples[rank];
  samples_in_all += next.samples_in_all;
}

void RunHistory::add(int step, double loss, const std::vector<int>& samples, const StepTotals& times) {
  Point point{.last_step = step, .steps = 1, .sum = phases_of(times), .samples = {samples.begin(), samples.end()}};
  point.samples_in_all = sum_of(point.samples);
  if (std::isfinite(loss)) {
    point.loss_sum = point.loss_low = point.loss_high = loss;
    point.losses = 1;
  }
  for (size_t rank = 0; rank < times.compute_s.size(); ++rank)
    point.longest_s = std::max(point.longest_s, times.compute_s[rank] + times.wait_s[rank]);
  if (!points_.empty() && points_.back().steps < steps_per_point_) return points_.back().take(point);
  if (points_.size() == kMostPoints) halve();
  points_.push_back(std::move(point));
}

/// A point of which some steps are made again keeps those, too: it cannot be divided.
void RunHistory::go_on(int after_step, const std::vector<size_t>& left) {
  while (!points_.empty() && points_.back().last_step - points_.back().steps >= after_step) points_.pop_back();
  if (!points_.empty()) points_.back().last_step = std::min(points_.back().last_step, after_step);
  for (Point& point : points_) {
    const std::vector<double> all = std::exchange(point.samples, {});
    for (const size_t rank : left) point.samples.push_back(rank < all.size() ? all[rank] : 0);
  }
}

void RunHistory::halve() {
  for (size_t pair = 0; pair < points_.size() / 2; ++pair) {
    points_[2 * pair].take(points_[2 * pair + 1]);
    if (pair > 0) points_[pair] = std::move(points_[2 * pair]);
  }
  points_.resize(points_.size() / 2);
  steps_per_point_ *= 2;
}

Json RunHistory::to_json() const {
  Json json{{"steps_per_point", steps_per_point_}};
  const auto column = [&](const char* name, const auto& value) {
    Json values = Json::array();
    for (const Point& point : points_) values.push_back(value(point));
    json[name] = std::move(values);
  };
  const auto of_loss = [](double Point::* member) {
    return [member](const Point& point) { return point.losses > 0 ? Json(point.*member) : Json(); };
  };
  column("last_step", [](const Point& point) { return point.last_step; });
  column("loss", [](const Point& point) { return point.losses > 0 ? Json(point.loss_sum / point.losses) : Json(); });
  column("loss_low", of_loss(&Point::loss_low));
  column("loss_high", of_loss(&Point::loss_high));
  using Phase = std::pair<const char*, double Phases::*>;
  for (const auto& [name, phase] :
       {Phase{"data_s", &Phases::data}, Phase{"compute_s", &Phases::compute}, Phase{"update_s", &Phases::update},
        Phase{"communication_s", &Phases::communication}, Phase{"wait_s", &Phases::wait}})
    column(name,
           [member = phase](const Point& point) { return rounded(point.sum.*member / point.steps, kMicroseconds); });
  column("longest_s", [](const Point& point) { return rounded(point.longest_s, kMicroseconds); });
  Json shares = Json::array();
  for (size_t rank = 0; !points_.empty() && rank < points_.front().samples.size(); ++rank) {
    column("share", [rank](const Point& point) {
      return rounded(point.samples[rank] / std::max(1.0, point.samples_in_all), kShareDigits);
    });
    shares.push_back(std::exchange(json["share"], {}));
  }
  json["share"] = std::move(shares);
  return json;
}

}  // namespace remuda::train
