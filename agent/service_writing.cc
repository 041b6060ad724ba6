// What the agent itself has to write, and when that is done where the database does not take it: other processes keep
// it busy, or the disk is full.
#include <algorithm>
#include <utility>

#include "agent/service.h"
#include "pool/transitions.h"

namespace remuda::agent {

void Service::end(int64_t job, const std::string& why, double now_s) {
  write(pool::End{job, {.exit_status = pool::kEndedByRemuda, .why = why}}, now_s);
}

/// In the name of the agent. What the database does not take now it is given again.
void Service::write(const pool::Operation& word, double now_s) {
  pool_.forget_failure();
  if (!change(word, now_s)) give_again({word}, now_s);
}

void Service::write_again(double now_s) {
  for (const pool::Operation& word : std::exchange(unwritten_, {}))
    if (now_s < busy_until_s_)
      unwritten_.push_back(word);
    else
      write(word, now_s);
}

/// What could not be written, where another time it may be. One end of a job is enough.
void Service::give_again(const std::vector<pool::Operation>& words, double now_s) {
  if (!pool_.may_try_again()) return;
  busy_until_s_ = now_s + kBusyPause_s;
  for (const pool::Operation& word : words) {
    const auto* end = std::get_if<pool::End>(&word);
    const auto is_same = [&](const pool::Operation& one) {
      const auto* other = std::get_if<pool::End>(&one);
      return end && other && end->job == other->job;
    };
    if (std::ranges::none_of(unwritten_, is_same)) unwritten_.push_back(word);
  }
}

}  // namespace remuda::agent
