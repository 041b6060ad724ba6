// Outlook: what becomes of the jobs that wait: when each can start and where, what it would have to give up to start at
// once, and whose turn comes first as who has had how much. Pure; the scheduler itself decides, on copies of the pool.
// `remuda why`, the page and `remuda top` say the same, as it is from here.
#pragma once

#include <map>
#include <vector>

#include "base/json.h"
#include "device/inventory.h"
#include "place/held.h"
#include "place/relax.h"
#include "pool/forecast.h"
#include "pool/state.h"
#include "pool/usage.h"

namespace remuda::pool {

/// A pool at one moment. All of it outlives what is asked of it; `held` as for schedule().
struct Scene {
  const PoolState& state;
  const Inventory& inventory;
  const std::vector<place::Held>& held;
  const Policy& policy;
  double now_s = 0;
};

struct Outlook {
  Forecast start;
  /// What it would have to give up to start at once, where that is one thing: each with what remains. None for a job
  /// that starts in any case, that is paused, or beside which more than 200 wait.
  std::vector<place::Relaxation> would_start;
};
/// `job` waits and stands for no array.
Outlook outlook_of(const Scene& scene, const Job& job);
/// Of those whose turns come first, by their numbers. Some 10 ms for each of them where 200 wait.
std::map<int64_t, Outlook> outlooks(const Scene& scene, size_t at_most);

/// starts_s, starts_on and starts_after, or starts_unknown; would_start.
void add_outlook(const Outlook& outlook, Json& job);
/// [{"change", "request"}]
Json to_json(const std::vector<place::Relaxation>& relaxations);

/// A user as the order of turns sees them.
struct Standing {
  std::string user;
  double usage_s = 0;  ///< usage_of()
  double part = 0;     ///< of that of all users; 0 where nobody has any
  double holds = 0;    ///< devices; a half of one is a half
  size_t waiting = 0;  ///< jobs

  static constexpr const char* kName = "standing";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("user", self.user, "who", true);
    visit("usage_s", self.usage_s, "device seconds had, halved every half-life: who has fewest goes first", true);
    visit("part", self.part, "part of those of all users", true);
    visit("holds", self.holds, "devices held now", true);
    visit("waiting", self.waiting, "jobs that wait", true);
  }
};
/// Those that hold or wait for something, or have used as much as a minute of one device; who has had least comes
/// first.
std::vector<Standing> standings(const PoolState& state, const Policy& policy, double now_s);
/// {"half_life_s", "users": [...]}
Json standings_json(const PoolState& state, const Policy& policy, double now_s);

}  // namespace remuda::pool
