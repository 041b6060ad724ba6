#include "train/step_times_file.h"

#include <cmath>
#include <iostream>

#include "base/file.h"

namespace remuda::train {
namespace {

constexpr const char* kName = "the step times";

}  // namespace

void StepTimesFile::begin(const job::TrainJob& job, const std::vector<std::vector<balance::BatchTime>>& alone) {
  if (!active()) return;
  balance::StepTimesHead head{job.train.global_batch, {}};
  for (size_t rank = 0; rank < alone.size(); ++rank) {
    balance::TimedDevice device{job.devices.at(rank).use, job.devices[rank].slowdown};
    for (const auto& time : alone[rank])
      if (std::isfinite(time.seconds)) device.alone.push_back(time);
    head.devices.push_back(std::move(device));
  }
  write(balance::step_times_line(head));
}

std::string StepTimesFile::why_ended() const {
  if (!active()) return why_ended_;
  const auto kept = check_kept(fd_, kName);
  return kept ? "" : kept.error().message;
}

void StepTimesFile::write(const std::string& line) {
  if (!active()) return;
  const auto written = write_all(fd_, line + "\n", kName);
  if (written) return;
  why_ended_ = written.error().message;
  std::cerr << "the step times end here: " << why_ended_ << std::endl;
  fd_ = -1;
}

}  // namespace remuda::train
