// The binary interface of libnccl.so.2 and librccl.so.1, as far as remuda uses it: written from its public description
// (2.14 to 2.30) with our own names; sizes and offsets are checked here. The two libraries have the same functions.
#pragma once

#include <climits>
#include <cstddef>
#include <type_traits>

namespace remuda::comm::nccl {

/// What calls return; an enum in the library. The values used here:
using Code = int;
inline constexpr Code kSuccess = 0;
inline constexpr Code kSystemError = 2;
inline constexpr Code kInvalidUsage = 5;
inline constexpr Code kInProgress = 7;  ///< of a call that does not wait: ask async_error() until it is another

/// Types of elements.
using Type = int;
inline constexpr Type kUint8 = 1;
inline constexpr Type kFloat32 = 7;
inline constexpr Type kFloat64 = 8;

/// Operations of a reduction.
using Operation = int;
inline constexpr Operation kSum = 0;

using Comm = struct OpaqueComm*;

/// By which the ranks of one group find each other; rank 0 makes it.
struct UniqueId {
  char bytes[128];
};
static_assert(sizeof(UniqueId) == 128 && std::is_trivially_copyable_v<UniqueId>);

/// The number of a version: before 2.9 it had one digit less for the second part.
constexpr int version_code(int major, int minor, int patch) { return major * 10000 + minor * 100 + patch; }
/// The first whose calls need not wait, so that one that hangs can be given up.
inline constexpr int kLeastVersion = version_code(2, 14, 0);

/// How a group is made, as 2.14 has it. Newer versions fill in what they have added, since `version` says which fields
/// there are; the last one here is padding of 2.14, the place of a field that they then do not read.
struct Config {
  size_t size = 24;
  unsigned magic = 0xcafebeef;
  unsigned version = kLeastVersion;
  int blocking = 0;
  int padding = INT_MIN;
};
static_assert(sizeof(Config) == 24 && offsetof(Config, blocking) == 16);

}  // namespace remuda::comm::nccl
