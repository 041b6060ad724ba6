// Regroup: what becomes of an elastic run when some of its ranks are lost.
#pragma once

#include <span>
#include <vector>

#include "base/listener.h"
#include "workers/root_cause.h"

namespace remuda::workers {

/// What a run may lose and still go on. By default nothing: when a rank fails, all end.
struct Elasticity {
  int may_be_lost = 0;             ///< ranks, in all
  bool they_agree = false;         ///< among themselves, as others than these may be of the run: here is only watched
  std::vector<Listener> meetings;  ///< where those that are left meet, one each time; each rank inherits all of them
  double notice_s = 300;           ///< for a rank to notice that another is lost; see RankListener::step_s
  double report_s = 1;             ///< from there on, for the rank that all the others have waited for in vain
};

struct Regrouping {
  enum class Now {
    work,  ///< all is well
    wait,  ///< a rank is lost, and others have not noticed it
    meet,  ///< those that are not in `lost` go on: all of them wait for that
    fail,  ///< they cannot
  } now = Now::work;
  std::vector<Failure> lost;
};

/// Of ranks that agree among themselves: `meet` is never said, they do so when they will. The run fails when all have
/// ended, or nothing was heard of an agreement for `agree_s`. Pure.
Regrouping::Now wait_for_agreement(std::span<const RankFacts> ranks, int may_be_lost, double now_s, double agree_s);

/// Whether all goes well, or will: what the first rank has still to do once it has made all steps, it does alone. Pure.
bool is_well(std::span<const RankFacts> ranks);

/// From what is known of the ranks that belong to the run. A rank is lost when it has ended, when it has reported an
/// error of its own, and when it hangs: it has said nothing for notice_s while the others know that one is lost, or
/// sooner where it is the one they name and none is gone. Where ranks have only lost one another, as with a cut
/// connection, the one that most of them name is lost, until no two are left that do; of equals the last.
///
/// Where the first one is lost after it has made all steps, those that wait for that go on. A run that has not begun or
/// whose input is wrong does not go on; nor where nobody is left. Pure.
Regrouping regroup(std::span<const RankFacts> ranks, int may_be_lost, double now_s, double notice_s, double report_s);

}  // namespace remuda::workers
