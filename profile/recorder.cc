#include "profile/recorder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace remuda::profile {
namespace {

/// What a change of a counter is to its largest value, at least, to be recorded.
constexpr double kLeastChange = 1e-3;

thread_local Track* t_track = nullptr;

uint64_t next_id() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace

size_t Track::begin(std::string_view name, Kind kind, const Details& details) {
  const std::string& kept = recorder_.kept_name(name);
  if (recorder_.ranges_.push) recorder_.ranges_.push(kept.c_str());
  const std::lock_guard lock(mutex_);
  open_.push_back({{kept, kind, recorder_.clock_.now_s(), 0, details}});
  return open_.size() - 1;
}

double Track::end(size_t depth) {
  const double now_s = recorder_.clock_.now_s();
  const std::lock_guard lock(mutex_);
  const double seconds = open_.size() > depth ? now_s - open_[depth].span.start_s : 0;
  while (open_.size() > depth) {
    close(now_s);
    if (recorder_.ranges_.pop) recorder_.ranges_.pop();
  }
  return seconds;
}

void Track::close(double now_s) {
  Open ended = open_.back();
  open_.pop_back();
  ended.span.end_s = now_s;
  if (ended.span.kind == Kind::work) {
    if (!open_.empty()) open_.back().within_s += ended.within_s;
    spans_.push_back(ended.span);
    return;
  }
  const double took_s = now_s - ended.span.start_s;
  OperationTotal& total = totals_[ended.span.name];
  total.name = ended.span.name;
  ++total.calls;
  total.total_s += took_s;
  total.self_s += took_s - ended.within_s;
  if (!open_.empty()) open_.back().within_s += took_s;
  if (recorder_.operations_++ < recorder_.most_operations_) spans_.push_back(ended.span);
}

Recorder::Recorder(Clock& clock, size_t most_operations)
    : clock_(clock), most_operations_(most_operations), id_(next_id()) {}

Track& Recorder::add_track(std::string name) {
  const std::lock_guard lock(mutex_);
  return tracks_.emplace_back(*this, std::move(name));
}

const std::string& Recorder::kept_name(std::string_view name) {
  const std::lock_guard lock(mutex_);
  auto found = names_.find(name);
  if (found == names_.end()) found = names_.emplace(name, 0).first;
  return found->first;
}

std::vector<TrackRecord> Recorder::tracks() {
  std::vector<TrackRecord> records;
  const std::lock_guard lock(mutex_);
  for (Track& track : tracks_) {
    const std::lock_guard track_lock(track.mutex_);
    if (!track.spans_.empty()) records.push_back({track.name_, track.spans_});
  }
  return records;
}

void Recorder::set_counter(std::string_view name, double value) {
  if (!recording_) return;
  const std::lock_guard lock(mutex_);
  auto found = counters_.find(name);
  if (found == counters_.end()) found = counters_.emplace(name, Counter{0, {std::string(name), {}}}).first;
  auto& [largest, record, left_out] = found->second;
  largest = std::max(largest, std::abs(value));
  auto& values = record.values;
  if (!values.empty() && std::abs(value - values.back().value) <= kLeastChange * largest) return;
  if (values.size() < most_operations_)
    values.push_back({clock_.now_s(), value});
  else
    ++left_out;
}

uint64_t Recorder::left_out_values() {
  const std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const auto& [name, counter] : counters_) sum += counter.left_out;
  return sum;
}

std::vector<CounterRecord> Recorder::counters() {
  std::vector<CounterRecord> records;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, counter] : counters_) records.push_back(counter.record);
  return records;
}

void Recorder::add_device_time(std::string_view name, double total_s, double self_s) {
  const std::lock_guard lock(mutex_);
  OperationTotal& total = on_device_[std::string(name)];
  total.device_s += total_s;
  total.device_self_s += self_s;
}

std::vector<OperationTotal> Recorder::totals() {
  std::map<std::string_view, OperationTotal> sums;
  bool has_device = false;
  {
    const std::lock_guard lock(mutex_);
    for (Track& track : tracks_) {
      const std::lock_guard track_lock(track.mutex_);
      for (const auto& [name, total] : track.totals_) {
        OperationTotal& sum = sums[name];
        sum.name = name;
        sum.calls += total.calls;
        sum.total_s += total.total_s;
        sum.self_s += total.self_s;
      }
    }
    for (auto& [name, sum] : sums) {
      const auto found = on_device_.find(name);
      if (found == on_device_.end()) continue;
      sum.device_s = found->second.device_s;
      sum.device_self_s = found->second.device_self_s;
    }
    has_device = !on_device_.empty();
  }
  std::vector<OperationTotal> all;
  for (const auto& [name, sum] : sums) all.push_back(sum);
  std::ranges::stable_sort(all, std::greater(), has_device ? &OperationTotal::device_self_s : &OperationTotal::self_s);
  return all;
}

uint64_t Recorder::left_out() const {
  const uint64_t ended = operations_;
  return ended > most_operations_ ? ended - most_operations_ : 0;
}

Track* track_here() { return t_track; }

Recorder* recorder_here() { return t_track ? &t_track->recorder() : nullptr; }

Join::Join(Recorder* recorder, std::string name)
    : before_(std::exchange(t_track, recorder ? &recorder->add_track(std::move(name)) : nullptr)) {}

Join::~Join() { t_track = before_; }

Span::Span(std::string_view name, const Details& details)
    : track_(t_track && t_track->recorder().is_recording() ? t_track : nullptr) {
  if (track_) depth_ = track_->begin(name, Kind::work, details);
}

Span::~Span() {
  if (track_) track_->end(depth_);
}

TimedSpan::TimedSpan(std::string_view name, const Details& details)
    : track_(t_track && t_track->recorder().is_recording() ? t_track : nullptr) {
  if (track_)
    depth_ = track_->begin(name, Kind::work, details);
  else
    start_s_ = monotonic_s();
}

double TimedSpan::end() {
  if (seconds_ < 0) seconds_ = track_ ? track_->end(depth_) : monotonic_s() - start_s_;
  return seconds_;
}

}  // namespace remuda::profile
