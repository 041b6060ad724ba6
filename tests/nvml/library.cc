#include "tests/nvml/library.h"

#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>

#include "base/env.h"

namespace remuda::tests::nvml {

std::string library_folder(const std::string& variant) { return std::string(TEST_NVML_FOLDER) + "/" + variant; }

Library::Library(const Inventory& machine, const std::string& faults, const std::string& variant) {
  folder_.write("machine.json", to_pretty(to_json(machine)));
  ::setenv(env::test_nvml.name, folder_.path("machine.json").c_str(), 1);
  ::setenv(env::test_nvml_faults.name, faults.c_str(), 1);
  library_ = ::dlopen((library_folder(variant) + "/libnvidia-ml.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) throw std::runtime_error(::dlerror());
}

Library::~Library() { ::dlclose(library_); }

void* Library::symbol(const std::string& name) const { return ::dlsym(library_, name.c_str()); }

Handle Library::gpu(unsigned index) const {
  Handle handle = nullptr;
  if (call("nvmlDeviceGetHandleByIndex_v2", index, &handle) != kSuccess) throw std::runtime_error("no such GPU");
  return handle;
}

}  // namespace remuda::tests::nvml
