// Answer: the result of placement: the devices and why these, or why there are none now or ever.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"

namespace remuda::place {

/// Devices are named by label (gpu:0) in an explanation: it is for people.
struct Explanation {
  struct Pair {
    std::string a, b, label;  ///< "gpu:0", "gpu:1", "NV4"
    std::optional<double> gbps;
    bool measured = false;
  };
  struct Ring {
    double gbps = 0;
    std::string a, b, label;  ///< its slowest link
    std::string reason;       ///< where the figure comes from
  };
  struct Set {
    std::vector<std::string> devices;
    double gbps = 0;  ///< slowest link of its best ring
  };
  struct RunnerUp {
    std::vector<std::string> devices;
    std::string lost;  ///< why: "a slower ring: 10 GB/s (SYS, gpu:0 to gpu:4) against 300 GB/s"
  };
  struct Rejected {
    std::string device, reason;  ///< "gpu:2", "is held by alice"
  };

  std::vector<std::string> devices;
  std::optional<Ring> ring;  ///< nothing for one device and where its links are not known
  std::vector<Pair> links;   ///< of each pair of the set, for sets of at most 16
  std::vector<int> numa_nodes;
  std::vector<std::string> pcie_roots;
  std::vector<std::string> left;  ///< devices that stay free
  std::optional<Set> left_pair, left_four;
  std::vector<RunnerUp> runners_up;  ///< at most 3, the best first
  std::vector<Rejected> rejected;
  int64_t considered = 0;  ///< sets that satisfy the request and were compared
  bool exhaustive = true;  ///< those are all such sets; otherwise a note says which were compared
  bool one_model = false;  ///< free devices are of several models, and sets of unlike ones do not satisfy the request
  std::string shares_basis;
  std::vector<std::string> notes;
};

struct Placement {
  std::vector<std::string> devices;  ///< ids, in inventory order
  std::vector<int> cores;            ///< of the host, as many as were asked for, ascending
  /// For unlike devices: the part of the work each should get, in the order of devices; empty for like ones.
  std::vector<double> shares;
  Explanation explanation;
};

struct Blocker {
  std::string device, holder;  ///< label; the holder, or the device's fault
  double share = 1;
  std::optional<double> since_s, until_s;  ///< as in Held
};

/// The exit statuses of commands that get no placement.
inline constexpr int kNever = 3, kNotNow = 4;

struct Refusal {
  bool never = false;  ///< this machine has no such devices; otherwise it has them, but not free now
  std::string sentence;
  std::vector<Blocker> blockers;     ///< where `never` is false
  std::optional<double> earliest_s;  ///< when enough devices become free, where the ends of their holders are known
  std::vector<Explanation::Rejected> rejected;
};

using Answer = std::variant<Placement, Refusal>;

/// {devices: [id], shares?: [part], explanation: {...}} or {refused: "never" | "not now", sentence, ...}
Json to_json(const Placement& placement);
Json to_json(const Refusal& refusal);

/// Lines for people.
std::string explanation_text(const Placement& placement);
/// The text after the sentence: who holds what and since when, and what was rejected.
std::string refusal_text(const Refusal& refusal);

}  // namespace remuda::place
