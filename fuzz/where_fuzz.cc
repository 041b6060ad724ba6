// Any bytes are a condition or a usage error of one line; a condition is tested on any device without harm, and twice
// with the same outcome.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "place/where.h"

namespace {

/// A device with some readings, and one without any.
remuda::Inventory machine() {
  remuda::Inventory inventory;
  remuda::Device gpu{.id = "GPU-1", .kind = remuda::DeviceKind::gpu, .index = 1, .vendor = "v", .model = "A model"};
  gpu.compute_capability = "8.0";
  gpu.memory_bytes = int64_t{40} << 30;
  gpu.numa_node = 0;
  inventory.devices = {gpu, {.id = "cpu:0"}};
  return inventory;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const remuda::Inventory inventory = machine();
  const auto where = remuda::place::Where::parse({reinterpret_cast<const char*>(data), size});
  if (!where) {
    const std::string& message = where.error().message;
    REMUDA_CHECK(where.error().kind == remuda::ErrorKind::usage, "a wrong condition is the user's error");
    REMUDA_CHECK(message.find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  for (const remuda::Device& device : inventory.devices) {
    const auto once = where->test(inventory, device), again = where->test(inventory, device);
    REMUDA_CHECK(once.holds == again.holds && once.unknown == again.unknown, "a test has one outcome");
  }
  return 0;
}
