#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <set>

#include "base/version_number.h"
#include "doctor/checks/checks.h"
#include "doctor/cuda_drivers.h"

namespace remuda::doctor {
namespace {

constexpr const char* kGetTorch = "install the build for your GPU that pytorch.org/get-started names";
constexpr const char* kUpdateDriver = "update the driver, or install a PyTorch built with an older CUDA (pytorch.org)";

bool any_gpu(const Inventory& inventory, bool (*is_of)(std::string_view)) {
  return std::ranges::any_of(gpus(inventory), [&](const Device* device) { return is_of(device->vendor); });
}

const Driver* cuda_driver(const Inventory& inventory) {
  const auto found =
      std::ranges::find_if(inventory.drivers, [](const Driver& driver) { return is_nvidia(driver.vendor); });
  return found == inventory.drivers.end() ? nullptr : &*found;
}

/// The row for a runtime: that of its minor version, else that of its major one.
const CudaDriver* row_for(const std::vector<int>& runtime) {
  const auto found = std::ranges::find_if(kCudaDrivers, [&](const CudaDriver& row) {
    const auto version = leading_numbers(row.runtime);
    return version.size() <= runtime.size() && std::equal(version.begin(), version.end(), runtime.begin());
  });
  return found == kCudaDrivers.end() ? nullptr : &*found;
}

/// Whether the driver serves the runtime without the limits of minor-version compatibility.
bool serves_fully(const Driver& driver, const std::string& runtime) {
  return driver.runtime_version.has_value() &&
         leading_numbers(driver.runtime_version.value()) >= leading_numbers(runtime);
}

Diagnosis judge_runtime(const std::string& runtime, const Driver& driver) {
  if (serves_fully(driver, runtime))
    return pass(fmt::format("PyTorch's CUDA {} is served by the driver, which goes up to {}", runtime,
                            driver.runtime_version.value()));
  if (!driver.version.has_value()) return skip_for(driver.version);
  const std::vector<int> wanted = leading_numbers(runtime);
  const CudaDriver* row = row_for(wanted);
  if (!row) return skip(fmt::format("remuda does not know which driver serves CUDA {}", runtime));
  const std::string& version = driver.version.value();
  if (leading_numbers(version) < leading_numbers(row->driver))
    return fail(
        fmt::format("PyTorch's CUDA {} needs driver {} or newer; this one is {}", runtime, row->driver, version),
        kUpdateDriver);
  return pass(fmt::format("PyTorch's CUDA {} runs on driver {} by minor-version compatibility", runtime, version));
}

struct Capability {
  int major = 0, minor = 0;
};

/// "8.6" of a device.
std::optional<Capability> capability_of(const Device& device) {
  const auto numbers = leading_numbers(device.compute_capability.value_or(""));
  if (numbers.size() != 2) return std::nullopt;
  return Capability{numbers[0], numbers[1]};
}

enum class Fit { none, binary, compiled };

/// sm_XY runs on X.Y and later minor versions of X; compute_XY is compiled for anything from X.Y on; with the suffix a,
/// only for that exact capability.
Fit fit_of(std::string_view target, Capability wanted) {
  const bool is_binary = target.starts_with("sm_");
  if (!is_binary && !target.starts_with("compute_")) return Fit::none;
  target.remove_prefix(target.find('_') + 1);
  const bool exact = target.ends_with('a');
  const auto number = leading_numbers(target);
  if (number.empty()) return Fit::none;
  const Capability has{number[0] / 10, number[0] % 10};
  const bool same = has.major == wanted.major && has.minor == wanted.minor;
  if (exact || target.ends_with('f')) {
    const bool family = !exact && has.major == wanted.major && has.minor <= wanted.minor;
    return same || family ? (is_binary ? Fit::binary : Fit::compiled) : Fit::none;
  }
  if (is_binary) return has.major == wanted.major && has.minor <= wanted.minor ? Fit::binary : Fit::none;
  return number[0] <= wanted.major * 10 + wanted.minor ? Fit::compiled : Fit::none;
}

Fit best_fit(const std::vector<std::string>& targets, Capability wanted) {
  Fit best = Fit::none;
  for (const std::string& target : targets) {
    const Fit fit = fit_of(target, wanted);
    if (fit == Fit::binary) return fit;
    if (fit == Fit::compiled) best = fit;
  }
  return best;
}

Diagnosis judge_capability(const Device& device, const Torch& torch, const Driver* driver) {
  const auto wanted = capability_of(device);
  if (!wanted) return skip_for(device.compute_capability);
  const auto& targets = torch.targets.value();
  const Fit fit = best_fit(targets, *wanted);
  if (fit == Fit::binary) return pass("");
  const std::string name = fmt::format("{}, compute capability {}.{}", called(device), wanted->major, wanted->minor);
  if (fit == Fit::none)
    return fail(fmt::format("PyTorch {} has no code for {}; it has {}", torch.version, name, fmt::join(targets, " ")),
                kGetTorch);
  if (driver && driver->runtime_version.has_value() && !serves_fully(*driver, torch.cuda))
    return fail(fmt::format("PyTorch {} has only PTX of CUDA {} for {}, and the driver compiles PTX up to {}",
                            torch.version, torch.cuda, name, driver->runtime_version.value()),
                kUpdateDriver);
  return warn(fmt::format("PyTorch {} has only PTX for {}: the first start compiles for minutes", torch.version, name),
              kGetTorch);
}

Diagnosis judge_gfx(const Device& device, const Torch& torch) {
  const std::string target = device.architecture.value_or("");
  if (!target.starts_with("gfx")) return skip("no GPU reported its architecture");
  const auto bare = [](const std::string& text) { return text.substr(0, text.find(':')); };
  const auto& targets = torch.targets.value();
  if (std::ranges::any_of(targets, [&](const std::string& one) { return bare(one) == bare(target); })) return pass("");
  return fail(fmt::format("PyTorch {} has no code for {}, {}; it has {}", torch.version, called(device), target,
                          fmt::join(targets, " ")),
              kGetTorch);
}

Diagnosis judge_library(const char* name, const Reading<Library>& library, const Reading<Torch>& torch) {
  if (library.has_value())
    return pass(library.value().version.has_value() ? fmt::format("{} {}", name, library.value().version.value())
                                                    : fmt::format("{} in {}", name, library.value().path));
  if (torch.has_value()) return skip(fmt::format("{}: no library beside PyTorch, which may hold it within", name));
  return skip_for(library);
}

}  // namespace

Diagnoses check_torch(const Inventory& inventory, const HostFacts& facts) {
  if (!facts.software.torch.has_value()) return {skip_for(facts.software.torch)};
  const Torch& torch = facts.software.torch.value();
  const std::string built = !torch.cuda.empty()  ? "CUDA " + torch.cuda
                            : !torch.hip.empty() ? "HIP " + torch.hip
                                                 : "CPUs alone";
  const std::string sentence = fmt::format("PyTorch {} for {}, in {}", torch.version, built, torch.folder);
  Diagnoses all;
  if (any_gpu(inventory, is_nvidia) && torch.cuda.empty())
    all.push_back(warn(sentence + ": it does not use the NVIDIA GPUs", kGetTorch));
  if (any_gpu(inventory, is_amd) && torch.hip.empty())
    all.push_back(warn(sentence + ": it does not use the AMD GPUs", kGetTorch));
  if (all.empty()) all.push_back(pass(sentence));
  return all;
}

Diagnoses check_torch_runtime(const Inventory& inventory, const HostFacts& facts) {
  if (!any_gpu(inventory, is_nvidia))
    return {inventory.unseen().empty() ? skip("no NVIDIA GPU here") : no_gpu(inventory)};
  if (!facts.software.torch.has_value()) return {skip_for(facts.software.torch)};
  const Torch& torch = facts.software.torch.value();
  if (torch.cuda.empty()) return {skip("this build of PyTorch is without CUDA")};
  const Driver* driver = cuda_driver(inventory);
  if (!driver) return {skip("no driver reported its version")};
  return {judge_runtime(torch.cuda, *driver)};
}

Diagnoses check_torch_targets(const Inventory& inventory, const HostFacts& facts) {
  if (gpus(inventory).empty()) return {no_gpu(inventory)};
  if (!facts.software.torch.has_value()) return {skip_for(facts.software.torch)};
  const Torch& torch = facts.software.torch.value();
  if (!torch.targets.has_value()) return {skip_for(torch.targets)};
  return over_gpus(inventory, "PyTorch has code for each", [&](const Device& device) {
    if (is_nvidia(device.vendor) && !torch.cuda.empty()) return judge_capability(device, torch, cuda_driver(inventory));
    if (is_amd(device.vendor) && !torch.hip.empty()) return judge_gfx(device, torch);
    return skip("this build of PyTorch is for GPUs of another maker");
  });
}

/// Seen with libtorch 2.6 of Debian 13, which is built without libuv. The default has been libuv since PyTorch 2.4.
Diagnoses check_torch_store(const Inventory&, const HostFacts& facts) {
  if (!facts.software.torch.has_value()) return {skip_for(facts.software.torch)};
  const Torch& torch = facts.software.torch.value();
  const std::vector<int> first{2, 4};
  if (leading_numbers(torch.version) < first) return {pass("PyTorch's store for ranks does without libuv")};
  const bool is_debians = torch.folder.starts_with("/usr/lib/python3/dist-packages/");
  if (!is_debians) return {pass("PyTorch's store for ranks is offered by libuv, which its own builds have")};
  return {warn(fmt::format("PyTorch {} of Debian is built without libuv, and its store for ranks asks for it: torchrun "
                           "and init_process_group fail (not with remuda run --each)",
                           torch.version),
               "export USE_LIBUV=0")};
}

Diagnoses check_collectives(const Inventory& inventory, const HostFacts& facts) {
  Diagnoses all;
  const Software& software = facts.software;
  if (any_gpu(inventory, is_nvidia)) all.push_back(judge_library("NCCL", software.nccl, software.torch));
  if (any_gpu(inventory, is_amd)) all.push_back(judge_library("RCCL", software.rccl, software.torch));
  if (all.empty()) all.push_back(no_gpu(inventory));
  return all;
}

Diagnoses check_device_order(const Inventory& inventory, const HostFacts& facts) {
  std::set<std::string> models;
  for (const Device* device : gpus(inventory))
    if (is_nvidia(device->vendor)) models.insert(device->model);
  if (models.empty()) return {skip("no NVIDIA GPU here")};
  if (models.contains("")) return {skip("a GPU does not report its model")};
  if (models.size() == 1) return {pass("GPUs of one model: CUDA numbers them as PCI does")};
  if (!facts.device_order.has_value()) return {skip_for(facts.device_order)};
  if (facts.device_order.value() == "PCI_BUS_ID")
    return {pass("CUDA_DEVICE_ORDER=PCI_BUS_ID: CUDA numbers GPUs as PCI does")};
  return {warn("GPUs of unlike models: CUDA numbers the fastest first, not as PCI, nvidia-smi and remuda do",
               "export CUDA_DEVICE_ORDER=PCI_BUS_ID")};
}

}  // namespace remuda::doctor
