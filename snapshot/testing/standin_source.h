// A source that tests control: it answers what they set, and counts how often it was asked.
#pragma once

#include <atomic>
#include <mutex>

#include "snapshot/source.h"

namespace remuda::snapshot {

class StandinSource : public Source {
 public:
  void set(Result<Json> answer) {
    const std::scoped_lock lock(mutex_);
    answer_ = std::move(answer);
  }
  Result<Json> snapshot() override {
    ++asked;
    const std::scoped_lock lock(mutex_);
    return answer_;
  }
  Result<History> history(const HistoryQuery& query) override { return unknown_history(query); }
  Result<Json> set_score(const SetQuery& query) override {
    return Json{{"host", query.host}, {"devices", query.devices}};
  }

  std::atomic<int> asked = 0;

 private:
  std::mutex mutex_;
  Result<Json> answer_ = Json{{"version", 1}};
};

}  // namespace remuda::snapshot
