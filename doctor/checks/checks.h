// The checks: pure functions of what is known. Each returns one diagnosis or several, at least one; name and group are
// filled in by the table in doctor.cc.
#pragma once

#include "device/inventory.h"
#include "doctor/checks/judge.h"
#include "doctor/facts.h"

namespace remuda::doctor {

// driver.cc: is each GPU driven, and by one whole driver
Diagnoses check_probes(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_driver(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_driven(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_driver_match(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_device_files(const Inventory& inventory, const HostFacts& facts);

// framework.cc: do driver, GPUs and PyTorch fit together
Diagnoses check_torch(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_torch_runtime(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_torch_targets(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_torch_store(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_collectives(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_device_order(const Inventory& inventory, const HostFacts& facts);

// health.cc: is each GPU well
Diagnoses check_lost(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_ecc(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_row_remapping(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_xid(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_recovery(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_throttling(const Inventory& inventory, const HostFacts& facts);

// modes.cc: is each GPU set up to be used
Diagnoses check_persistence(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_compute_mode(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_partitions(const Inventory& inventory, const HostFacts& facts);
Diagnoses check_orphans(const Inventory& inventory, const HostFacts& facts);

// wiring.cc: do the GPUs reach each other, the host's memory and its cores as they could
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
