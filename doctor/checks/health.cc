#include <algorithm>
#include <fmt/format.h>

#include "doctor/checks/checks.h"
#include "doctor/xids.h"

namespace remuda::doctor {
namespace {

std::string reset(const Device& device) {
  return fmt::format("end what runs there, then: sudo nvidia-smi --gpu-reset -i {}", address(device));
}

/// Visits the fields of a device: is any reading missing because the device is lost, and has any status reading a
/// value?
struct LostSeeker {
  bool lost = false, told = false;

  template <typename T>
  void operator()(const char*, const Reading<T>& reading, const char*, bool = false) {
    lost |= !reading.has_value() && reading.missing().reason == MissingReason::lost;
    told |= in_status_ && reading.has_value();
  }
  void operator()(const char*, const Status& status, const char*) {
    in_status_ = true;
    Status::fields(status, *this);
    in_status_ = false;
  }
  template <typename T>
  void operator()(const char*, const T&, const char*, bool = false) {}

 private:
  bool in_status_ = false;
};

Diagnosis judge_xid(const Device& device) {
  if (!device.status.xid.has_value()) return skip_for(device.status.xid);
  const int code = device.status.xid.value();
  if (code == 0) return pass("");
  const auto known = std::ranges::find(kXids, code, &Xid::code);
  if (known == kXids.end())
    return warn(fmt::format("{} reported XID {}", called(device), code), "sudo dmesg | grep -i xid");
  const std::string sentence = fmt::format("{} reported XID {}: {}", called(device), code, known->meaning);
  return known->fatal ? fail(sentence, known->remedy) : warn(sentence, known->remedy);
}

Diagnosis judge_recovery(const Device& device) {
  const auto& action = device.status.recovery_action;
  if (!action.has_value()) return skip_for(action);
  switch (action.value()) {
    case RecoveryAction::none:
      return pass("");
    case RecoveryAction::reset:
      return fail(called(device) + " must be reset, as its driver says", reset(device));
    case RecoveryAction::reboot:
      return fail(called(device) + " needs a restart of the machine, as its driver says", "sudo reboot");
    case RecoveryAction::drain_peers:
      return fail(called(device) + " needs all traffic between GPUs to end, as its driver says",
                  "end what runs on all GPUs, then look again: remuda doctor");
    case RecoveryAction::drain_and_reset:
      return warn(called(device) + " works in part only, as its driver says",
                  "let what runs there end; then: sudo nvidia-smi --gpu-reset -i " + address(device));
    case RecoveryAction::other:
      break;
  }
  return fail(called(device) + " must be repaired in a way that its driver names and remuda does not know",
              "nvidia-smi -q -i " + address(device) + " | grep -i recovery");
}

Diagnosis judge_throttling(const Device& device) {
  if (!device.status.throttle.has_value()) return skip_for(device.status.throttle);
  const auto& reasons = device.status.throttle.value();
  const auto holds = [&](const char* reason) { return std::ranges::count(reasons, reason) > 0; };
  if (holds("hardware_thermal") || holds("thermal"))
    return warn(called(device) + " lowers its clocks because it is too hot",
                "look at fans, dust and airflow; remuda list shows its temperature");
  if (holds("power_brake"))
    return warn(called(device) + " lowers its clocks because the power supply asks it to",
                "look at the power supply and its cables");
  if (holds("hardware"))
    return warn(called(device) + " lowers its clocks to protect itself: heat, or too little power",
                "look at fans and power cables");
  return pass("");
}

}  // namespace

Diagnoses check_lost(const Inventory& inventory, const HostFacts&) {
  return over_gpus(inventory, "each answers", [](const Device& device) {
    LostSeeker seeker;
    Device::fields(device, seeker);
    if (!seeker.lost) return seeker.told ? pass("") : skip_for(device.status.memory_used_bytes);
    return fail(called(device) + " no longer answers: the driver has lost it",
                fmt::format("{}; if it stays lost, switch the machine off and on", reset(device)));
  });
}

Diagnoses check_ecc(const Inventory& inventory, const HostFacts&) {
  return over_gpus(inventory, "no uncorrected memory errors", [](const Device& device) {
    const auto& errors = device.status.ecc_uncorrected;
    if (!errors.has_value()) return skip_for(errors);
    if (errors.value() == 0) return pass("");
    return fail(fmt::format("{} has had {} that could not be corrected", called(device),
                            counted(static_cast<size_t>(std::max<int64_t>(errors.value(), 0)), "memory error")),
                fmt::format("{}; if more come, have the card serviced", reset(device)));
  });
}

Diagnoses check_row_remapping(const Inventory& inventory, const HostFacts&) {
  return over_gpus(inventory, "no memory row waits to be replaced", [](const Device& device) {
    const Reading<bool>&pending = device.status.remap_pending, &broken = device.status.remap_failed;
    if (broken.value_or(false))
      return fail(called(device) + " could not replace a bad memory row", "have the card serviced; do not train on it");
    if (pending.value_or(false))
      return warn(called(device) + " replaces a bad memory row at its next reset", reset(device));
    return pending.has_value() || broken.has_value() ? pass("") : skip_for(pending);
  });
}

Diagnoses check_xid(const Inventory& inventory, const HostFacts&) {
  return over_gpus(inventory, "no fatal error while watching", judge_xid);
}

Diagnoses check_recovery(const Inventory& inventory, const HostFacts&) {
  return over_gpus(inventory, "no driver asks for a reset", judge_recovery);
}

Diagnoses check_throttling(const Inventory& inventory, const HostFacts&) {
  return over_gpus(inventory, "neither heat nor power supply holds clocks down", judge_throttling);
}

}  // namespace remuda::doctor
