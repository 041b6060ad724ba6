#include "place/health.h"

#include <algorithm>
#include <fmt/format.h>

#include "device/fields.h"

namespace remuda::place {
namespace {

struct HarmlessError {
  int code;
  const char* meaning;
};

// The errors that Kubernetes' device plugin ignores (internal/rm/health.go, 2026-08): errors of the program on the
// device.
constexpr HarmlessError kHarmless[] = {
    {13, "graphics engine exception"}, {31, "memory page fault"},         {43, "stopped processing"},
    {45, "preemptive cleanup"},        {68, "video processor exception"}, {109, "context switch timeout"},
};

/// Finds the first reading that is missing because the device is lost or nothing drives it.
struct Absence {
  std::optional<Missing> found;
  template <typename T>
  void operator()(const char*, const T& field, const char*, bool = false) {
    if (found) return;
    if constexpr (fields::kIsReading<T>) {
      if (field.has_value()) return;
      const Missing& missing = field.missing();
      if (missing.reason == MissingReason::lost || missing.reason == MissingReason::no_driver) found = missing;
    } else if constexpr (fields::Listed<T>) {
      T::fields(field, *this);
    }
  }
};

std::optional<Missing> absence_of(const Device& device) {
  Absence absence;
  Device::fields(device, absence);
  return absence.found;
}

const char* recovery_text(RecoveryAction action) {
  switch (action) {
    case RecoveryAction::none:
      break;
    case RecoveryAction::reset:
      return "must be reset, as its driver says";
    case RecoveryAction::reboot:
      return "needs a restart of the machine, as its driver says";
    case RecoveryAction::drain_peers:
      return "needs all traffic between devices to end, as its driver says";
    case RecoveryAction::drain_and_reset:
      return "works in part only and must be reset, as its driver says";
    case RecoveryAction::other:
      return "must be repaired in a way that its driver names and remuda does not know";
  }
  return "is well";
}

/// The action that a driver asks for says more than the code of its last error.
std::optional<std::string> own_ailment(const Device& device) {
  if (const auto absence = absence_of(device))
    return fmt::format("{}: {}", absence->reason == MissingReason::lost ? "is lost" : "has no driver", absence->detail);
  const Status& status = device.status;
  if (const RecoveryAction action = status.recovery_action.value_or(RecoveryAction::none);
      action != RecoveryAction::none)
    return recovery_text(action);
  const bool driver_asks_for_nothing = status.recovery_action.has_value();
  if (const int code = status.xid.value_or(0); code != 0 && !driver_asks_for_nothing && !is_harmless_error(code))
    return fmt::format("had a fatal error, the driver's code {}", code);
  if (status.remap_failed.value_or(false)) return "could not replace a faulty memory row and needs repair";
  if (status.remap_pending.value_or(false)) return "must be reset to replace a faulty memory row";
  return std::nullopt;
}

}  // namespace

bool is_unknown(const Device& device) {
  const auto absence = device.model.empty() ? absence_of(device) : std::nullopt;
  return absence && absence->reason == MissingReason::lost;
}

bool is_harmless_error(int code) {
  return std::ranges::find(kHarmless, code, &HarmlessError::code) != std::end(kHarmless);
}

std::optional<std::string> ailment(const Inventory& inventory, const Device& device) {
  if (auto own = own_ailment(device)) return own;
  const Device* parent = device.parent.empty() ? nullptr : inventory.find(device.parent);
  if (!parent) return std::nullopt;
  const auto of_parent = own_ailment(*parent);
  return of_parent ? std::optional(fmt::format("is part of {}, which {}", parent->label(), *of_parent)) : std::nullopt;
}

}  // namespace remuda::place
