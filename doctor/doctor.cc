#include "doctor/doctor.h"

#include <array>

#include "doctor/checks/checks.h"

namespace remuda::doctor {
namespace {

enum class Needs { inventory, host };

struct Check {
  const char* group;
  const char* name;
  Needs needs;  ///< host: its result is useful without an inventory
  Diagnoses (*run)(const Inventory& inventory, const HostFacts& facts);
};

constexpr std::array kChecks{
    Check{"driver", "probe", Needs::inventory, check_probes},
    Check{"driver", "driver", Needs::inventory, check_driver},
    Check{"driver", "driven", Needs::inventory, check_driven},
    Check{"driver", "driver_match", Needs::inventory, check_driver_match},
    Check{"driver", "device_files", Needs::inventory, check_device_files},
    Check{"framework", "torch", Needs::host, check_torch},
    Check{"framework", "torch_runtime", Needs::inventory, check_torch_runtime},
    Check{"framework", "torch_targets", Needs::inventory, check_torch_targets},
    Check{"framework", "torch_store", Needs::host, check_torch_store},
    Check{"framework", "collectives", Needs::inventory, check_collectives},
    Check{"framework", "device_order", Needs::inventory, check_device_order},
    Check{"health", "lost", Needs::inventory, check_lost},
    Check{"health", "ecc", Needs::inventory, check_ecc},
    Check{"health", "row_remapping", Needs::inventory, check_row_remapping},
    Check{"health", "xid", Needs::inventory, check_xid},
    Check{"health", "recovery", Needs::inventory, check_recovery},
    Check{"health", "throttling", Needs::inventory, check_throttling},
    Check{"modes", "persistence", Needs::inventory, check_persistence},
    Check{"modes", "compute_mode", Needs::inventory, check_compute_mode},
    Check{"modes", "partitions", Needs::inventory, check_partitions},
    Check{"modes", "orphans", Needs::inventory, check_orphans},
    Check{"wiring", "pcie", Needs::inventory, check_pcie},
    Check{"wiring", "peer_access", Needs::inventory, check_peer_access},
    Check{"wiring", "isolation", Needs::inventory, check_isolation},
    Check{"wiring", "numa_balance", Needs::inventory, check_numa_balance},
    Check{"wiring", "numa_memory", Needs::inventory, check_numa_memory},
    Check{"wiring", "cores", Needs::inventory, check_cores},
    Check{"host", "shared_memory", Needs::host, check_shared_memory},
    Check{"host", "locked_memory", Needs::host, check_locked_memory},
    Check{"host", "open_files", Needs::host, check_open_files},
    Check{"host", "pid_namespace", Needs::host, check_pid_namespace},
    Check{"host", "confinement", Needs::inventory, check_confinement},
    Check{"host", "pool", Needs::host, check_pool},
};

}  // namespace

std::vector<Diagnosis> examine(const Result<Inventory>& inventory, const HostFacts& facts) {
  std::vector<Diagnosis> all;
  if (!inventory) {
    all.push_back(
        fail(inventory.error().message, "sudo dmesg | tail -50 may name the device that hangs; then: sudo reboot"));
    all.back().name = "machine";
    all.back().group = "driver";
  }
  const Inventory nothing;
  for (const Check& check : kChecks) {
    const bool blind = !inventory && check.needs == Needs::inventory;
    Diagnoses diagnoses =
        blind ? Diagnoses{skip(inventory.error().message)} : check.run(inventory ? *inventory : nothing, facts);
    for (Diagnosis& diagnosis : diagnoses) {
      diagnosis.name = check.name;
      diagnosis.group = check.group;
      all.push_back(std::move(diagnosis));
    }
  }
  return all;
}

}  // namespace remuda::doctor
