#include "probe/nvml/map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "base/text.h"
#include "device/pci_address.h"

namespace remuda::probe::nvml {
namespace {

struct Failure {
  Code code;
  MissingReason reason;
  const char* clause;
};

constexpr std::array kFailures{
    Failure{kUninitialized, MissingReason::no_driver, "the driver's library was not started"},
    Failure{kInvalidArgument, MissingReason::unsupported, "the driver does not know this question here"},
    Failure{kNotSupported, MissingReason::unsupported, "not offered by this device"},
    Failure{kNoPermission, MissingReason::denied, "this user may not read it"},
    Failure{kNotFound, MissingReason::unsupported, "the driver finds none"},
    Failure{kInsufficientPower, MissingReason::lost, "the card's power cables are not attached properly"},
    Failure{kDriverNotLoaded, MissingReason::no_driver, "the driver's kernel module is not loaded"},
    Failure{kTimeout, MissingReason::lost, "the driver gave up waiting for the device"},
    Failure{kIrqIssue, MissingReason::lost, "the kernel does not get the device's interrupts"},
    Failure{kFunctionNotFound, MissingReason::unsupported, "not offered by this version of the driver"},
    Failure{kCorruptedInforom, MissingReason::unsupported, "the card's own record of itself is corrupted"},
    Failure{kGpuIsLost, MissingReason::lost, "the GPU has fallen off the bus"},
    Failure{kResetRequired, MissingReason::lost, "the GPU must be reset before it can be used again"},
    Failure{kOperatingSystem, MissingReason::denied, "the operating system blocks the device, as a cgroup does"},
    Failure{
        kVersionMismatch, MissingReason::no_driver,
        "the driver's library and the loaded kernel module are of different versions (error 18), as after an upgrade: "
        "restart the machine or reload the module"},
    Failure{kInUse, MissingReason::denied, "another program holds the device"},
    Failure{kNoData, MissingReason::unsupported, "the driver has no data yet"},
    Failure{kArgumentVersionMismatch, MissingReason::unsupported, "this version of the driver answers in another form"},
    Failure{kNotReady, MissingReason::unsupported, "the driver is not ready yet"},
    Failure{kGpuNotFound, MissingReason::unsupported, "the driver finds no GPU"},
};

constexpr std::array kThrottle{std::pair{0x1, "idle"},
                               std::pair{0x2, "application_clocks"},
                               std::pair{0x4, "power_cap"},
                               std::pair{0x8, "hardware"},
                               std::pair{0x10, "sync_boost"},
                               std::pair{0x20, "thermal"},
                               std::pair{0x40, "hardware_thermal"},
                               std::pair{0x80, "power_brake"},
                               std::pair{0x100, "display"}};

Missing odd(std::string_view what, int64_t value) {
  return {MissingReason::unsupported, fmt::format("{}: the driver answers {}, which is not known", what, value)};
}

std::optional<int> generation_of_chip(Capability capability) {
  switch (capability.major) {
    case 6:
      return 1;
    case 7:
      return 2;
    case 8:
      return 3;
    case 9:
      return 4;
    case 10:
      return 5;
    default:
      return std::nullopt;
  }
}

}  // namespace

Missing why(Code code, std::string_view what) {
  const auto* known = std::ranges::find(kFailures, code, &Failure::code);
  if (known == kFailures.end())
    return {MissingReason::unsupported, fmt::format("{}: the driver answers with error {}", what, code)};
  return {known->reason, fmt::format("{}: {}", what, known->clause)};
}

Missing no_call(std::string_view what) { return why(kFunctionNotFound, what); }

Missing no_sense(std::string_view what) {
  return {MissingReason::unsupported, fmt::format("{}: the driver's answer makes no sense", what)};
}

std::optional<std::string> address_of(const PciInfo& pci) {
  const std::string_view text(pci.bus_id, sizeof pci.bus_id);
  auto address = pci_address(text.substr(0, text.find('\0')));
  if (!address) address = pci_address(fmt::format("{:x}:{:x}:{:x}.0", pci.domain, pci.bus, pci.device));
  return address == "0000:00:00.0" ? std::nullopt : address;  // no GPU or switch has this address
}

Reading<Path> path_of(unsigned level) {
  switch (level) {
    case 0:
      return Path::psb;
    case 10:
      return Path::pix;
    case 20:
      return Path::pxb;
    case 30:
      return Path::phb;
    case 40:
      return Path::node;
    case 50:
      return Path::sys;
    default:
      return odd("common ancestor", level);
  }
}

PeerAccess peer_access_of(unsigned status) {
  constexpr std::array kStatus{PeerAccess::ok,       PeerAccess::chipset,  PeerAccess::gpu,
                               PeerAccess::topology, PeerAccess::disabled, PeerAccess::unsupported};
  return status < kStatus.size() ? kStatus[status] : PeerAccess::unknown;
}

Reading<ComputeMode> compute_mode_of(unsigned mode) {
  constexpr std::array kModes{ComputeMode::shared, ComputeMode::exclusive, ComputeMode::prohibited,
                              ComputeMode::exclusive};
  if (mode < kModes.size()) return kModes[mode];
  return odd("compute mode", mode);
}

RecoveryAction recovery_action_of(unsigned action) {
  // nvmlDeviceGpuRecoveryAction_t, from 0 on
  constexpr std::array kActions{RecoveryAction::none, RecoveryAction::reset, RecoveryAction::reboot,
                                RecoveryAction::drain_peers, RecoveryAction::drain_and_reset};
  return action < kActions.size() ? kActions[action] : RecoveryAction::other;
}

std::vector<std::string> throttle_reasons_of(uint64_t bits) {
  std::vector<std::string> words;
  for (const auto& [bit, word] : kThrottle) {
    if (bits & static_cast<uint64_t>(bit)) words.emplace_back(word);
    bits &= ~static_cast<uint64_t>(bit);
  }
  if (bits) words.emplace_back("other");
  return words;
}

Reading<std::string> runtime_version_of(int version) {
  if (version < 1000) return odd("runtime version", version);
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::optional<std::string> architecture_name(unsigned architecture) {
  constexpr std::array kNames{std::pair{2u, "Kepler"}, std::pair{3u, "Maxwell"}, std::pair{4u, "Pascal"},
                              std::pair{5u, "Volta"},  std::pair{6u, "Turing"},  std::pair{7u, "Ampere"},
                              std::pair{8u, "Ada"},    std::pair{9u, "Hopper"},  std::pair{10u, "Blackwell"},
                              std::pair{13u, "Rubin"}};
  for (const auto& [number, name] : kNames)
    if (number == architecture) return name;
  return std::nullopt;
}

std::optional<std::string> architecture_name(Capability capability) {
  constexpr int kNewest = 121;
  constexpr std::array kOldest{std::pair{30, "Kepler"}, std::pair{50, "Maxwell"}, std::pair{60, "Pascal"},
                               std::pair{70, "Volta"},  std::pair{75, "Turing"},  std::pair{80, "Ampere"},
                               std::pair{89, "Ada"},    std::pair{90, "Hopper"},  std::pair{100, "Blackwell"}};
  const int chip = capability.major * 10 + capability.minor;
  std::optional<std::string> name;
  for (const auto& [oldest, architecture] : kOldest)
    if (oldest <= chip && chip <= kNewest) name = architecture;
  return name;
}

std::optional<int> cores_per_multiprocessor(Capability capability) {
  switch (capability.major) {
    case 3:
      return 192;
    case 5:
    case 9:
    case 10:
    case 12:
      return 128;
    case 6:
    case 8:
      return capability.minor == 0 ? 64 : 128;
    case 7:
      return 64;
    default:
      return std::nullopt;
  }
}

std::optional<int> nvlink_generation(std::optional<Capability> capability, unsigned version) {
  if (capability) return generation_of_chip(*capability);
  constexpr std::array kSame{0, 1, 2, 2, 0, 3};
  if (version >= kSame.size() || kSame[version] == 0) return std::nullopt;
  return kSame[version];
}

std::optional<std::string> profile_of(const Attributes& attributes, int64_t memory_bytes) {
  constexpr double kMib = 1 << 20, kGib = 1 << 30;
  const unsigned gpu = attributes.gpu_slices, compute = attributes.compute_slices;
  if (gpu == 0 || attributes.memory_mib == 0 || memory_bytes <= 0) return std::nullopt;
  const double share = static_cast<double>(attributes.memory_mib) * kMib / static_cast<double>(memory_bytes);
  const double gigabytes = std::ceil(share * 8) / 8 * std::ceil(static_cast<double>(memory_bytes) / kGib);
  const std::string slices = compute == 0 || compute == gpu ? "" : fmt::format("{}c.", compute);
  return fmt::format("{}{}g.{:.0f}gb", slices, gpu, std::round(gigabytes));
}

std::optional<std::string> profile_name(const GpuInstanceProfile& profile, int64_t memory_bytes) {
  return profile_of({.gpu_slices = profile.slices, .compute_slices = profile.slices, .memory_mib = profile.memory_mib},
                    memory_bytes);
}

}  // namespace remuda::probe::nvml
