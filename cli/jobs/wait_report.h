// What `remuda why` says of a job that waits: what is in the way, when it can start, what it would have to give up to
// start at once, and who goes before it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "place/answer.h"
#include "pool/job.h"
#include "pool/outlook.h"
#include "run/caretaker.h"

namespace remuda::cli {

struct WaitReport {
  std::string first;                       ///< why it may not start, whatever is free; empty: it may
  std::vector<place::Blocker> in_the_way;  ///< of devices; none where it could not use them
  pool::Outlook outlook;
  size_t before = 0;  ///< jobs that go before it and wait for devices, as it does
};

/// `job` waits and stands for no array.
Result<WaitReport> wait_report(const run::Caretaker& caretaker, const pool::PoolState& state, const pool::Job& job,
                               double now_s);

/// Lines for people: those after the reason.
std::string report_text(const WaitReport& report, const pool::Job& job);
/// in_the_way, earliest_s or earliest_unknown, would_start, and jobs_before.
void add_report(const WaitReport& report, Json& json);

}  // namespace remuda::cli
