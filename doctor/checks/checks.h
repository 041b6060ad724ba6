// The checks: pure functions of inventory and facts. Each returns at least one diagnosis; the table in doctor.cc fills
// in name and group.
#pragma once

#include "device/inventory.h"
#include "doctor/checks/judge.h"
#include "doctor/facts.h"

namespace remuda::doctor {

// driver.cc: has each GPU a driver, and do the parts of the driver fit together
Diagnoses check_probes(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_driver(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_driven(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_driver_match(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_device_files(const Inventory& inventory, const HostFacts& facts);

// framework.cc: are driver, GPUs and PyTorch compatible
Diagnoses check_torch(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_torch_runtime(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_torch_targets(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_torch_store(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_collectives(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_device_order(const Inventory& inventory, const HostFacts& facts);

// health.cc: is each GPU without faults
Diagnoses check_lost(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_ecc(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_row_remapping(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_xid(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_recovery(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_throttling(const Inventory& inventory, const HostFacts& facts);

// modes.cc: is each GPU in a mode in which it can be used
Diagnoses check_persistence(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_compute_mode(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_partitions(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_orphans(const Inventory& inventory, const HostFacts& facts);

// wiring.cc: do the GPUs reach each other, the host's memory and its cores as fast as possible
Diagnoses check_pcie(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_peer_access(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_isolation(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_numa_balance(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_numa_memory(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_cores(const Inventory& inventory, const HostFacts& facts);

// host.cc: does the host give processes what they need
Diagnoses check_shared_memory(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_locked_memory(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_open_files(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_pid_namespace(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_confinement(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_pool(const Inventory& inventory, const HostFacts& facts);

}  // namespace remuda::doctor
