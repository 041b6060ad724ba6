// Hosts: what a snapshot says of machines, as people see it: their devices, who holds each and what it does, who waits.
// The page has the same rules in its own language (web/page/src/model.js); testdata/sentences.json holds both to one
// answer. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "device/device.h"
#include "device/words.h"
#include "snapshot/history.h"

namespace remuda::snapshot {

/// In the order in which the top sentence counts them.
enum class State {
  working,
  idle,     ///< held, and nothing runs
  held,     ///< and whether something runs is not known
  foreign,  ///< a process uses it without a lease
  drained,
  free,
  unclear,  ///< nothing is known of leases
  lost,     ///< it does not answer any more
  unknown,  ///< its host is silent
};

}  // namespace remuda::snapshot

template <>
struct remuda::Words<remuda::snapshot::State> {
  using S = snapshot::State;
  static constexpr std::array table{
      std::pair{S::working, "working"},         std::pair{S::idle, "held but idle"},
      std::pair{S::held, "held, load unknown"}, std::pair{S::foreign, "used without a lease"},
      std::pair{S::drained, "drained"},         std::pair{S::free, "free"},
      std::pair{S::unclear, "holder unknown"},  std::pair{S::lost, "lost"},
      std::pair{S::unknown, "not seen"}};
};

namespace remuda::snapshot {

inline constexpr double kIdle = 0.02;    ///< less of the time busy is idle
inline constexpr double kSilent_s = 30;  ///< a host that was not heard of for longer is not believed any more

/// What a lease was used for, as far as it is known: parts of the time held.
struct Use {
  std::optional<double> busy, effective;
  std::optional<double> cost;  ///< so far, by the tariffs of the policy
  bool is_cost_whole = true;   ///< nothing of it is unknown
  std::string currency;
};

struct Lease {
  int64_t job = 0;     ///< 0: there is no lease; somebody uses the device, or it is barred
  std::string device;  ///< its id
  std::string user, name, holder, barred;
  double since_s = 0, until_s = 0;  ///< seconds since 1970; 0: not known, no limit
  double share = 1;
  Use use;

  const std::string& who() const { return user.empty() ? holder : user; }
};

struct Waiting {
  int64_t id = 0;
  std::string user, name, why;
  double submitted_s = 0;
  double starts_s = 0;                   ///< when it starts at the latest, by the time limits of others; 0: not known
  int count = 1;                         ///< devices wanted
  std::vector<std::string> would_start;  ///< what it would have to give up to start at once: "with -n 1"; one suffices
};

/// What a run within a job said of itself last.
struct Run {
  struct Part {
    std::string device;                    ///< its label; its id where that is not known
    std::optional<double> share, waiting;  ///< of the samples of a step; of the time, for others
  };
  int64_t job = 0, step = 0, steps = 0;  ///< 0 steps: it is not known how many there are to be
  std::string user, name;
  double step_s = 0;                                    ///< 0: not known
  int64_t checkpoint_step = 0;                          ///< of the last checkpoint; 0: none yet
  double checkpoint_age_s = 0, checkpoint_every_s = 0;  ///< of that, else of the run; 0: it wants none
  std::vector<Part> parts;
};

struct Alert {
  std::string rule, device, text, value, limit, command;
  double since_s = 0;
  std::string acknowledged_by;  ///< who looks after it; empty: nobody
  double silenced_until_s = 0;

  /// Nobody looks after it, and it is to be heard of. Others are listed, and not counted.
  bool is_open() const { return acknowledged_by.empty() && silenced_until_s <= 0; }
};

/// A device, and what becomes of it now.
struct View {
  std::string key;  ///< "host/gpu:0": names it among all hosts
  std::string label, model;
  Device device;  ///< without readings where its host is silent: each says so
  State state = State::free;
  std::vector<Lease> leases;
  std::vector<std::string> holders;
  std::optional<double> held_s;  ///< for how long a job has had it; of jobs that share it, the first one
  std::string drained;           ///< why, where it is
};

struct Host {
  std::string name;
  double silent_s = 0;            ///< for how long it was not heard of
  bool has_silent_agent = false;  ///< what is here of leases and queue is that of `known_s`
  double known_s = 0;             ///< then: in seconds since 1970; 0: nothing is known of them
  std::vector<View> devices;
  std::vector<Lease> leases;
  std::vector<Waiting> waiting;  ///< in the order of their turns
  std::vector<Run> runs;
  std::vector<Alert> alerts;

  bool is_silent() const { return silent_s > kSilent_s; }
  bool knows_pool() const { return !has_silent_agent || known_s > 0; }
};

struct Seen {
  double time_s = 0;  ///< seconds since 1970
  bool is_recording = false;
  std::vector<Host> hosts;  ///< the first one is that of the snapshot
};

/// An error where the snapshot says that there is nothing to be seen, or has no machine that can be read.
Result<Seen> seen_in(const Json& snapshot);

/// Why there is no value, as a sentence; empty: nobody asked for it.
std::string reason_of(const Missing& missing);

/// What devices did in the last time, by their keys.
using Histories = std::map<std::string, History>;

/// The series of that name; null where there is none.
const Series* series_of(const History& history, std::string_view measure);

/// Seconds for which a series has been idle at its end; nothing where that is not known.
std::optional<double> idle_for(const Series& busy, double step_s);

/// For how long a device has been idle with the job that holds it, if it is known to be a minute and more.
std::optional<double> idle_for(const View& view, const Histories& histories);

}  // namespace remuda::snapshot
