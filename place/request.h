// Request: which devices a job wants, and what of their host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/words.h"
#include "place/capability.h"
#include "place/where.h"

namespace remuda::place {

/// What must join the devices of a set: a ring through all of them that uses only such links.
enum class LinkNeed {
  any,     ///< no requirement
  p2p,     ///< each reads the other's memory directly
  nvlink,  ///< direct links besides PCIe: NVLink, and those of other makers
};

}  // namespace remuda::place

template <>
struct remuda::Words<remuda::place::LinkNeed> {
  static constexpr std::array table{std::pair{place::LinkNeed::any, "any"}, std::pair{place::LinkNeed::p2p, "p2p"},
                                    std::pair{place::LinkNeed::nvlink, "nvlink"}};
};

namespace remuda::place {

struct Request {
  static constexpr int kMostDevices = 256, kMostCores = 65536;

  int count = 1;
  int64_t memory_bytes = 0;  ///< free on each device; 0: any
  std::string model;         ///< a glob (place/glob.h); empty: any
  std::optional<Capability> capability;
  LinkNeed link = LinkNeed::any;
  bool any_model = false;            ///< unlike devices may make a set
  std::vector<std::string> devices;  ///< choose only among these, named as for Inventory::resolve; empty: all
  double share = 1;                  ///< part of each device
  std::optional<Where> where;
  bool cpu = false;               ///< CPU devices may be taken, after GPUs
  int cores = 0;                  ///< of the host, logical processors, for the job alone; 0: none is kept
  int64_t host_memory_bytes = 0;  ///< of the host, for all that the job is; 0: none is kept

  /// Whether each device is named: then there is nothing to choose, and they may be unlike.
  bool is_static() const { return devices.size() == static_cast<size_t>(count); }
};

/// Whether both have equal fields.
bool operator==(const Request& a, const Request& b);

/// A usage error of one sentence when the numbers make no sense.
Result<void> check(const Request& request);

/// What each device must be or have, as the verb of a sentence about one or several devices: "has 40 GiB or more and
/// can do bf16", "have ...", "can be taken" where nothing specific is asked.
std::string conditions_text(const Request& request, bool of_several);

}  // namespace remuda::place
