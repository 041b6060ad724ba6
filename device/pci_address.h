// PCI addresses in one spelling: 0000:27:00.0, as the kernel prints them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace remuda {

/// "00000000:27:00.0", "27:00.0" and "0000:27:00.0" in any case become "0000:27:00.0"; nothing when it is no address.
/// A domain above ffff keeps its eight digits.
std::optional<std::string> pci_address(std::string_view text);

}  // namespace remuda
