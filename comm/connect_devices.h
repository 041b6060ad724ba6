// Joining the devices of a job's ranks by the library of their maker: what connect() is for memory of the host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "comm/device_collectives.h"

namespace remuda::comm {

/// The device of a rank, as the others have to know it.
struct DevicePlace {
  std::string kind;     ///< of device, for people: "cpu", "cuda"
  std::string maker;    ///< the prefix of its maker's run-time functions, "cuda" or "hip"; empty where none are loaded
  std::string address;  ///< where it is on its host: two ranks with one address share a device
  std::string host;     ///< empty: what the system says
};

struct DeviceCollectivesOptions {
  DevicePlace place;
  std::vector<std::string> folders;  ///< where the library may lie that the system does not find
  double connect_timeout_s = 60;
};

/// Either `collectives`, or a sentence that says why there are none; the same on all ranks.
struct OpenedCollectives {
  std::unique_ptr<DeviceCollectives> collectives;
  std::string why_not;
};

/// Collective. Finds the library, agrees on it and joins the ranks' devices; the calling thread's current device is
/// the one that the rank computes on. Errors are those of `communicator`.
Result<OpenedCollectives> open_device_collectives(Communicator& communicator, const DeviceCollectivesOptions& options);

/// Collective. Each rank gives its outcome, and all get the message of the first that is an error, behind the number of
/// its rank; empty: there is none. Errors are those of `communicator`.
Result<std::string> first_error(Communicator& communicator, const Result<void>& mine, uint32_t label);

}  // namespace remuda::comm
