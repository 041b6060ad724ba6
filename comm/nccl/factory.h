// The libraries of NVIDIA (NCCL) and AMD (RCCL), which have one interface.
//
// Each rank finds its library, rank 0 makes an id, and with it all ranks join. What is between these steps, the ranks'
// agreement, is the caller's.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/device_collectives.h"

namespace remuda::comm::nccl {

using Id = std::array<char, 128>;

/// A library that is loaded and can be used.
class Library {
 public:
  virtual ~Library() = default;
  /// "NCCL 2.21.5".
  virtual std::string name() const = 0;
  virtual Result<Id> make_id() const = 0;
  /// Returns when all ranks have joined, or with an error.
  virtual Result<std::unique_ptr<DeviceCollectives>> join(const Id& id, int rank, int size, double timeout_s) const = 0;
};

/// The library for devices of this maker, "cuda" or "hip". The error says in one sentence why there is none.
Result<std::unique_ptr<Library>> find(const std::string& maker, const std::vector<std::string>& folders);

}  // namespace remuda::comm::nccl
