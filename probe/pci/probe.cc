#include "probe/pci/probe.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>

#include "probe/pci/gpu.h"
#include "probe/pci/names.h"
#include "probe/pci/nic.h"
#include "probe/pci/numa.h"
#include "probe/sysfs.h"

namespace remuda::probe {
namespace {

using pci::Gpu;
using pci::NicAt;

class PciProbe final : public Probe {
 public:
  explicit PciProbe(PciOptions options) : options_(std::move(options)) {}

  const char* name() const override { return "pci"; }

  std::optional<std::string> unviable() override {
    if (sysfs::exists(folder())) return std::nullopt;
    return fmt::format("this machine shows no PCI bus ({} is not there)", folder());
  }

  Result<Finding> find() override {
    Finding finding;
    const std::vector<probe::pci::Gpu> gpus = find_gpus(finding.reason);
    const std::vector<probe::pci::NicAt> nics = pci::find_nics(options_.sysfs);
    finding.numa = pci::find_numa_nodes(options_.sysfs);
    const bool one_node = finding.numa.size() <= 1;
    for (size_t i = 0; i < gpus.size(); ++i) {
      const auto link = [&](const std::string& other, const pci::Place& place) {
        finding.links.push_back({gpus[i].device.id, other, pci::path_between(gpus[i].place, place, one_node)});
      };
      for (size_t k = i + 1; k < gpus.size(); ++k) link(gpus[k].device.id, gpus[k].place);
      for (const probe::pci::NicAt& nic : nics) link(nic.nic.name, nic.place);
      finding.devices.push_back(gpus[i].device);
    }
    for (const probe::pci::NicAt& nic : nics) finding.nics.push_back(nic.nic);
    return finding;
  }

 private:
  std::string folder() const { return options_.sysfs + "/bus/pci/devices"; }

  std::vector<probe::pci::Gpu> find_gpus(std::string& reason) {
    std::vector<probe::pci::Gpu> gpus;
    const std::vector<std::string> functions = sysfs::entries(folder());
    if (functions.size() == sysfs::kMaxEntries)
      reason = fmt::format("only {} of the PCI devices in {} were looked at", functions.size(), folder());
    for (const std::string& function : functions) {
      auto gpu = pci::read_gpu(folder() + "/" + function);
      if (!gpu) continue;
      gpu->device.model = model_of(*gpu);
      gpus.push_back(std::move(*gpu));
    }
    return gpus;
  }

  const std::string& model_of(const probe::pci::Gpu& gpu) {
    std::string& model = models_[{gpu.vendor_id, gpu.device_id}];
    if (!model.empty()) return model;
    const std::string numbers = fmt::format("GPU {:04x}:{:04x}", gpu.vendor_id, gpu.device_id);
    model = gpu.device.vendor + " " + listed_name(gpu).value_or(numbers);
    return model;
  }

  std::optional<std::string> listed_name(const probe::pci::Gpu& gpu) const {
    for (const std::string& path : options_.names) {
      std::error_code error;
      if (!std::filesystem::is_regular_file(path, error)) continue;
      std::ifstream list(path);
      return pci::find_name(list, gpu.vendor_id, gpu.device_id);
    }
    return std::nullopt;
  }

  const PciOptions options_;
  std::map<std::pair<int, int>, std::string> models_;  ///< by the numbers of vendor and device
};

}  // namespace

std::unique_ptr<Probe> make_pci_probe(PciOptions options) { return std::make_unique<PciProbe>(std::move(options)); }

}  // namespace remuda::probe
