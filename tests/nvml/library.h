// Tests only: the test library loaded into this process, with the machine and the faults it simulates.
#pragma once

#include <string>

#include "device/inventory.h"
#include "tests/nvml/abi.h"
#include "tests/program.h"

namespace remuda::tests::nvml {

/// The folder of one build of the library: current, conf or old.
std::string library_folder(const std::string& variant);

/// A machine that is served from a file while this object lives.
class Library {
 public:
  /// Throws when the library cannot be loaded.
  explicit Library(const Inventory& machine, const std::string& faults = "", const std::string& variant = "current");
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// The function of that name, or null.
  void* symbol(const std::string& name) const;
  /// Calls it; a call of a missing function fails the test, and returns kFunctionNotFound.
  template <typename... Arguments>
  Code call(const std::string& name, Arguments... arguments) const {
    const auto function = reinterpret_cast<Code (*)(Arguments...)>(symbol(name));
    return function ? function(arguments...) : kFunctionNotFound;
  }
  /// A handle that must exist.
  Handle gpu(unsigned index) const;

 private:
  ScratchFolder folder_;
  void* library_ = nullptr;
};

}  // namespace remuda::tests::nvml
