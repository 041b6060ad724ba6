// For tests: a folder that looks like /sys or /proc, and is gone when the test ends.
#pragma once

#include <fmt/format.h>
#include <map>
#include <string>

#include "base/testing/scratch_folder.h"

namespace remuda::probe {

class MadeTree : public ScratchFolder {
 public:
  /// A function of the PCI bus below `chain`, "pci0000:20/0000:20:01.1/0000:21:00.0", with its files; a driver is bound
  /// where `driver` names one.
  void pci(const std::string& chain, const std::map<std::string, std::string>& files,
           const std::string& driver = "") const {
    const std::string place = "devices/" + chain, address = chain.substr(chain.rfind('/') + 1);
    make_folder(place);
    for (const auto& [name, text] : files) write(fmt::format("{}/{}", place, name), text + "\n");
    link("bus/pci/devices/" + address, path(place));
    if (!driver.empty()) link(place + "/driver", path("bus/pci/drivers/" + driver));
  }
};

}  // namespace remuda::probe
