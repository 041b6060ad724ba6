// Host: cores and memory of the host beside the devices of a job. Pure.
//
// A core is a logical processor, named by the kernel's number; it is held by one job at the most. The cores of a CPU
// device that is held, whole or in part, are taken; and of a CPU device, the part is held that its held cores are.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "place/answer.h"
#include "place/held.h"
#include "place/request.h"

namespace remuda::place {

/// The cores of the host, ascending: those of its CPU devices, or else of its NUMA nodes.
Reading<std::vector<int>> host_cores(const Inventory& inventory);
/// The memory of the host: that of its CPU devices, or else of its NUMA nodes.
Reading<int64_t> host_memory(const Inventory& inventory);

/// What is held, with the parts of CPU devices whose cores are held for jobs.
std::vector<Held> with_held_cores(const Inventory& inventory, std::span<const Held> held);

/// Whether it asks for more than devices.
inline bool wants_host(const Request& request) { return request.cores > 0 || request.host_memory_bytes > 0; }
/// These cores, and the memory that is asked for, as `holder` holds them.
Held host_part(std::vector<int> cores, const Request& request, std::string holder);

/// What of the host is not held.
class HostRoom {
 public:
  /// The arguments outlive it.
  HostRoom(const Inventory& inventory, std::span<const Held> held);

  bool fits(const Request& request) const;
  /// Why the host never has so much; nothing where it does.
  std::optional<Refusal> never(const Request& request) const;
  /// Who holds it now; nothing where there is room. To be asked where never() says nothing.
  std::optional<Refusal> not_now(const Request& request) const;
  /// "8 cores wanted, 4 free", or the same of memory; to be asked where it does not fit.
  std::string shortage(const Request& request) const;
  /// As many free cores as are wanted: first those next to the devices, then any; each in ascending order.
  std::vector<int> choose_cores(const Request& request, const std::vector<std::string>& devices) const;

 private:
  std::vector<int> free_cores(std::optional<double> at_s = {}) const;
  int64_t free_bytes(std::optional<double> at_s = {}) const;
  std::optional<double> earliest(const Request& request) const;

  const Inventory& inventory_;
  const std::span<const Held> held_;
  Reading<std::vector<int>> cores_;
  Reading<int64_t> bytes_;
};

/// "8 cores and 32 GiB of the host"; empty where none is wanted.
std::string host_text(const Request& request);

}  // namespace remuda::place
