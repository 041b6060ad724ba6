// Sharing: how a job's part of a device is kept to that part, and which of its limits hold. Pure.
//
//   partition    the driver's own part of a GPU: memory and computing are limited, by the hardware
//   daemon       the maker's sharing daemon (share/mps.h): the memory of each process is limited; its part of the
//                multiprocessors is not guaranteed, as others may leave too little of them idle
//   time_slices  processes take turns, each as long as any other: nothing is limited
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"
#include "device/words.h"

namespace remuda::share {

enum class Sharing { whole, partition, daemon, time_slices };
}  // namespace remuda::share

template <>
struct remuda::Words<remuda::share::Sharing> {
  static constexpr std::array table{
      std::pair{share::Sharing::whole, "whole"}, std::pair{share::Sharing::partition, "mig"},
      std::pair{share::Sharing::daemon, "mps"}, std::pair{share::Sharing::time_slices, "time slices"}};
};

namespace remuda::share {

/// How one device of a job is shared.
struct Shared {
  std::string device;  ///< its id
  Sharing how = Sharing::whole;
  std::string why;  ///< with time slices: why no daemon is used, as half a sentence
};

/// What a job asks of one device, and what prevents the use of the daemon.
struct ShareWish {
  double share = 1;
  size_t devices = 1;        ///< that a process of the job sees; a process has room for one daemon
  std::string no_daemon;     ///< why the device's maker or this machine offers none; empty where there is one
  std::string other_holder;  ///< another user who shares the device already; empty where there is none
};
Shared decide_sharing(const Device& device, const ShareWish& wish);

/// How much of the device's memory a process may have: share * memory, rounded down to whole MiB, so that all parts
/// never add up to more than the device has; 0 where its memory is not known.
int64_t shared_memory_bytes(const Device& device, double share);

/// Whether the job cannot have more than its part.
struct Limits {
  bool memory_hard = false, compute_hard = false;
};
Limits limits_of(Sharing how);

/// What is shared how, and which limits are hard, as one line for people; empty where all devices are whole.
std::string sharing_text(const Inventory& inventory, const std::vector<Shared>& devices, double share);

}  // namespace remuda::share
