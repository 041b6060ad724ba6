// LatestOutlooks: what becomes of the first jobs of a queue, for those who ask again and again. It is worked out anew
// when the pool has changed, and so seldom that it takes a fiftieth of a core at the most: what is told may be older
// than the pool then, by seconds.
#pragma once

#include <string>

#include "pool/outlook.h"

namespace remuda::pool {

/// One thread.
class LatestOutlooks {
 public:
  static constexpr size_t kMost = 8;       ///< jobs
  static constexpr double kOldest_s = 60;  ///< what nobody has changed changes with time, too: who is over a limit

  /// `rest_per_work`: seconds without for each second of work.
  explicit LatestOutlooks(double rest_per_work = 50) : rest_per_work_(rest_per_work) {}

  /// `steady_s`: a time that no clock which is set changes. Valid until the next call.
  const std::map<int64_t, Outlook>& of(const Scene& scene, double steady_s);
  int made() const { return made_; }  ///< how often it was worked out

 private:
  double rest_per_work_;
  std::map<int64_t, Outlook> latest_;
  std::string seen_;  ///< what of the pool it was of
  double taken_s_ = 0, due_s_ = 0;
  int made_ = 0;
};

}  // namespace remuda::pool
