// Sentences: what a person would say who has looked at all of it. The page says the same (web/page/src/sentences.js).
// Pure.
#pragma once

#include <string>
#include <vector>

#include "snapshot/hosts.h"

namespace remuda::snapshot {

/// "8 GPUs of 3 kinds on 2 hosts: 5 working, 1 held but idle 42 min, 2 free; 3 waiting; 1 alert."
std::string top_sentence(const Seen& seen, const Histories& histories);

/// How old what is shown of leases and queue is, of a host whose agent does not answer; empty where it does. `as_of`:
/// Host::known_s, as a clock on the wall shows it.
std::string agent_sentence(const Host& host, double now_s, const std::string& as_of);

/// "ana's fit (job 7)", "ana's job 7"; the user alone where there is no job.
std::string job_text(const std::string& user, const std::string& name, int64_t job);

/// Why one job waits.
std::string queue_sentence(const Waiting& job, double now_s);

/// "step 1840 of 4000, 620 ms each, 22 min left", as far as it is known.
std::string progress_text(int64_t step, int64_t steps, double step_s);

/// "last checkpoint 12 min ago, after step 1800, wanted every 10 min"; empty of a run that has none, and wants none.
std::string checkpoint_text(int64_t step, double age_s, double every_s);

/// How a run goes: how far it is, how long it takes, for how much of it its devices wait for each other, and how old
/// its last checkpoint is.
std::string run_sentence(const Run& run);

/// "3.20 EUR", "at least 3.20 EUR" where some of it is not known; empty where nothing is.
std::string cost_text(const Use& use);

/// Why readings are missing: "no permission", and what for: "busy, power of gpu:0, gpu:1; busy of gpu:2".
struct MissingReadings {
  std::string reason, of;
  bool operator==(const MissingReadings&) const = default;
};
/// Each reason once. What no device was asked for is left out.
std::vector<MissingReadings> missing_reasons(const Seen& seen);

}  // namespace remuda::snapshot
