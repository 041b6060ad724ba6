// Members: which ranks a run has, once one was lost or another one has joined.
//
// Where one process has launched all ranks, on one host, it is the one authority: it knows which have ended. So those
// that are left need not agree with each other, and it does not matter which rank was lost. Ranks that others have
// launched, on several hosts, have nobody above them, and agree among themselves (quorum/membership.h); so do all ranks
// of a run that others may join.
#pragma once

#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "train/run_report.h"

namespace remuda::train {

struct Members {
  int generation = 0;      ///< so many times ranks were lost, or one joined or was to join
  std::vector<int> ranks;  ///< by their first numbers, in order; a rank's place is its number from now on
  std::string address;     ///< where they meet; empty: where they met before
  int port = 0;            ///< there
  int listen_fd = -1;      ///< a socket, of which each rank has one: that of the first of them listens there
  std::vector<RankLoss> lost;
};

/// A line of workers/event.h. An error says what is wrong with it.
Result<Members> parse_members(std::string_view line);

/// What this rank is told on REMUDA_MEMBERS_FD.
class MembersFeed {
 public:
  /// Of the environment. Without the variable the run is not elastic.
  static Result<MembersFeed> open();
  explicit MembersFeed(Fd fd) : fd_(std::move(fd)) {}

  bool is_elastic() const { return static_cast<bool>(fd_); }
  /// Waits for the next line. The launcher writes one, or closes its end, in a time that it knows and this rank does
  /// not; if it ends itself, that is seen, too. Whether the run is to stop is no matter here: those that are left keep
  /// its state first. Errors: nobody goes on.
  Result<Members> next();

 private:
  Fd fd_;
};

}  // namespace remuda::train
