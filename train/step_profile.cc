#include "train/step_profile.h"

#include <algorithm>
#include <fmt/format.h>
#include <iostream>

#include "base/clock.h"
#include "train/agreement.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

constexpr size_t kMostOperators = 20;  ///< of a rank, in the report

Json to_json(const profile::OperationTotal& total, bool has_device_times) {
  Json json{
      {"name", std::string(total.name)}, {"calls", total.calls}, {"total_s", total.total_s}, {"self_s", total.self_s}};
  if (has_device_times) json.update({{"device_s", total.device_s}, {"device_self_s", total.device_self_s}});
  return json;
}

}  // namespace

StepProfile::StepProfile(const job::TrainJob& job, comm::Communicator& communicator, const Events& events, int skipped,
                         torch::Device device)
    : job_(job),
      communicator_(communicator),
      events_(events),
      skipped_(skipped),
      timer_(job.output.profile > 0 ? DeviceTimer::of(device) : std::nullopt),
      recorder_(job.output.profile > 0 ? std::optional<profile::Recorder>(std::in_place) : std::nullopt),
      join_(recorder_ ? &*recorder_ : nullptr, "steps") {
  if (recorder_) recorder_->report_to(profiler_ranges());
}

Result<void> StepProfile::open() {
  if (!recorder_ || communicator_.rank() != 0 || job_.output.trace.empty()) return {};
  REMUDA_ASSIGN(PendingFile created, PendingFile::create(job_.output.trace));
  file_.emplace(std::move(created));
  return {};
}

void StepProfile::take(Json report) {
  published_ = true;
  file_.reset();
  report_ = std::move(report);
}

bool StepProfile::records(int steps_before) const { return recorder_ && !published_ && steps_before >= skipped_; }

Result<void> StepProfile::begin() {
  begun_ = true;
  REMUDA_ASSIGN(clock_, clock_offset(communicator_));
  zero_s_ = monotonic_s();
  return communicator_.broadcast(std::as_writable_bytes(std::span(&zero_s_, 1)), 0, label::kProfile);
}

Result<void> StepProfile::begin_step(int steps_before, const OwnTotals& sums) {
  if (!records(steps_before)) return {};
  if (!begun_) REMUDA_TRY(begin());
  before_ = sums;
  step_began_s_ = monotonic_s();
  recorder_->set_recording(true);
  step_.emplace("step", profile::Details{{{"step", steps_before + 1}}});
  watch_.emplace(*recorder_, timer_);
  return {};
}

bool StepProfile::meets_after(int steps) const {
  if (!recorder_ || published_) return false;
  return begun_ ? recorded_ + 1 == job_.output.profile : records(steps);
}

Result<void> StepProfile::end_step(const OwnTotals& sums) {
  if (!step_) return {};
  step_.reset();
  recorder_->set_recording(false);
  steps_s_ += monotonic_s() - step_began_s_;
  watch_.reset();  // waits for the device's times
  sums_.compute_s += sums.compute_s - before_.compute_s;
  sums_.wait_s += sums.wait_s - before_.wait_s;
  sums_.data_wait_s += sums.data_wait_s - before_.data_wait_s;
  return ++recorded_ == job_.output.profile ? publish() : Result<void>();
}

Result<void> StepProfile::finish() { return recorder_ && !published_ ? publish() : Result<void>(); }

Json StepProfile::own_totals() {
  const auto all = recorder_->totals();
  Json operators = Json::array();
  for (size_t i = 0; i < std::min(all.size(), kMostOperators); ++i)
    operators.push_back(to_json(all[i], timer_.has_value()));
  double operators_s = 0, on_device_s = 0;
  for (const auto& total : all) {
    operators_s += total.self_s;
    on_device_s += total.device_self_s;
  }
  Json totals{{"seconds", steps_s_},
              {"compute_s", sums_.compute_s},
              {"wait_s", sums_.wait_s},
              {"data_wait_s", sums_.data_wait_s},
              {"clock_error_s", clock_.error_s},
              {"operators_s", operators_s},
              {"operators", std::move(operators)},
              {"left_out_of_trace", recorder_->left_out()},
              {"counters_left_out_of_trace", recorder_->left_out_values()}};
  if (timer_) totals["device_s"] = on_device_s;
  return totals;
}

Result<Json> StepProfile::all_totals() {
  Json devices = Json::array();
  const std::string mine = to_line(own_totals());
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    REMUDA_ASSIGN(
        const std::string text,
        share_text(communicator_, rank, rank == communicator_.rank() ? mine : std::string(), label::kProfile));
    REMUDA_ASSIGN(Json totals, parse_json(text, fmt::format("the profile of rank {}", rank)));
    devices.push_back(std::move(totals));
  }
  return devices;
}

Result<bool> StepProfile::is_trace_wanted() {
  bool wanted = file_.has_value();
  REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(&wanted, 1)), 0, label::kProfile));
  return wanted;
}

/// Collective. One rank's events at a time, so that rank 0 never has those of all in memory.
Result<void> StepProfile::gather_trace() {
  const int own = communicator_.rank(), size = communicator_.size();
  Result<void> written;
  const auto append = [&](const std::string& text) {
    if (file_ && written) written = file_->append(text);
  };
  append(profile::trace_head({{"steps", recorded_}, {"first_step", skipped_ + 1}}));
  for (int rank = 0; rank < size; ++rank) {
    const profile::Process process{rank, fmt::format("rank {}, {}", rank, job_.devices[size_t(rank)].use),
                                   zero_s_ - clock_.offset_s};
    REMUDA_ASSIGN(const std::string events,
                  share_text(communicator_, rank,
                             rank == own ? profile::trace_events(process, recorder_->tracks(), recorder_->counters(),
                                                                 rank + 1 == size)
                                         : "",
                             label::kProfile));
    append(events);
  }
  append(profile::trace_end());
  if (!file_) return {};
  if (written) written = file_->commit();
  file_.reset();
  if (written) report_["trace"] = job_.output.trace;
  if (written) return {};
  why_no_trace_ = written.error().message;
  std::cerr << "there is no trace: " << why_no_trace_ << std::endl;
  return {};
}

/// A run goes on without its trace; a rank that is lost ends it.
Result<void> StepProfile::publish() {
  published_ = true;
  REMUDA_ASSIGN(Json devices, all_totals());
  report_ = {{"first_step", skipped_ + 1}, {"steps", recorded_}, {"devices", std::move(devices)}};
  REMUDA_ASSIGN(const bool wanted, is_trace_wanted());
  if (wanted) REMUDA_TRY(gather_trace());
  if (communicator_.rank() == 0)
    events_.send({{"event", "profile"}, {"steps", recorded_}, {"trace", report_.value("trace", "")}});
  return {};
}

}  // namespace remuda::train
