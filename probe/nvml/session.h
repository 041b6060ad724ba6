// Session: the work of the guarded child. It keeps NVML open and answers each request with a full inventory.
//
// The protocol, in lines: first "ready", "absent SENTENCE" (no driver is installed) or "blind SENTENCE" (it does not
// answer); then for each byte from the parent the steps, as they
// begin ("open 3", "read 3", "links 3", "processes"), "changed " with the packed changes of the lists of processes
// (process_lists.h), and "found " with a packed inventory (device/packed.h) without these. So the parent always knows
// at which GPU the child hangs.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "device/inventory.h"
#include "probe/known_processes.h"
#include "probe/nvml/read_device.h"
#include "probe/nvml/read_links.h"

namespace remuda::probe::nvml {

inline constexpr std::string_view kReady = "ready", kAbsent = "absent ", kBlind = "blind ";
inline constexpr std::string_view kChanged = "changed ";  ///< begins the line with the changes of processes
inline constexpr std::string_view kFound = "found ";      ///< begins the line with the inventory

/// What made an earlier child hang or crash, and this one must not access.
struct Avoid {
  std::map<int, std::string> gpus;  ///< by index; why, in one sentence
  std::string processes;            ///< why not to read the owners of processes; empty = read them
};

class Session {
 public:
  using Announce = std::function<void(const std::string& step)>;

  /// `lib` is initialised. The references must outlive the session.
  Session(const Lib& lib, const KernelFiles& files, const Avoid& avoid, Announce announce);

  /// Every GPU that the library counts, in its order; those that cannot be read have the reason in each reading. Then
  /// partitions, links of every pair, the driver. The first of `notes` says why something could not be read. An entry
  /// of `probes` that is blind: it could not count them.
  Inventory read();

 private:
  Reading<Handle> open(unsigned index);
  Device read_gpu(unsigned index, Inventory& found);
  void place_unread(std::vector<Device>& gpus) const;
  void read_links(Inventory& found, size_t gpus);
  void describe_processes(Inventory& found);
  void describe(Process& process);
  Driver read_driver() const;

  const Lib& lib_;
  const KernelFiles& files_;
  const Avoid& avoid_;
  const Announce announce_;
  std::map<unsigned, OpenGpu> open_;
  std::map<unsigned, Missing> unread_;  ///< of the last read(): GPUs that could not be read, and why
  std::vector<Device> partitions_;      ///< of the last read()
  KnownProcesses processes_;
};

/// Runs in the child, to its end. `load` opens the library.
void serve(int socket, const std::function<Result<Lib>()>& load, const KernelFiles& files, const Avoid& avoid);

}  // namespace remuda::probe::nvml
