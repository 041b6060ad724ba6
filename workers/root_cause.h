// Root cause: when one rank fails, all do; this finds the rank that caused it.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "process/child.h"

namespace remuda::workers {

/// What is known of one rank, running or ended.
struct RankFacts {
  int rank = 0;
  std::string device;
  bool done = false;           ///< it reported that its work is done: whatever becomes of it then
  bool reported = false;       ///< and with that the results of the run, which is done
  bool trained = false;        ///< it has made all steps: no rank waits for it, and it for none
  std::optional<Error> error;  ///< what it reported
  bool ready = false;          ///< it has met the others
  bool waits = false;          ///< it has lost a peer, which is its error, and waits to hear who is left
  int generation = 0;          ///< where ranks agree among themselves: so many times they have
  std::vector<int> left;       ///< and then, who goes on
  std::optional<process::ExitState> exit;
  bool signalled = false;               ///< it was sent a signal before it ended
  double failed_at_s = 0;               ///< when the failure, if it is one, was first seen
  std::deque<std::string> last_output;  ///< its last lines of output

  /// It has reported an error, or ended, before its work was done.
  bool has_failed() const { return !done && (error || exit); }
};

struct Failure {
  int rank = 0;
  std::string device;
  ErrorKind kind = ErrorKind::failed;
  std::string cause;                    ///< "killed by signal 9 (Killed)", or what the rank reported
  std::deque<std::string> last_output;  ///< of that rank
};

/// "killed by signal 9 (Killed)", or what it reported; of a rank that has failed.
std::string cause_of(const RankFacts& rank);
/// The failure that this rank's is, for such a cause.
Failure blame(const RankFacts& rank, std::string cause);
/// The same of a rank that has reported nothing, but for which `witness` has waited in vain.
Failure blame_silent(const RankFacts& rank, const RankFacts& witness);

/// The failure that caused the others. A rank that died by itself, or reported an error of its own, comes before one
/// that lost a peer; among equals the earliest. Once the first rank has made all steps, it needs no other, and only its
/// own failure is one. When all have only lost peers, the peer that went silent is the cause. After `stopping`, deaths
/// and lost peers are expected: no failure; nor is anything once the run has reported. Pure.
std::optional<Failure> root_cause(std::span<const RankFacts> ranks, bool stopping);

}  // namespace remuda::workers
